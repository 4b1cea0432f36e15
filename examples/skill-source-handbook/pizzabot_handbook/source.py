"""`Handbook`: a `SkillSource` and a `WatchesSkills`. It returns raw files; the host parses and checks them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pizzabot_hookspecs import Context, TooLarge
from pizzabot_hookspecs.skill_sources import SKILL_FILE, RawSkill

MAX_BYTES = 1024 * 1024
LOOK_SECONDS = 0.2

_CHAPTER = re.compile(r"^## +(.+)$", re.MULTILINE)


class HandbookSettings(BaseModel):
    """`[skills.handbook]`: `file` is the handbook. Without it there are no skills."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Path | None = None


class Handbook:
    def __init__(self, file: Path | None) -> None:
        self._file = file

    async def skills(self) -> Sequence[RawSkill]:
        """Raises `TooLarge` `handbook_too_large`: the host goes on with the chapters that it had."""
        text = await asyncio.to_thread(self._text)
        return list(chapters(text))

    async def changes(self) -> AsyncIterator[None]:
        """An item whenever the file is another one than at the last look."""
        known = await asyncio.to_thread(self._mark)
        yield None  # what changed before the watch began
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = await asyncio.to_thread(self._mark)
            if now != known:
                known = now
                yield None

    def _text(self) -> str:
        if self._file is None or not self._file.exists():
            return ""
        with self._file.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise TooLarge("handbook_too_large", f"{self._file} has more than {MAX_BYTES} bytes: split it")
        return content.decode("utf-8-sig")

    def _mark(self) -> tuple[int, int] | None:
        if self._file is None or not self._file.exists():
            return None
        found = self._file.stat()
        return found.st_mtime_ns, found.st_size


def chapters(text: str) -> Iterator[RawSkill]:
    """A skill for each `## heading`: its first paragraph says when it is used, the whole chapter is its text."""
    _, *parts = _CHAPTER.split(text)
    seen: set[str] = set()
    for heading, body in zip(parts[::2], parts[1::2], strict=True):
        skill_id = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")[:64]
        if not skill_id or skill_id in seen:
            yield RawSkill(id=skill_id or "unnamed", fault=f"the chapter {heading!r} needs a heading of its own")
            continue
        seen.add(skill_id)
        first = " ".join(body.strip().split("\n\n")[0].split()) or f"what the handbook says of {heading}"
        fields = f"name: {json.dumps(heading)}\ndescription: {json.dumps(first[:1000])}"
        yield RawSkill(id=skill_id, files={SKILL_FILE: f"---\n{fields}\n---\n\n{body.strip()}\n".encode()})


def create(_context: Context, settings: HandbookSettings) -> Handbook:
    return Handbook(None if settings.file is None else settings.file.expanduser())
