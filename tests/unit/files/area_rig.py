"""A folder with an area on it, and something beside it that nobody may reach."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pizzabot.host.files.descriptors import Root
from pizzabot.host.files.disk_area import DiskArea
from pizzabot.host.files.pool import FilePool
from pizzabot_hookspecs import PizzabotError

SECRET = b"outside: nobody reads this"


def on_area(tmp_path: Path, test: Callable[[DiskArea, Path], Awaitable[None]], *, called: str = "/") -> None:
    """Run `test(area, folder)`. Beside the folder lies `outside/secret.txt`, which is as it was afterwards."""
    base = Path(os.path.realpath(tmp_path))
    folder, outside = base / "granted", base / "outside"
    for made in (folder, outside):
        made.mkdir()
    (outside / "secret.txt").write_bytes(SECRET)

    async def main() -> None:
        pool = FilePool()
        try:
            await test(DiskArea(Root(str(folder), called), pool), folder)
        finally:
            pool.close()

    asyncio.run(main())
    assert {found.name for found in outside.iterdir()} == {"secret.txt"}
    assert (outside / "secret.txt").read_bytes() == SECRET


async def refused(call: Awaitable[object], code: str, folder: Path | None = None) -> PizzabotError:
    """The error, which has this code and does not say where the area lies."""
    with pytest.raises(PizzabotError) as caught:
        await call
    assert caught.value.code == code, caught.value
    if folder is not None:
        told = f"{caught.value.detail} {dict(caught.value.fields)} {caught.value.__cause__!r}"
        assert str(folder) not in told
        assert str(folder.parent) not in told
    return caught.value
