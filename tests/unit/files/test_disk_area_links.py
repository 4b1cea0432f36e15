"""Links, and what else is neither file nor folder: nothing outside of the area is read or written through them."""

import asyncio
import ctypes
import os
import socket
import sys
import threading
import time

import pytest
from area_rig import SECRET, on_area, refused

from pizzabot_hookspecs import PizzabotError


def test_a_link_is_not_read_not_written_and_not_shown(tmp_path):
    async def test(area, folder):
        (folder / "ok.txt").write_bytes(b"inside: nobody needs a link for this")
        outside = folder.parent / "outside"
        (folder / "file").symlink_to(outside / "secret.txt")
        (folder / "dir").symlink_to(outside)
        (folder / "inner").symlink_to(folder / "ok.txt")
        (folder / "loop").symlink_to(folder / "loop")
        (folder / "dangling").symlink_to(outside / "new.txt")
        for path in ("/file", "/dir/secret.txt", "/inner", "/loop", "/dangling"):
            await refused(area.read(path, max_bytes=1000), "not_allowed", folder)
            await refused(area.write(path, b"overwritten"), "not_allowed", folder)
            await refused(area.write(path, b"overwritten", new=True), "not_allowed", folder)
        await refused(area.write("/dir/new/er.txt", b"x"), "not_allowed", folder)
        await refused(area.list("/dir"), "not_allowed", folder)
        await refused(area.find("**", "/dir", limit=9), "not_allowed", folder)
        await refused(area.search("nobody", "/dir", limit=9), "not_allowed", folder)
        await refused(area.search("nobody", "/file", limit=9), "not_allowed", folder)
        assert [entry.path for entry in await area.list("/")] == ["/ok.txt"]
        assert [entry.path for entry in (await area.find("**", limit=9)).entries] == ["/ok.txt"]
        assert [match.path for match in (await area.search("nobody", limit=9)).matches] == ["/ok.txt"]

    on_area(tmp_path, test)


def test_a_link_of_another_normal_form_is_refused_as_well(tmp_path):
    async def test(area, folder):
        (folder / "ﬁle").symlink_to(folder.parent / "outside")
        await refused(area.read("/file/secret.txt", max_bytes=1000), "not_allowed", folder)
        await refused(area.read("/file", max_bytes=1000), "not_allowed", folder)

    on_area(tmp_path, test)


def test_a_root_that_has_become_a_link_refuses_everything(tmp_path):
    async def test(area, folder):
        outside = folder.parent / "outside"
        folder.rename(folder.parent / "moved")
        folder.symlink_to(outside)
        await refused(area.list("/"), "not_allowed", folder)
        await refused(area.read("/secret.txt", max_bytes=1000), "not_allowed", folder)
        await refused(area.write("/secret.txt", b"x"), "not_allowed", folder)
        await refused(area.find("**", limit=9), "not_allowed", folder)
        await refused(area.search("nobody", limit=9), "not_allowed", folder)

    on_area(tmp_path, test)


def test_a_root_behind_a_parent_that_has_become_a_link_refuses_everything(tmp_path):
    (tmp_path / "inner").mkdir()

    async def test(area, folder):
        parent = folder.parent
        parent.rename(parent.parent / "moved")
        parent.symlink_to(parent.parent / "moved")
        await refused(area.list("/"), "not_allowed")
        await refused(area.write("/new.txt", b"x"), "not_allowed")

    on_area(tmp_path / "inner", test)


def test_a_root_that_is_gone_is_told_without_its_place(tmp_path):
    async def test(area, folder):
        folder.rmdir()
        await refused(area.list("/"), "no_such_file", folder)
        await refused(area.write("/a", b"x"), "no_such_file", folder)
        await refused(area.search("x", limit=9), "no_such_file", folder)

    on_area(tmp_path, test)


def test_a_pipe_and_a_socket_are_refused_at_once(tmp_path):
    async def test(area, folder):
        os.mkfifo(folder / "pipe")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(relative_to_here(folder / "socket"))
            async with asyncio.timeout(20):
                for path in ("/pipe", "/socket"):
                    await refused(area.read(path, max_bytes=9), "not_a_file", folder)
                    await refused(area.write(path, b"x"), "not_a_file", folder)
                    await refused(area.search("x", path, limit=9), "not_a_file", folder)
                assert list(await area.list("/")) == []
                found = await area.search("x", limit=9)
        assert (list(found.matches), found.truncated) == ([], False)

    on_area(tmp_path, test)


def relative_to_here(path):
    """An address of a socket has at most 108 bytes."""
    return os.path.relpath(path)


def exchange(one, other):
    """Two names change places in one step; nothing is ever missing."""
    libc, names = ctypes.CDLL(None, use_errno=True), (os.fsencode(one), os.fsencode(other))
    if sys.platform == "darwin":
        failed = libc.renamex_np(*names, 2)
    else:
        failed = libc.renameat2(-100, names[0], -100, names[1], 2)
    assert not failed, os.strerror(ctypes.get_errno())


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_a_link_that_is_swapped_in_while_operations_run_leads_nowhere(tmp_path, swapped):
    """A thread swaps the real thing and a link for each other as fast as it can; the area is used meanwhile."""

    async def test(area, folder):
        outside = folder.parent / "outside"
        (folder / "real").mkdir()
        (folder / "real" / "secret.txt").write_bytes(b"inside")
        spare, there = folder.parent / "spare", folder / ("real" if swapped == "folder" else "real/secret.txt")
        target = outside if swapped == "folder" else outside / "secret.txt"
        spare.symlink_to(target)
        over, swaps = threading.Event(), 0

        def swap():
            nonlocal swaps
            while not over.is_set():
                exchange(spare, there)
                swaps += 1
                if swapped == "file" and not spare.is_symlink() and not there.is_symlink():
                    spare.unlink()  # a write has taken the link's place, which is its right
                    spare.symlink_to(target)

        swapper = threading.Thread(target=swap)
        swapper.start()
        outcomes = set()
        try:
            until = time.monotonic() + 1.2
            while time.monotonic() < until:
                results = await asyncio.gather(
                    area.read("/real/secret.txt", max_bytes=1000),
                    area.write("/real/secret.txt", b"inside"),
                    area.search("nobody", limit=9),
                    area.list("/real"),
                    return_exceptions=True,
                )
                for result in results:
                    assert not isinstance(result, BaseException) or isinstance(result, PizzabotError), result
                    outcomes.add(getattr(result, "code", "done"))
                if not isinstance(results[0], PizzabotError):
                    assert results[0].content != SECRET
                if not isinstance(results[2], PizzabotError):
                    assert list(results[2].matches) == []
        finally:
            over.set()
            swapper.join()
        assert swaps > 10
        assert {"done", "not_allowed"} <= outcomes

    on_area(tmp_path, test)
