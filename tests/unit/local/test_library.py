"""Names and paths of models: what is listed, what is found, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.local import library as module
from pizzabot_builtin_plugins.local.library import Library, checked_name
from pizzabot_hookspecs import InvalidRequest, NotFound


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", ".hidden", "-x", "a b", "x" * 129, "a\n", "a\\b", "ä"])
def test_a_name_that_is_not_one_safe_segment_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        checked_name(name)
    assert caught.value.code == "invalid_model_name"


def test_a_name_may_be_written_with_its_suffix() -> None:
    assert checked_name("qwen2.5-0.5b.gguf") == "qwen2.5-0.5b"


def test_installed_models_come_first_and_known_ones_follow(folder: Path) -> None:
    tiny, known = Library(folder).models()
    assert (tiny.name, tiny.path, tiny.descriptor(8192).context_window) == ("tiny", folder / "tiny.gguf", 2048)
    assert (known.name, known.path, known.descriptor(8192).supports_tools) == ("smollm2-135m", None, False)


def test_a_broken_file_is_listed_with_its_problem_and_hides_no_other(folder: Path) -> None:
    (folder / "bad.gguf").write_bytes(b"nonsense")
    models = {model.name: model for model in Library(folder).models()}
    assert "does not begin with GGUF" in str(models["bad"].problem)
    assert models["tiny"].problem is None


def test_a_file_with_a_strange_name_is_not_listed(folder: Path) -> None:
    (folder / "two words.gguf").write_bytes(b"GGUF")
    assert [model.name for model in Library(folder).models()] == ["tiny", "smollm2-135m"]


def test_the_listing_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch, make_gguf: Callable[..., bytes]) -> None:
    monkeypatch.setattr(module, "MAX_LISTED", 3)
    for number in range(10):
        (folder / f"m{number}.gguf").write_bytes(make_gguf())
    assert len([model for model in Library(folder).models() if model.path]) == 3


def test_the_context_is_the_models_but_never_more_than_the_setting(folder: Path) -> None:
    model = Library(folder).find("tiny")
    assert model.descriptor(1024).context_window == 1024
    assert model.descriptor(1_000_000).context_window == 2048


def test_a_path_names_a_file_anywhere(folder: Path) -> None:
    assert Library(folder / "elsewhere").find(str(folder / "tiny.gguf")).path == folder / "tiny.gguf"


def test_an_unknown_model_says_which_there_are_and_how_to_add_one(folder: Path) -> None:
    with pytest.raises(NotFound, match=r"smollm2-135m, tiny.*pizzabot models install") as caught:
        Library(folder).find("nope")
    assert caught.value.code == "no_such_model"
    with pytest.raises(NotFound, match=r"there is no file /nowhere/x\.gguf"):
        Library(folder).find("/nowhere/x.gguf")


def test_a_replaced_file_is_read_again(folder: Path, make_gguf: Callable[..., bytes]) -> None:
    library = Library(folder)
    assert library.find("tiny").descriptor(8192).supports_tools is False
    (folder / "tiny.gguf").write_bytes(make_gguf(template="{{ tools }}", llama__context_length=2048))
    assert library.find("tiny").descriptor(8192).supports_tools is True


def test_a_removed_model_is_gone_and_a_link_goes_without_its_file(folder: Path, tmp_path: Path) -> None:
    library, original = Library(folder), tmp_path / "mine.gguf"
    original.write_bytes(b"GGUF")
    (folder / "linked.gguf").symlink_to(original)
    library.remove("linked")
    library.remove("tiny")
    assert original.exists()
    assert list(folder.iterdir()) == []
    with pytest.raises(NotFound):
        library.remove("tiny")
