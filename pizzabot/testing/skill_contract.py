"""`SkillSourceContract`: what every source of skills keeps to, as tests to subclass.

    class TestHandbook(SkillSourceContract):
        def source(self) -> Handbook:
            return Handbook()

Each test makes its own source, enters it if it is an async context manager, and runs in a loop of its own. Capabilities
that the source does not have are not asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any, ClassVar, cast

from pizzabot.host.skills.skill import parse_skill
from pizzabot_hookspecs import Conflict, PizzabotError
from pizzabot_hookspecs.skill_sources import SKILL_FILE, KeepsSkills, Origin, RawSkill, SkillSource, WatchesSkills
from pizzabot_hookspecs.support.paths import safe_segment

ASK_SECONDS = 10.0
CHANGE_SECONDS = 5.0

FIRST: Mapping[str, bytes] = {
    SKILL_FILE: b"---\ndescription: the first one\n---\nbody\n",
    "references/deep/notes.md": "ä\n".encode(),
    "picture.png": b"\x89PNG\x00\xff",
}
SECOND: Mapping[str, bytes] = {SKILL_FILE: b"---\ndescription: the second one\n---\n", "other.txt": b""}


class SkillSourceContract:
    """Subclass it with a name that starts with `Test`; return a source from `source`.

    `change` makes the source's skills other ones, where that is possible without `KeepsSkills`: a source that watches
    has to tell it. `faultless` is whether everything the source has can be used.
    """

    faultless: ClassVar[bool] = True

    def source(self) -> SkillSource:
        """A source that works. It may be an async context manager."""
        raise TypeError(f"{type(self).__name__} has to define source(self)")

    async def change(self, source: SkillSource, turn: int) -> bool:
        """Change what there is, in each turn (0, 1) to something else; False where that cannot be done."""
        if isinstance(source, KeepsSkills):
            await source.put("contract-change", SECOND if turn else FIRST, new=False)
            return True
        return False

    def test_skills_are_bundles_with_unique_ids(self) -> None:
        async def check(source: SkillSource) -> None:
            bundles = await _asked(source)
            assert all(isinstance(bundle, RawSkill) for bundle in bundles), "skills() returns RawSkill objects"
            ids = [bundle.id for bundle in bundles]
            assert len(ids) == len(set(ids)), f"an id is there twice: {sorted(ids)}"
            assert all(bundle.id and isinstance(bundle.id, str) for bundle in bundles), "an id is empty"
            assert all(isinstance(bundle.origin, Origin) for bundle in bundles), "an origin is not an Origin"

        self._run(check)

    def test_a_bundle_has_a_skill_file_or_a_fault(self) -> None:
        async def check(source: SkillSource) -> None:
            for bundle in await _asked(source):
                assert SKILL_FILE in bundle.files or bundle.fault, f"{bundle.id} has neither {SKILL_FILE} nor a fault"
                assert not (bundle.files and bundle.fault), f"{bundle.id} has files although it has a fault"

        self._run(check)

    def test_files_are_bytes_under_relative_paths(self) -> None:
        async def check(source: SkillSource) -> None:
            for bundle in await _asked(source):
                for path, content in bundle.files.items():
                    assert isinstance(content, bytes), f"{bundle.id}: {path} is not bytes"
                    assert _is_inside(path), f"{bundle.id}: {path!r} is no path inside a bundle"

        self._run(check)

    def test_every_skill_can_be_used(self) -> None:
        async def check(source: SkillSource) -> None:
            for bundle in await _asked(source) if self.faultless else ():
                skill = parse_skill(bundle, "contract")
                assert not skill.faults, f"{bundle.id}: {'; '.join(map(str, skill.faults))}"

        self._run(check)

    def test_asking_again_and_at_the_same_time_gives_the_same(self) -> None:
        async def check(source: SkillSource) -> None:
            answers = await asyncio.gather(*(_asked(source) for _ in range(5)))
            first = {bundle.id: bundle for bundle in answers[0]}
            for answer in answers[1:]:
                assert {bundle.id: bundle for bundle in answer} == first, "asked again, it says something else"

        self._run(check)

    def test_a_kept_bundle_is_exactly_what_was_put(self) -> None:
        async def check(source: SkillSource, keeper: KeepsSkills) -> None:
            for files, new in ((FIRST, True), (SECOND, False), (FIRST, False)):
                await keeper.put("contract", files, new=new)
                kept = await _kept(source)
                assert kept is not None, "what was put is not among skills()"
                assert dict(kept.files) == dict(files), f"put {sorted(files)}, kept {sorted(kept.files)}"
                assert kept.origin is Origin.USER, "what a person keeps is of origin user"

        self._run_keeping(check)

    def test_a_new_bundle_takes_no_others_place(self) -> None:
        async def check(source: SkillSource, keeper: KeepsSkills) -> None:
            await keeper.put("contract", FIRST, new=True)
            await _refused(keeper.put("contract", SECOND, new=True))
            kept = await _kept(source)
            assert kept is not None and dict(kept.files) == dict(FIRST), "a refused put changed the bundle"

        self._run_keeping(check)

    def test_of_several_new_ones_at_once_exactly_one_wins(self) -> None:
        async def check(source: SkillSource, keeper: KeepsSkills) -> None:
            puts = (keeper.put("contract", files, new=True) for files in (FIRST, SECOND) * 4)
            answers = await asyncio.gather(*puts, return_exceptions=True)
            assert answers.count(None) == 1, f"{answers.count(None)} of {len(answers)} puts were taken"
            kept = await _kept(source)
            assert kept is not None and dict(kept.files) in (dict(FIRST), dict(SECOND)), "the bundle is a mixture"

        self._run_keeping(check)

    def test_what_is_removed_is_gone(self) -> None:
        async def check(source: SkillSource, keeper: KeepsSkills) -> None:
            await keeper.put("contract", FIRST, new=True)
            assert await keeper.remove("contract") is True, "remove says that there was none"
            assert await _kept(source) is None, "what was removed is still there"
            assert await keeper.remove("contract") is False, "remove says that there was one"

        self._run_keeping(check)

    def test_a_path_that_leads_out_is_not_written(self) -> None:
        async def check(source: SkillSource, keeper: KeepsSkills) -> None:
            await keeper.put("contract", FIRST, new=True)
            for path in ("../outside.txt", "/outside.txt", "a/../../outside.txt"):
                await _refused(keeper.put("contract", {**SECOND, path: b"x"}, new=False))
            kept = await _kept(source)
            assert kept is not None and dict(kept.files) == dict(FIRST), "a refused put changed the bundle"

        self._run_keeping(check)

    def test_a_watch_tells_a_change_and_ends_when_it_is_closed(self) -> None:
        async def check(source: SkillSource) -> None:
            if not isinstance(source, WatchesSkills):
                return
            async with aclosing(cast("Any", source.changes())) as changes:
                for turn in range(2):
                    before = {bundle.id: bundle for bundle in await _asked(source)}
                    watching = asyncio.create_task(_until_other(source, changes, before))
                    if await self.change(source, turn):
                        await asyncio.wait_for(watching, CHANGE_SECONDS)
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)

        self._run(check)

    def _run(self, check: Callable[[SkillSource], Awaitable[None]]) -> None:
        async def main() -> None:
            async with AsyncExitStack() as stack:
                source = self.source()
                if hasattr(source, "__aenter__"):
                    source = await stack.enter_async_context(cast("Any", source))
                await check(source)

        asyncio.run(main())

    def _run_keeping(self, check: Callable[[SkillSource, KeepsSkills], Awaitable[None]]) -> None:
        async def keeping(source: SkillSource) -> None:
            if isinstance(source, KeepsSkills):
                await check(source, source)

        self._run(keeping)


async def _asked(source: SkillSource) -> Sequence[RawSkill]:
    return await asyncio.wait_for(source.skills(), ASK_SECONDS)


async def _kept(source: SkillSource) -> RawSkill | None:
    return next((bundle for bundle in await _asked(source) if bundle.id == "contract"), None)


async def _until_other(source: SkillSource, changes: Any, before: Mapping[str, RawSkill]) -> None:
    """A watch may say too much; what it says too late is the fault."""
    async for _ in changes:
        if {bundle.id: bundle for bundle in await _asked(source)} != before:
            return
    raise AssertionError("changes() ended by itself")


async def _refused(put: Awaitable[None]) -> None:
    try:
        await put
    except PizzabotError as error:
        if isinstance(error, Conflict):
            assert error.code == "already_exists", f"the conflict has the code {error.code}"
        return
    raise AssertionError("it was taken")


def _is_inside(path: str) -> bool:
    try:
        return all(safe_segment(segment) for segment in path.split("/"))
    except PizzabotError:
        return False
