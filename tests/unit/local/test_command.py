"""`pizzabot models` as a person or a program uses it."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import pytest

from pizzabot_builtin_plugins import local
from pizzabot_builtin_plugins.local.command import ModelsCommand
from pizzabot_builtin_plugins.local.progress import LoggedProgress, PlainProgress, in_words, shown
from pizzabot_hookspecs import InvalidRequest, PizzabotError


@pytest.fixture(autouse=True)
def models_dir(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIZZABOT_MODELS_DIR", str(folder))


def run(*words: str) -> int:
    command, parser = ModelsCommand(), argparse.ArgumentParser("pizzabot models")
    command.arguments(parser)
    return command.run(parser.parse_args(words))


def test_the_plugin_offers_a_provider_and_the_command() -> None:
    assert [offer.name for offer in local.pizzabot_model_providers()] == ["local"]
    assert [offer.name for offer in local.pizzabot_commands()] == ["models"]


def test_the_list_shows_installed_and_known_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    _, tiny, known = capsys.readouterr().out.splitlines()
    assert tiny.split()[:5] == ["local:tiny", "0", "MB", "2048", "no"]
    assert known.endswith("not installed: pizzabot models install smollm2-135m")


def test_the_list_for_programs_has_stable_keys(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert run("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["folder"] == str(folder)
    tiny, known = listed["models"]
    assert set(tiny) == {
        "id", "name", "displayName", "installed", "known", "sizeBytes", "path", "contextWindow", "supportsTools",
        "licence", "problem",
    }  # fmt: skip
    assert (tiny["id"], tiny["installed"], tiny["contextWindow"]) == ("local:tiny", True, 2048)
    assert (known["licence"], known["installed"], known["sizeBytes"]) == ("Apache-2.0", False, 98_362_432)


def test_a_file_is_installed_used_and_removed(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert run("install", str(folder / "tiny.gguf"), "--name", "mine") == 0
    assert "Use it as local:mine" in capsys.readouterr().out
    assert run("remove", "mine") == 0
    assert not (folder / "mine.gguf").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("install", "nope"), "unknown_model"),
        (("install", "smollm2-135m", "--name", "x"), "invalid_option"),
        (("install", "smollm2-135m", "--sha256", "0"), "invalid_option"),
        (("install", "smollm2-135m", "--link"), "invalid_option"),
        (("install", "/nowhere/x.gguf"), "not_a_model"),
        (("install", "http://example.com/x.gguf"), "invalid_url"),
        (("remove", "../tiny"), "invalid_model_name"),
        (("remove", "nope"), "no_such_model"),
    ],
)
def test_bad_input_is_one_line_with_a_code(words: tuple[str, ...], code: str) -> None:
    with pytest.raises(PizzabotError) as caught:
        run(*words)
    assert caught.value.code == code
    assert "\n" not in caught.value.detail


def test_an_unknown_name_lists_those_that_are_known() -> None:
    with pytest.raises(InvalidRequest, match="smollm2-135m"):
        run("install", "nope")


def test_progress_in_a_pipe_is_a_line_per_tenth() -> None:
    stream = io.StringIO()
    with shown("tiny", stream) as progress:
        assert isinstance(progress, PlainProgress)
        for done in range(0, 1001, 7):
            progress(done * 1_000_000, 1_000_000_000)
    assert len(stream.getvalue().splitlines()) == 10
    assert stream.getvalue().splitlines()[5] == "tiny: 504 of 1000 MB (50 %)"


def test_progress_on_a_terminal_is_a_bar_that_disappears() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with shown("tiny", stream) as progress:
        progress(10, 100)
        progress(20, None)
    assert "tiny" in stream.getvalue()


def test_progress_in_the_server_is_logged_by_tenths(recorder: object) -> None:
    progress = LoggedProgress(recorder, "tiny")  # type: ignore[arg-type]
    for done in range(101):
        progress(done, 100)
    assert len(recorder.events) == 11  # type: ignore[attr-defined]
    assert in_words(250_000_000, None) == "250 MB"
