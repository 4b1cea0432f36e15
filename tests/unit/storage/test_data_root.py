"""The data root is private, and one server at a time has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pizzabot_hookspecs import Conflict, NotPermitted
from pizzabot_hookspecs.support.data_root import DataRootLock, prepare_data_root

HOLDER = """
import sys
from pathlib import Path
from pizzabot_hookspecs.support.data_root import DataRootLock
with DataRootLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_data_root_is_made_with_its_parents_for_its_user_only(tmp_path: Path) -> None:
    path = prepare_data_root(tmp_path / "a" / "b")
    assert path.is_absolute()
    assert mode(path) == 0o700


def test_a_data_root_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    (tmp_path / "data").chmod(0o777)
    assert mode(prepare_data_root(tmp_path / "data")) == 0o700


def test_preparing_leaves_no_file_behind(tmp_path: Path) -> None:
    assert list(prepare_data_root(tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize("below", ["", "data"])
def test_a_path_that_is_or_goes_through_a_file_is_refused_by_name(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / below
    with pytest.raises(NotPermitted) as caught:
        prepare_data_root(path)
    assert caught.value.code == "data_root_not_writable"
    assert str(path) in caught.value.detail
    assert "\n" not in caught.value.detail


def test_the_lock_names_its_process_and_forgets_it_at_the_end(tmp_path: Path) -> None:
    with DataRootLock(tmp_path) as lock:
        assert lock.path.read_text() == f"{os.getpid()}\n"
        assert mode(lock.path) == 0o600
    assert lock.path.read_text() == ""


def test_a_second_server_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        with pytest.raises(Conflict) as caught:
            DataRootLock(tmp_path).acquire()
        assert caught.value.code == "data_root_in_use"
        assert f"process {process.pid}" in caught.value.detail
        assert str(tmp_path) in caught.value.detail
        process.communicate("")
    with DataRootLock(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.kill()
        process.communicate()
    assert (tmp_path / "lock").read_text() == f"{process.pid}\n"
    with DataRootLock(tmp_path) as lock:
        assert lock.path.read_text() == f"{os.getpid()}\n"


def test_a_refused_server_takes_nothing_from_the_one_that_has_the_lock(tmp_path: Path) -> None:
    with DataRootLock(tmp_path) as lock:
        for _ in range(3):
            with pytest.raises(Conflict, match=f"process {os.getpid()}"):
                DataRootLock(tmp_path).acquire()
        assert lock.path.read_text() == f"{os.getpid()}\n"


def test_acquire_and_release_can_be_said_twice(tmp_path: Path) -> None:
    lock = DataRootLock(tmp_path)
    lock.acquire()
    lock.acquire()
    lock.release()
    lock.release()
    lock.acquire()
    lock.release()


def test_a_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = DataRootLock(tmp_path)
    lock.acquire()
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        with DataRootLock(tmp_path):
            pass
        child.communicate(b"")


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotPermitted) as caught:
        DataRootLock(tmp_path).acquire()
    assert caught.value.code == "data_root_not_writable"
    assert (tmp_path / "elsewhere").read_text() == "precious"


def test_the_lock_of_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotPermitted, match="missing"):
        DataRootLock(tmp_path / "missing").acquire()


def test_a_folder_that_others_use_is_not_taken_from_them(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "holiday.jpg").write_bytes(b"")
    shared.chmod(0o755)
    with pytest.raises(NotPermitted) as refused:
        prepare_data_root(shared)
    assert refused.value.code == "data_root_is_shared"
    assert mode(shared) == 0o755
    (shared / "app.sqlite").write_bytes(b"")
    assert mode(prepare_data_root(shared)) == 0o700
