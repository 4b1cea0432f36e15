"""`GrantedArea`: the granted folders as one area, `/<id>/…`. What is granted is looked up for every operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from pizzabot.host.files.descriptors import Root
from pizzabot.host.files.disk_area import DiskArea
from pizzabot.host.files.disk_searching import Accepts, anything
from pizzabot.host.files.globs import Glob
from pizzabot.host.files.paths import checked_path, segments, shown
from pizzabot.host.files.pool import FilePool
from pizzabot.host.files.refusals import not_a_file
from pizzabot.host.files.text_search import checked_text
from pizzabot.host.files.walking import Budget
from pizzabot.host.folders.grants import Grant
from pizzabot_hookspecs import Caller, NotPermitted, PizzabotError
from pizzabot_hookspecs.files import FileContent, FileEntry, Found, GrantedFolder, Matches, TextMatch

Grants = Callable[[Caller], Awaitable[Sequence[Grant]]]
"""What is granted to the caller, now."""


class GrantedArea:
    """A `pizzabot_hookspecs.files.GrantedFolders`. A folder that is taken back refuses the next operation, in turns
    that are under way too; a write into one that is only read is `NotPermitted` `read_only`."""

    def __init__(self, caller: Caller, *, grants: Grants, pool: FilePool) -> None:
        self._caller = caller
        self._grants = grants
        self._pool = pool

    async def granted(self) -> Sequence[GrantedFolder]:
        grants = await self._grants(self._caller)
        return [grant.folder for grant in sorted(grants, key=lambda grant: (-len(grant.path), grant.path))]

    async def list(self, path: str, /) -> Sequence[FileEntry]:
        if checked_path(path) == "/":
            return [FileEntry(path=f"/{grant.id}", is_folder=True) for grant in await self._sorted()]
        grant, inner = await self._meant(path)
        return await self._area(grant).list(inner)

    async def read(self, path: str, /, *, max_bytes: int) -> FileContent:
        grant, inner = await self._meant(path)
        return await self._area(grant).read(inner, max_bytes=max_bytes)

    async def write(self, path: str, content: bytes, /, *, base: str | None = None, new: bool = False) -> FileEntry:
        grant, inner = await self._meant(path)
        if grant.read_only:
            raise NotPermitted("read_only", f"the folder /{grant.id} may only be read; {shown(path)} was not written")
        return await self._area(grant).write(inner, content, base=base, new=new)

    async def find(self, pattern: str, path: str = "/", /, *, limit: int) -> Found:
        glob = Glob(pattern)
        if checked_path(path) != "/":
            grant, inner = await self._meant(path)
            return await self._area(grant).find(pattern, inner, limit=limit)
        budget, found = Budget(), list[FileEntry]()

        async def find_in(area: DiskArea, accepts: Accepts, left: int) -> None:
            found.extend(await area.find_where(accepts, "/", limit=left, budget=budget))

        await self._everywhere(glob.matches, budget, find_in, lambda: limit - len(found))
        return Found(entries=found, truncated=budget.truncated)

    async def search(self, text: str, path: str = "/", /, *, pattern: str | None = None, limit: int) -> Matches:
        checked_text(text)
        accepts = anything if pattern is None else Glob(pattern).matches
        if checked_path(path) != "/":
            grant, inner = await self._meant(path)
            return await self._area(grant).search(text, inner, pattern=pattern, limit=limit)
        budget, found = Budget(), list[TextMatch]()

        async def search_in(area: DiskArea, accepts: Accepts, left: int) -> None:
            found.extend(await area.search_where(text, accepts, "/", limit=left, budget=budget))

        await self._everywhere(accepts, budget, search_in, lambda: limit - len(found))
        return Matches(matches=found, truncated=budget.truncated)

    async def _everywhere(
        self,
        accepts: Accepts,
        budget: Budget,
        look: Callable[[DiskArea, Accepts, int], Awaitable[None]],
        left: Callable[[], int],
    ) -> None:
        """Look in every folder, in the order of the paths, within one budget. One that fails is passed over: its error
        would take the results of all others (design/stack.md §3)."""
        for grant in await self._sorted():
            if budget.spent:
                return
            try:
                await look(self._area(grant), _within(grant.id, accepts), left())
            except PizzabotError:
                budget.truncated = True

    async def _sorted(self) -> Sequence[Grant]:
        return sorted(await self._grants(self._caller), key=lambda grant: f"{grant.id}/")

    async def _meant(self, path: str) -> tuple[Grant, str]:
        """The grant that `path` is in, and the path below it. Raises `NotPermitted` `no_such_folder`."""
        names = segments(checked_path(path))
        if not names:
            raise not_a_file("/")
        for grant in await self._grants(self._caller):
            if grant.id == names[0]:
                return grant, "/" + "/".join(names[1:])
        raise NotPermitted(
            "no_such_folder", f"no folder {shown(names[0])} is granted; the person can grant one in the settings"
        )

    def _area(self, grant: Grant) -> DiskArea:
        return DiskArea(Root(grant.path, f"/{grant.id}"), self._pool)


def _within(grant_id: str, accepts: Accepts) -> Accepts:
    """For paths below a grant, what `accepts` says of them from above it."""
    return lambda path: accepts(f"{grant_id}/{path}")
