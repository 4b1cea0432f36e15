"""Names of grants, and which of them can stand beside each other (spec/01 §11)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot.host.folders.grants import MAX_SLUG, Grant, conflicting, in_effect, is_inside, label_of, new_id


@pytest.mark.parametrize(
    ("label", "slug"),
    [
        ("Documents", "documents"),
        ("My  Notes (2024)", "my-notes-2024"),
        ("Über Café", "uber-cafe"),
        ("---", "folder"),
        ("資料", "folder"),
        ("/", "folder"),
        ("x" * 60, "x" * MAX_SLUG),
        ("y" * 47 + " zz", "y" * 47),
        ("ﬁles", "files"),
    ],
)
def test_an_id_is_the_slug_of_the_label(label, slug):
    assert new_id(label, set()) == slug


def test_a_slug_that_is_taken_gets_a_number():
    assert new_id("Docs", {"docs"}) == "docs-2"
    assert new_id("Docs", {"docs", "docs-2"}) == "docs-3"


@given(st.text(max_size=80))
def test_every_label_gives_an_id_that_a_path_can_hold(label):
    slug = new_id(label, set())
    assert 1 <= len(slug) <= MAX_SLUG
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_a_label_is_the_last_name():
    assert (label_of("/home/me/Docs"), label_of("/")) == ("Docs", "/")
    assert is_inside("/a/b", "/")
    assert is_inside("/a", "/a")
    assert not is_inside("/ab", "/a")


def grant(path, *, read_only, created_at=1.0, id="g"):
    return Grant(id=id, label=label_of(path), path=path, read_only=read_only, created_at=created_at)


@pytest.mark.parametrize("new_is_outer", [True, False])
@pytest.mark.parametrize(
    ("outer_read_only", "inner_read_only", "fine"),
    [(True, False, True), (True, True, False), (False, False, False), (False, True, False)],
)
def test_only_a_writable_folder_in_one_that_is_only_read_is_fine_in_either_order(
    outer_read_only, inner_read_only, fine, new_is_outer
):
    outer, inner = grant("/a", read_only=outer_read_only), grant("/a/b", read_only=inner_read_only)
    new, known = (outer, inner) if new_is_outer else (inner, outer)
    assert (conflicting(new.path, [known], read_only=new.read_only) is None) == fine


@pytest.mark.parametrize("access", [(True, True), (True, False), (False, True), (False, False)])
def test_a_folder_is_not_granted_twice(access):
    assert conflicting("/a", [grant("/a", read_only=access[0])], read_only=access[1]) is not None


def test_folders_beside_each_other_are_no_conflict():
    assert conflicting("/ab", [grant("/a", read_only=False)], read_only=False) is None


def test_a_grant_of_the_file_counts_where_a_stored_one_contradicts_it():
    of_file = grant("/home/docs", read_only=True, created_at=None, id="docs")
    same_id = grant("/srv/docs", read_only=False, id="docs")
    around = grant("/home", read_only=False, id="home")
    same_path = grant("/home/docs", read_only=False, id="docs-2")
    inside = grant("/home/docs/work", read_only=False, id="work")
    assert in_effect([of_file], [same_id, around, same_path, inside]) == [of_file, inside]
