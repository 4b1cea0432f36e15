"""`HostFolders`: what is granted, granting, taking back, and browsing for a folder to grant (spec/01 §11)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from pizzabot.host.files.pool import FilePool
from pizzabot.host.folders.area import GrantedArea
from pizzabot.host.folders.browsing import browse, roots_answer
from pizzabot.host.folders.canonical import canonical_folder
from pizzabot.host.folders.grants import Grant, conflicting, from_row, in_effect, label_of, new_id
from pizzabot.host.folders.rules import FolderRules
from pizzabot_hookspecs import LOCAL, Caller, Conflict, InvalidRequest, NotPermitted, TooLarge
from pizzabot_hookspecs.file_storage import FileStorage, FolderGrant
from pizzabot_hookspecs.wire import JsonValue

MAX_GRANTS = 100
"""Folders that are granted to one person."""

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE | re.ASCII)


class HostFolders:
    """Implements `pizzabot_hookspecs.host_files.Folders`. Grants of the file are those of the one local person."""

    def __init__(self, storage: FileStorage, rules: FolderRules, *, pool: FilePool, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._rules = rules
        self._pool = pool
        self._clock = clock
        self._granting = asyncio.Lock()

    def area(self, caller: Caller) -> GrantedArea:
        """What a turn of the caller's has at `/local/`."""
        return GrantedArea(caller, grants=self.grants, pool=self._pool)

    async def grants(self, caller: Caller) -> Sequence[Grant]:
        """What is granted now, read from storage each time."""
        stored = [from_row(row) for row in await self._storage.folder_grants(caller=caller)]
        return in_effect(self._of_file(caller), stored)

    async def listing(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        grants = sorted(await self.grants(caller), key=lambda grant: (grant.label.casefold(), grant.id))
        return {
            "folders": [_record(grant) for grant in grants],
            "configurable": self._rules.configure,
            "browseAvailable": self._rules.can_browse,
        }

    async def browse(self, path: str | None = None, /, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002
        if not self._rules.can_browse:
            raise NotPermitted(
                "browsing_disabled", _how("browsing folders", "folders.configure and folders.browse_roots")
            )
        if path is None:
            return roots_answer(self._rules.browse_roots)
        return await self._pool.run(browse, path, self._rules.browse_roots)

    async def grant(
        self, path: str, /, *, read_only: bool = True, acknowledge_data_root: bool = False, caller: Caller
    ) -> Mapping[str, JsonValue]:
        self._check_configurable()
        canonical = await self._pool.run(canonical_folder, path)
        if self._rules.touches_data_root(canonical) and not acknowledge_data_root:
            raise Conflict(
                "data_root_access_requires_confirmation",
                f"{canonical!r} holds the data root of pizzabot or lies in it: conversations and memories would be"
                " within reach; confirm that with acknowledgeDataRootAccess",
            )
        async with self._granting:
            grant = await self._new_grant(canonical, read_only=read_only, caller=caller)
            await self._storage.add_folder_grant(grant, caller=caller)
        return _record(from_row(grant))

    async def revoke(self, folder_id: str, /, *, caller: Caller) -> bool:
        self._check_configurable()
        if not _ID.fullmatch(folder_id):
            problem = "must be letters, digits, _ and - of ASCII, at most 64"
            raise InvalidRequest("invalid_id", f"the id of a folder {problem}", fields={"id": problem})
        if any(grant.id == folder_id for grant in self._of_file(caller)):
            raise Conflict(
                "managed_by_file", f"the folder {folder_id} is granted in the configuration; change it there"
            )
        return await self._storage.delete_folder_grant(folder_id, caller=caller)

    async def _new_grant(self, path: str, *, read_only: bool, caller: Caller) -> FolderGrant:
        """Raises `Conflict` `already_exists`, `overlapping_grant`; `TooLarge` `too_many_folders`."""
        stored = await self._storage.folder_grants(caller=caller)
        known = [*self._of_file(caller), *map(from_row, stored)]
        same = next((grant for grant in known if grant.path == path), None)
        if same is not None:
            raise Conflict("already_exists", f"{path!r} is granted already, as {same.id}; take it back first")
        other = conflicting(path, known, read_only=read_only)
        if other is not None:
            raise Conflict(
                "overlapping_grant",
                f"{path!r} overlaps with {other.path!r}, granted as {other.id}; only a writable folder may lie in one"
                " that is only read",
            )
        if len(known) >= MAX_GRANTS:
            raise TooLarge("too_many_folders", f"{MAX_GRANTS} folders are granted already; take one back first")
        label = label_of(path)
        return FolderGrant(
            id=new_id(label, {grant.id for grant in known}),
            owner=caller.owner,
            label=label,
            path=path,
            read_only=read_only,
            created_at=self._clock(),
        )

    def _of_file(self, caller: Caller) -> Sequence[Grant]:
        return self._rules.grants if caller.owner == LOCAL.owner else ()

    def _check_configurable(self) -> None:
        if not self._rules.configure:
            raise NotPermitted("configuration_disabled", _how("changing what is granted", "folders.configure"))


def _how(what: str, setting: str) -> str:
    return f"{what} is switched off on this server; its operator can switch it on with {setting}"


def _record(grant: Grant) -> dict[str, JsonValue]:
    created = None if grant.created_at is None else datetime.fromtimestamp(grant.created_at, UTC).isoformat()
    return {
        "id": grant.id,
        "label": grant.label,
        "path": grant.path,
        "virtualPath": grant.folder.path,
        "readOnly": grant.read_only,
        "createdAt": created,
        "managedByFile": grant.managed_by_file,
    }
