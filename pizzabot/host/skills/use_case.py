"""`HostSkills`: what a transport can do with skills (`pizzabot_hookspecs.host_skills.Skills`).

A write is checked as a whole, handed to the source that keeps skills, and answered when the catalogue has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pizzabot.host.skills import views
from pizzabot.host.skills.enablement import Enablement
from pizzabot.host.skills.exchange import archive_of, bundle_of_archive
from pizzabot.host.skills.generation import MAX_PROMPT, GenerationError, generate
from pizzabot.host.skills.live import LiveSkills
from pizzabot.host.skills.servers import Servers, ServerStatus
from pizzabot.host.skills.skill import RESERVED_ID, Skill, valid_id
from pizzabot.host.skills.writing import bundle_of, read_draft
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound, PizzabotError, Unavailable
from pizzabot_hookspecs.agent_runtimes import ChosenModel
from pizzabot_hookspecs.skill_sources import KeepsSkills, Origin
from pizzabot_hookspecs.wire import JsonValue

GENERATE_SECONDS = 180.0
"""For a model to draft a skill."""


class HostSkills:
    """`model` resolves the default model, for drafts."""

    def __init__(
        self,
        *,
        live: LiveSkills,
        enablement: Enablement,
        model: Callable[[], Awaitable[ChosenModel]],
        redact: Callable[[str], str] = str,
    ) -> None:
        self._live = live
        self._enablement = enablement
        self._model = model
        self._redact = redact
        self._writing = asyncio.Lock()

    @property
    def _servers(self) -> Servers:
        return self._live.servers

    async def listing(self, *, caller: Caller) -> Mapping[str, Any]:  # noqa: ARG002 - the contract's; one owner so far
        await self._live.ready()
        live = self._live
        return await asyncio.to_thread(views.listing, live.catalogue, live.readiness, dict(self._servers.states()))

    async def get(self, skill_id: str, /, *, caller: Caller) -> Mapping[str, Any]:  # noqa: ARG002
        await self._live.ready()
        return await asyncio.to_thread(views.bundle, self._skill(skill_id))

    async def create(self, body: Mapping[str, JsonValue], /, *, caller: Caller) -> Mapping[str, Any]:
        await self._live.ready()
        source, keeper = self._keeper()
        skill_id = _checked_id(body.get("id"))
        draft = await asyncio.to_thread(read_draft, body)
        async with self._writing:
            self._check_new(skill_id)
            await keeper.put(skill_id, await asyncio.to_thread(bundle_of, skill_id, draft), new=True)
            await self._live.refresh(source)
        return await self.get(skill_id, caller=caller)

    async def replace(self, skill_id: str, body: Mapping[str, JsonValue], /, *, caller: Caller) -> Mapping[str, Any]:
        await self._live.ready()
        source, keeper = self._keeper()
        _checked_id(skill_id)
        self._check_editable(skill_id, source)
        draft = await asyncio.to_thread(read_draft, body)
        async with self._writing:
            self._check_editable(skill_id, source)
            await keeper.put(skill_id, await asyncio.to_thread(bundle_of, skill_id, draft), new=False)
            await self._live.refresh(source)
        return await self.get(skill_id, caller=caller)

    async def delete(self, skill_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002
        await self._live.ready()
        source, keeper = self._keeper()
        async with self._writing:
            skill = self._skill(skill_id)
            if skill.source != source:
                whose = f"plugin {skill.plugin}" if skill.plugin else f"source {skill.source}"
                raise Conflict("not_deletable", f"skill {skill_id!r} is of {whose}; switch it off instead")
            await keeper.remove(skill_id)
            await self._enablement.set(skill.owner_key, skill_id, enabled=True)
            await self._live.refresh(source)
        return {"deleted": True}

    async def enable(self, skill_id: str, enabled: bool, /, *, caller: Caller) -> Mapping[str, Any]:  # noqa: ARG002, FBT001
        await self._live.ready()
        async with self._writing:
            skill = self._skill(skill_id)
            if enabled:
                self._check_servers(skill)
            before = await self._enablement.set(skill.owner_key, skill_id, enabled=enabled)
            try:
                await self._live.refresh()
            except Exception:
                await self._enablement.set(skill.owner_key, skill_id, enabled=before)
                raise
        return self._info(self._skill(skill_id), self._servers.states())

    async def generate(self, prompt: str, /, *, caller: Caller) -> Mapping[str, Any]:  # noqa: ARG002
        self._keeper()
        if not prompt.strip() or len(prompt) > MAX_PROMPT:
            problem = f"has to be text of 1 to {MAX_PROMPT} characters"
            raise InvalidRequest("invalid", f"`prompt` {problem}", fields={"prompt": problem})
        try:
            async with asyncio.timeout(GENERATE_SECONDS):
                chosen = await self._model()
                return await generate(chosen.chat, prompt, self._servers.states())
        except (PizzabotError, GenerationError) as error:
            raise Unavailable("generate_failed", f"no skill was drafted: {error}") from error
        except TimeoutError as error:
            reason = f"the model did not answer within {GENERATE_SECONDS:g} s"
            raise Unavailable("generate_failed", f"no skill was drafted: {reason}") from error
        except Exception as error:
            cause = self._redact(f"{type(error).__name__}: {error}")[:500]
            raise Unavailable("generate_failed", f"no skill was drafted: {cause}") from error

    async def import_archive(self, archive: bytes, /, *, caller: Caller) -> Mapping[str, Any]:
        await self._live.ready()
        source, keeper = self._keeper()
        skill_id, files = await asyncio.to_thread(bundle_of_archive, archive)
        async with self._writing:
            self._check_new(skill_id)
            await keeper.put(skill_id, files, new=True)
            await self._live.refresh(source)
        return await self.get(skill_id, caller=caller)

    async def export_archive(self, skill_id: str, /, *, caller: Caller) -> bytes:  # noqa: ARG002
        await self._live.ready()
        return await asyncio.to_thread(archive_of, self._skill(skill_id))

    async def tools(self, *, caller: Caller) -> Mapping[str, Any]:  # noqa: ARG002
        return views.tools(self._servers.states())

    def _skill(self, skill_id: str) -> Skill:
        skill = self._live.catalogue.skills.get(skill_id)
        if skill is None:
            raise NotFound("no_such_skill", f"there is no skill {skill_id[:80]!r}")
        return skill

    def _info(self, skill: Skill, states: Mapping[str, Any]) -> dict[str, Any]:
        return views.info(skill, self._live.readiness[skill.id], states)

    def _keeper(self) -> tuple[str, KeepsSkills]:
        """The first source that keeps skills."""
        for name, source in self._live.sources.items():
            if isinstance(source, KeepsSkills):
                return name, source
        detail = "no source keeps skills here: the plugin user-skills is switched off, or did not start (see the log)"
        raise Conflict("skills_disabled", detail)

    def _check_new(self, skill_id: str) -> None:
        if skill_id == RESERVED_ID:
            raise Conflict("reserved_id", f"the id {skill_id!r} is the agent's own")
        skill = self._live.catalogue.skills.get(skill_id)
        if skill is None:
            return
        if skill.origin is Origin.USER:
            raise Conflict("already_exists", f"there is a skill {skill_id!r} already")
        raise Conflict("reserved_id", f"{skill_id!r} is a shipped skill; replace it to make it your own")

    def _check_editable(self, skill_id: str, source: str) -> None:
        skill = self._live.catalogue.skills.get(skill_id)
        if skill is None or (skill.origin is Origin.USER and skill.source != source):
            raise Conflict("not_editable", f"there is no skill {skill_id!r} that could be edited")

    def _check_servers(self, skill: Skill) -> None:
        states = self._servers.states()
        blockers = {
            server: "missing" if server not in states else "disabled"
            for server in skill.servers
            if (server not in states and self._servers.known())
            or (server in states and states[server].status is ServerStatus.DISABLED)
        }
        if blockers:
            why = ", ".join(f"{server} is {reason}" for server, reason in blockers.items())
            raise Conflict("dependency_disabled", f"skill {skill.id!r} needs MCP servers: {why}", fields=blockers)


def _checked_id(value: object) -> str:
    if isinstance(value, str) and valid_id(value):
        return value
    problem = "has to be 1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first"
    raise InvalidRequest("invalid_id", f"`id` {problem}", fields={"id": problem})
