"""`pizzabot doctor`: whether what is stored can be opened and read; `--rebuild` makes transcripts anew from their logs.

No server may run on the data root meanwhile: its lock is taken.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pizzabot.cli.arguments import add_settings_options, settings_of
from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.failures import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator

    from pizzabot.host.ground import Ground
    from pizzabot_hookspecs.storage_backends import Storage, Thread

_PAGE = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    add_settings_options(parser)
    parser.add_argument(
        "--rebuild", action="store_true", help="drop the rows of transcripts and make them anew from the log"
    )
    parser.add_argument("threads", nargs="*", metavar="THREAD", help="ids of threads; all where none is given")


def run(arguments: argparse.Namespace) -> int:
    from pizzabot.cli.redaction import process_redactor
    from pizzabot.host.ground import open_ground

    settings = settings_of(arguments)
    if not settings.data_root.is_dir():
        say(f"there is no data root {settings.data_root}: nothing to look at; --data-root names another")
        return ExitCode.TAKEN
    with open_ground(settings, process="doctor", redactor=process_redactor()) as ground:
        return asyncio.run(_examine(ground, list(dict.fromkeys(arguments.threads)), rebuild=arguments.rebuild))


async def _examine(ground: Ground, wanted: list[str], *, rebuild: bool) -> int:
    from pizzabot.host.plugins.making import PluginMaker

    maker = PluginMaker(ground)
    use = ground.settings.storage.use
    try:
        storage: Storage = await maker.chosen("storage_backends", use, section_name="storage")
        print(f"data root  {ground.data_root}")
        print(f"storage    {use} can be opened")
        seen: list[str] = []
        faults = 0
        async for thread in _threads(storage, wanted):
            seen.append(thread.thread_id)
            faults += await (_rebuild if rebuild else _check)(ground, storage, thread)
        missing = [thread_id for thread_id in wanted if thread_id not in seen]
        for thread_id in missing:
            print(f"thread {thread_id}: there is no such thread")
        counted = f"{len(seen)} thread{'' if len(seen) == 1 else 's'}"
        print(f"{counted} {'rebuilt' if rebuild else 'checked'}, {faults} with a fault")
    finally:
        await maker.lifecycle.aclose()
    if missing:
        say(f"no such thread: {', '.join(missing)}")
        return ExitCode.FAILED
    if faults:
        way = "what is named above needs a backup" if rebuild else "`pizzabot doctor --rebuild` makes rows anew"
        say(f"{faults} of {counted} with a fault; {way}")
        return ExitCode.FAILED
    return ExitCode.OK


async def _threads(storage: Storage, wanted: list[str]) -> AsyncIterator[Thread]:
    from pizzabot_hookspecs import SYSTEM

    if wanted:
        for thread_id in wanted:
            if (thread := await storage.thread(thread_id, caller=SYSTEM)) is not None:
                yield thread
        return
    offset = 0
    while page := await storage.threads(limit=_PAGE, offset=offset, caller=SYSTEM):
        for thread in page:
            yield thread
        offset += len(page)


async def _check(_ground: Ground, storage: Storage, thread: Thread) -> int:
    from pizzabot.host.transcripts.checking import fault_of_log, fault_of_rows

    fault = await fault_of_log(storage, thread) or await fault_of_rows(storage, thread.thread_id)
    if fault is None:
        return 0
    print(f"thread {thread.thread_id}: {fault}")
    return 1


async def _rebuild(ground: Ground, storage: Storage, thread: Thread) -> int:
    from pizzabot.host.transcripts.checking import fault_of_log, fault_of_rows
    from pizzabot.host.transcripts.keeping import TranscriptKeeper

    if (fault := await fault_of_log(storage, thread)) is not None:
        print(f"thread {thread.thread_id}: left as it is: {fault}")
        return 1
    folded = 0
    async for cursor in TranscriptKeeper(storage, logger=ground.logger("doctor")).rebuild(thread.thread_id):
        folded = cursor
    print(f"thread {thread.thread_id}: {folded} events folded")
    if (fault := await fault_of_rows(storage, thread.thread_id)) is None:
        return 0
    print(f"thread {thread.thread_id}: {fault}, though it was made anew: this is a fault of pizzabot, please report it")
    return 1
