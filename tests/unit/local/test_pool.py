"""Which models are in memory, and that nothing outlives its provider."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pizzabot_builtin_plugins.local import pool as module
from pizzabot_builtin_plugins.local.provider import LocalProvider
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.errors import classify
from pizzabot_hookspecs.support.processes import start, terminate_group

Make = Callable[..., LocalProvider]


@pytest.fixture(autouse=True)
def second(folder: Path, make_gguf: Callable[..., bytes]) -> None:
    (folder / "second.gguf").write_bytes(make_gguf())


def loaded(provider: LocalProvider) -> list[str]:
    return [Path(path).stem for path in provider.pool.pids()]


def test_the_model_that_was_unused_longest_makes_room(provider: Make) -> None:
    async def play() -> None:
        async with provider(max_loaded=1) as local:
            tiny = await local.build("tiny")
            await local.build("second")
            assert loaded(local) == ["second"]
            assert (await tiny.ainvoke("back again")).text == "back again "
            assert loaded(local) == ["tiny"]

    asyncio.run(play())


def test_two_models_stay_where_two_may(provider: Make) -> None:
    async def play() -> None:
        async with provider(max_loaded=2) as local:
            await local.build("tiny")
            await local.build("second")
            assert loaded(local) == ["tiny", "second"]

    asyncio.run(play())


def test_a_model_that_answers_is_never_unloaded_and_the_wait_for_its_place_is_bounded(provider: Make) -> None:
    async def play() -> None:
        async with provider(max_loaded=1, queue_seconds=0.2) as local:
            tiny = await local.build("tiny")
            stream = tiny.astream("endless")
            await anext(stream)
            with pytest.raises(Unavailable, match="max_loaded"):
                await local.build("second")
            assert (await anext(stream)).text == "word "
            await stream.aclose()
            await local.build("second")
            assert loaded(local) == ["second"]

    asyncio.run(play())


def test_who_waits_for_room_gets_it_when_an_answer_ends(provider: Make) -> None:
    async def play() -> None:
        async with provider(max_loaded=1) as local:
            tiny, second = await local.build("tiny"), await local.build("second")
            stream = tiny.astream("endless")
            await anext(stream)
            waiting = asyncio.create_task(second.ainvoke("my turn"))
            await anext(stream)
            assert not waiting.done()
            await stream.aclose()
            assert (await waiting).text == "my turn "

    asyncio.run(play())


def test_a_model_that_nobody_uses_is_unloaded_and_comes_back(provider: Make, recorder: Any) -> None:
    async def play() -> None:
        async with provider(idle_seconds=0.05) as local:
            unloaded = recorder.expect("idle")
            tiny = await local.build("tiny")
            await asyncio.wait_for(unloaded.wait(), 10)
            await asyncio.gather(*local.pool._endings)
            assert loaded(local) == []
            assert (await tiny.ainvoke("back")).text == "back "

    asyncio.run(play())


def test_a_child_that_hangs_is_replaced(provider: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_AFTER_SECONDS", -1.0)
    monkeypatch.setattr("pizzabot_builtin_plugins.local.process.HEALTH_SECONDS", 0.2)

    async def play() -> None:
        async with provider() as local:
            tiny = await local.build("tiny")
            [hung] = local.pool.pids().values()
            os.kill(hung, signal.SIGSTOP)
            assert (await tiny.ainvoke("well")).text == "well "
            assert hung not in local.pool.pids().values()

    asyncio.run(play())


def test_many_callers_of_a_model_that_is_not_loaded_start_one_child(provider: Make, recorder: Any) -> None:
    async def play() -> None:
        async with provider(parallel=4) as local:
            tiny, _ = await local.build("tiny"), await local.build("second")
            recorder.events.clear()
            answers = await asyncio.gather(*(tiny.ainvoke(f"number {number}") for number in range(12)))
            assert [answer.text for answer in answers] == [f"number {number} " for number in range(12)]
        assert [event for event, _ in recorder.events].count("local.loaded") == 1

    asyncio.run(play())


def test_a_build_that_is_cancelled_while_loading_leaves_no_process(
    provider: Make, folder: Path, make_gguf: Callable[..., bytes], recorder: Any
) -> None:
    (folder / "mute.gguf").write_bytes(make_gguf())

    async def play() -> None:
        started = recorder.expect("prints to stdout")
        async with provider() as local:
            building = asyncio.create_task(local.build("mute"))
            await asyncio.wait_for(started.wait(), 10)
            building.cancel()
            with pytest.raises(asyncio.CancelledError):
                await building
            assert local.pool._seats == {}
            assert loaded(local) == []

    asyncio.run(play())


def test_closing_ends_a_running_answer_with_a_code_and_takes_no_more(provider: Make) -> None:
    async def play() -> None:
        async with provider() as local:
            tiny = await local.build("tiny")
            stream = tiny.astream("endless")
            await anext(stream)
            [pid] = local.pool.pids().values()
        with pytest.raises(Exception) as caught:
            async for _ in stream:
                pass
        assert classify(caught.value) == "MODEL_UNAVAILABLE"
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(Exception, match="were stopped"):
            await tiny.ainvoke("hello?")

    asyncio.run(play())


PARENT = """
import asyncio, sys, time
from pathlib import Path
from pizzabot_builtin_plugins.local.process import Launch, ModelProcess
class Quiet:
    def __getattr__(self, name): return lambda *a, **k: None
async def main():
    sizes = dict(context_size=256, parallel=1, threads=1, gpu_layers=0, prompt_cache_mib=0)
    launch = Launch(name="tiny", path=sys.argv[1], **sizes)
    child = await ModelProcess.launch(launch, seconds=30, logger=Quiet())
    print(child.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits on a pidfd")
def test_no_child_outlives_a_server_that_was_killed(provider: Make, folder: Path) -> None:
    from pizzabot_hookspecs.support.processes import clean_environment

    async def play() -> None:
        env = clean_environment(inherit=["PYTHONPATH"])
        parent = await start([sys.executable, "-c", PARENT, str(folder / "tiny.gguf")], env=env)
        assert parent.stdout is not None
        child = int(await parent.stdout.readline())
        handle, gone = os.pidfd_open(child), asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, gone.set)
        parent.kill()
        await asyncio.wait_for(gone.wait(), 3)
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)
        await terminate_group(parent)

    asyncio.run(play())
