"""The compiled sandbox: made once, kept in a folder, believed only if it is what was written; packages that lack."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys

import pytest
from sandboxed import BEATS, agent, heartbeat

from pizzabot_builtin_plugins.deepagents_runtime.interpreter import image, interpreter_middleware, warm
from pizzabot_hookspecs import Unavailable


@pytest.fixture
def unloaded(monkeypatch):
    monkeypatch.setattr(image, "_loaded", None)


@pytest.fixture
def compiled(monkeypatch):
    """Counts how often the guest was compiled."""
    times = []
    original = image._compiled
    monkeypatch.setattr(image, "_compiled", lambda folder: times.append(1) or original(folder))
    return times


def again(folder):
    image._loaded = None
    return image.load_image(folder)


def test_it_is_compiled_once_and_read_from_the_folder_afterwards(tmp_path, unloaded, compiled):
    folder = tmp_path / "cache" / "eval"
    warm(folder)
    warm(folder)
    first = image.load_image(folder)
    assert again(folder) == first
    assert compiled == [1]
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("harm", ["cut", "changed", "writable by others", "empty", "a folder"])
def test_a_file_that_is_not_what_was_written_is_not_run(tmp_path, unloaded, compiled, harm):
    good = image.load_image(tmp_path)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    if harm == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif harm == "changed":
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif harm == "writable by others":
        file.chmod(0o666)
    elif harm == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
        file.mkdir()
    assert again(tmp_path) == good
    assert compiled == [1, 1]


def test_files_of_other_releases_are_removed(tmp_path, unloaded):
    (tmp_path / "eval-0123.native").write_bytes(b"old")
    (tmp_path / "other.txt").write_bytes(b"kept")
    image.load_image(tmp_path)
    assert sorted(path.name.partition("-")[0] for path in tmp_path.iterdir()) == ["eval", "other.txt"]
    assert not (tmp_path / "eval-0123.native").exists()


def test_a_folder_that_cannot_be_written_costs_time_and_nothing_else(tmp_path, unloaded, compiled):
    (tmp_path / "file").write_bytes(b"")
    assert image.load_image(tmp_path / "file" / "below").guest
    assert compiled == [1]


def test_the_first_use_does_not_hold_the_loop(unloaded):
    async def scenario():
        async with heartbeat() as gaps:
            assert (await agent("6 * 7").say())[-1].content == "42"
        assert len(gaps.seconds) >= BEATS

    asyncio.run(scenario())


@pytest.mark.parametrize("module", ["wasmtime", "quickjs_rs"])
def test_a_missing_package_is_an_error_at_build_that_names_the_tool(monkeypatch, module):
    original = importlib.util.find_spec
    monkeypatch.setattr(image.importlib.util, "find_spec", lambda name: None if name == module else original(name))
    with pytest.raises(Unavailable, match="builtin:eval needs the package") as caught:
        interpreter_middleware(bridges=[], dispatch=None)
    assert caught.value.code == "missing_package"
    assert image.PACKAGES[module] in caught.value.detail


@pytest.mark.parametrize("module", ["wasmtime", "quickjs_rs"])
def test_without_a_package_everything_else_can_still_be_imported_and_built(module):
    code = f"""
import sys
sys.modules[{module!r}] = None
from pizzabot_builtin_plugins.deepagents_runtime.interpreter import interpreter_middleware
from pizzabot_hookspecs import Unavailable
try:
    interpreter_middleware(bridges=[], dispatch=None)
except Unavailable as error:
    print(error.code, error.detail)
"""
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.startswith("missing_package builtin:eval needs the package ")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'(module (memory (export "memory") 1))', "lacks call_function"),
        (b"not wasm", "does not compile"),
    ],
)
def test_another_release_of_the_engine_is_refused_by_name(monkeypatch, unloaded, content, told):
    import wasmtime

    data = bytes(wasmtime.wat2wasm(content.decode())) if content.startswith(b"(module") else content
    monkeypatch.setattr(image, "_guest_bytes", lambda: data)
    with pytest.raises(Unavailable, match=told) as caught:
        image.load_image(None)
    assert caught.value.code == "incompatible_package"


def test_an_agent_whose_engine_fails_is_told_and_goes_on(monkeypatch, unloaded):
    monkeypatch.setattr(image, "_guest_bytes", lambda: b"not wasm")

    async def scenario():
        (result,) = await agent("1").say()
        assert result.status == "error"
        assert "builtin:eval" in result.content

    asyncio.run(scenario())
