"""A host in a process of its own that stops for ever at a step: `held_host.py DATA_ROOT WHAT STEP NUMBER`.

It prints `held` when it gets there the NUMBERth time; whoever started it kills it then.
"""

import asyncio
import signal
import sys
from pathlib import Path

from pizzabot.host.bundles import installing
from pizzabot.host.materializing import running, snapshots
from pizzabot.testing import host
from pizzabot_hookspecs import LOCAL

PLACES = {
    "write a file": (installing, "_write"),
    "place": (installing.InstallFolder, "place"),
    "hide": (installing.InstallFolder, "hide"),
    "erase": (installing, "_erase"),
    "name a folder": (snapshots, "uuid4"),
    "settle": (running.output, "settle"),
}


def hold(step, number):
    place, name = PLACES[step]
    real = getattr(place, name)
    count = 0

    def held(*args, **more):
        nonlocal count
        count += 1
        if count == number:
            print("held", flush=True)
            signal.sigwait([signal.SIGUSR1])
        return real(*args, **more)

    setattr(place, name, held)


async def main(data_root, what, step, number):
    async with host(data_root=data_root) as opened:
        await opened.bundles.listing(caller=LOCAL)
        async with opened.bundles.live.writing:
            hold(step, number)
        if what.endswith(".zip"):
            await opened.bundles.import_archive(await asyncio.to_thread(Path(what).read_bytes), caller=LOCAL)
        elif what == "delete":
            await opened.bundles.delete("tools", caller=LOCAL)
        else:
            await opened.bundles.refresh("gen", caller=LOCAL)
    print("done", flush=True)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
