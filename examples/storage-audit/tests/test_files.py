"""The rotated file never grows beyond its bounds and loses nothing that fits in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pizzabot_storage_audit.files import RotatedFile

LINE = "x" * 99  # 100 bytes with its end


def test_a_full_file_is_followed_by_a_new_one_and_the_oldest_is_removed(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path, max_bytes=1_000, max_files=3)
    file.append([f"{number:099d}" for number in range(35)])

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["audit.1.ndjson", "audit.2.ndjson", "audit.ndjson"]
    written = [path.read_text().splitlines() for path in (tmp_path / name for name in names)]
    assert [len(lines) for lines in written] == [10, 10, 5]
    assert [int(line) for line in [*written[1], *written[0], *written[2]]] == list(range(10, 35))


def test_one_file_alone_begins_again_when_it_is_full(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path, max_bytes=1_000, max_files=1)
    file.append([LINE] * 25)
    assert [path.name for path in tmp_path.iterdir()] == ["audit.ndjson"]
    assert len(file.current.read_text().splitlines()) == 5


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_a_file_is_over_its_size_by_less_than_one_line(tmp_path: Path, at_once: int) -> None:
    file = RotatedFile(tmp_path, max_bytes=1_050, max_files=2)
    for _ in range(100 // at_once):
        file.append([LINE] * at_once)
        assert all(path.stat().st_size < 1_050 + 100 for path in tmp_path.iterdir())


def test_the_files_are_for_their_user_only(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "audit", max_bytes=1_000, max_files=2)
    file.prepare()
    file.append([LINE])
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o700
    assert file.current.stat().st_mode & 0o777 == 0o600
