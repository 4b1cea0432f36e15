"""Safe paths: names that are only names, and paths that no link leads out of their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pizzabot_hookspecs.errors import InvalidRequest, NotPermitted
from pizzabot_hookspecs.support.paths import contained_path, safe_segment


@pytest.mark.parametrize("text", ["a", "SKILL.md", ".hidden", "ä ö", "a" * 255, "..."])
def test_a_name_is_returned_as_it_is(text: str) -> None:
    assert safe_segment(text) == text


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a/b", "/", "a\\b", "a\0b", "a\nb", "\x7f", "a" * 256, "ä" * 128, "\ud83d"]
)
def test_what_is_no_single_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        safe_segment(text, what="skill id")
    assert raised.value.code == "invalid_name"
    assert raised.value.detail.startswith("skill id")


def test_a_path_below_the_folder_is_found_whether_it_exists_or_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert contained_path(tmp_path, "a/b.txt") == tmp_path.resolve() / "a" / "b.txt"


@pytest.mark.parametrize("relative", ["../x", "a/../../x", "/etc/passwd", "a//b", "./a", "", "a/\0", "x/" * 3000])
def test_a_path_that_is_not_plain_is_refused(tmp_path: Path, relative: str) -> None:
    with pytest.raises(InvalidRequest):
        contained_path(tmp_path, relative)


def test_a_link_that_leads_out_is_refused_and_one_that_stays_is_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "in").symlink_to(root / "real")
    (root / "dangling").symlink_to(tmp_path / "nowhere")
    assert contained_path(root, "in/file") == root.resolve() / "real" / "file"
    for relative in ("out/file", "out", "dangling"):
        with pytest.raises(NotPermitted) as raised:
            contained_path(root, relative)
        assert raised.value.code == "path_outside"


def test_a_folder_beside_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "rooted").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "rooted")
    with pytest.raises(NotPermitted):
        contained_path(tmp_path / "root", "link/x")


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(NotPermitted):
        contained_path(tmp_path, "a/x")


def test_the_folder_itself_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert contained_path(tmp_path / "link", "x") == tmp_path.resolve() / "real" / "x"
