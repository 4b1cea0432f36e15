"""The source: `<data root>/skills/<id>/`, private to the person; read, watched and written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pizzabot_builtin_plugins.user_skills import bundles
from pizzabot_hookspecs import Context, Logger
from pizzabot_hookspecs.skill_sources import Origin, RawSkill
from pizzabot_hookspecs.support.skill_folders import SkillFolder

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.user_skills.watching import FolderWatch

FOLDER = "skills"


class UserSkills:
    """A context manager: entering makes the folder, finishes what a crash interrupted and begins to watch."""

    def __init__(self, path: Path, logger: Logger) -> None:
        self.path = path
        self._logger = logger
        self._folder = SkillFolder(path, origin=Origin.USER)
        self._disk = threading.Lock()
        self._watch: FolderWatch | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(bundles.prepare, self.path)
        self._watch = await self._begin_to_watch()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watch is not None:
            self._watch.close()

    async def skills(self) -> Sequence[RawSkill]:
        if not await asyncio.to_thread(self.path.is_dir):
            await self._begin_anew()
        return await asyncio.to_thread(self._read)

    async def put(self, skill_id: str, files: Mapping[str, bytes], /, *, new: bool) -> None:
        await asyncio.to_thread(self._put, skill_id, files, new=new)

    async def remove(self, skill_id: str, /) -> bool:
        return await asyncio.to_thread(self._remove, skill_id)

    async def changes(self) -> AsyncIterator[None]:
        """A watch that died is begun again by the next call."""
        if self._watch is None:
            self._watch = await self._begin_to_watch()
        watch = self._watch
        try:
            async with aclosing(watch.bursts()) as found:
                async for _ in found:
                    yield
        except OSError:
            watch.close()
            self._watch = None
            raise

    async def _begin_anew(self) -> None:
        """The folder was removed while the server runs: a watch on it would never tell anything again."""
        await asyncio.to_thread(bundles.prepare, self.path)
        if self._watch is not None:
            self._watch.fail(FileNotFoundError(f"{self.path} was removed; it is made again"))

    async def _begin_to_watch(self) -> FolderWatch:
        from pizzabot_builtin_plugins.user_skills.watching import open_watch

        return await open_watch(self.path, self._logger)

    def _read(self) -> list[RawSkill]:
        with self._disk:
            return self._folder.read()

    def _put(self, skill_id: str, files: Mapping[str, bytes], *, new: bool) -> None:
        with self._disk:
            bundles.put(self.path, skill_id, files, new=new)

    def _remove(self, skill_id: str) -> bool:
        with self._disk:
            return bundles.remove(self.path, skill_id)


def create(context: Context, _settings: Any) -> UserSkills:
    return UserSkills(context.data_root / FOLDER, context.logger)
