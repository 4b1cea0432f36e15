"""The use cases on a real host: what is written is there, what is dropped into the folder is seen."""

import asyncio
import io
import json
import zipfile
from contextlib import aclosing

import pytest
from mcp_doubles import FakeServers, connected

from pizzabot.host.skills.enablement import SETTING, Enablement
from pizzabot.host.skills.live import LiveSkills
from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot.host.skills.use_case import HostSkills
from pizzabot.testing import host
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_builtin_plugins.user_skills.source import UserSkills
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest, NotFound, PizzabotError, Unavailable
from pizzabot_hookspecs.host import EventFilter
from pizzabot_hookspecs.skill_sources import Origin, RawSkill

BODY = {"name": "Mail", "description": "reads mail", "body": "do it"}
TEXT = "---\ndescription: d\n---\nbody\n"


class Log:
    def __init__(self):
        self.events = []

    def __getattr__(self, _level):
        return lambda event, **_facts: self.events.append(event)


class Shipped:
    """A source of fixed bundles, which can break."""

    def __init__(self, *bundles):
        self.bundles, self.error = list(bundles), None

    async def skills(self):
        if self.error:
            raise self.error
        return self.bundles


def shipped(skill_id, text=TEXT, origin=Origin.BUILTIN, **more):
    return RawSkill(id=skill_id, files={"SKILL.md": text.encode()}, origin=origin, **more)


class Rig:
    def __init__(self, path, *bundles, servers=None, model=None, keeps=True):
        self.storage, self.servers, self.log = MemoryStorage(), servers or FakeServers(), Log()
        self.enablement = Enablement(self.storage)
        self.live = LiveSkills(servers=self.servers, enablement=self.enablement, logger=self.log)
        self.shipped, self.user = Shipped(*bundles), UserSkills(path, self.log)
        self.live.add("shipped", self.shipped)
        self.keeps, self.model = keeps, model
        self.changed = asyncio.Event()

    async def _model(self):
        if self.model is None:
            raise Unavailable("no_model", "there is no model")
        return chosen(self.model)

    async def __aenter__(self):
        await self.storage.__aenter__()
        if self.keeps:
            await self.user.__aenter__()
            self.live.add("user", self.user)
        await self.enablement.load()
        self.live.on_roster_change(self.changed.set)
        self.live.start()
        self.skills = HostSkills(live=self.live, enablement=self.enablement, model=self._model)
        await self.live.ready()
        return self

    async def __aexit__(self, *_):
        await self.live.close()
        await self.storage.__aexit__(None, None, None)

    async def until(self, holds):
        async with asyncio.timeout(10):
            while not holds(self.live.roster()):
                await self.changed.wait()
                self.changed.clear()

    async def row(self, skill_id):
        listing = await self.skills.listing(caller=LOCAL)
        return next((row for row in listing["skills"] if row["id"] == skill_id), None)

    def names(self):
        return {subagent.name for subagent in self.live.roster().subagents}


def rigged(tmp_path, test, *bundles, **more):
    async def main():
        async with Rig(tmp_path / "skills", *bundles, **more) as rig:
            await test(rig)

    asyncio.run(main())


async def refused(awaited, code, kind=PizzabotError):
    with pytest.raises(kind) as caught:
        await awaited
    assert caught.value.code == code
    return caught.value


def test_a_skill_is_written_read_replaced_and_removed(tmp_path):
    async def test(rig):
        files = [{"path": "a/b.md", "content": "x"}, {"path": "p.png", "content": "iVBO", "encoding": "base64"}]
        made = await rig.skills.create({"id": "mail", **BODY, "files": files}, caller=LOCAL)
        assert (made["source"], made["body"], [one["path"] for one in made["files"]]) == (
            "user",
            "do it",
            ["a/b.md", "p.png"],
        )
        assert made["files"][1] == {"path": "p.png", "content": "iVBO", "encoding": "base64", "mimeType": "image/png"}
        assert "mail" in rig.names()
        changed = await rig.skills.replace("mail", {**BODY, "body": "other"}, caller=LOCAL)
        assert (changed["body"], changed["files"]) == ("other", [])
        assert not (rig.user.path / "mail" / "a").exists()
        assert await rig.skills.delete("mail", caller=LOCAL) == {"deleted": True}
        await refused(rig.skills.get("mail", caller=LOCAL), "no_such_skill", NotFound)

    rigged(tmp_path, test)


def test_overriding_a_shipped_skill_and_getting_it_back(tmp_path):
    async def test(rig):
        assert (await rig.row("mail"))["source"] == "builtin"
        await refused(rig.skills.create({"id": "mail", **BODY}, caller=LOCAL), "reserved_id", Conflict)
        await refused(rig.skills.delete("mail", caller=LOCAL), "not_deletable", Conflict)
        own = await rig.skills.replace("mail", BODY, caller=LOCAL)
        assert (own["source"], own["overrides"], own["description"]) == ("user", "builtin", "reads mail")
        await rig.skills.enable("mail", False, caller=LOCAL)
        await rig.skills.delete("mail", caller=LOCAL)
        row = await rig.row("mail")
        assert (row["source"], row["description"], row["enabled"], "overrides" in row) == ("builtin", "d", True, False)
        assert await rig.storage.setting(SETTING, caller=LOCAL) is None

    rigged(tmp_path, test, shipped("mail"))


def test_every_refusal_of_a_write_leaves_the_disk_as_it_was(tmp_path):
    async def test(rig):
        await rig.skills.create({"id": "mine", **BODY}, caller=LOCAL)
        before = {path: path.stat().st_mtime_ns for path in rig.user.path.rglob("*")}
        create, replace = rig.skills.create, rig.skills.replace
        await refused(create({"id": "../x", **BODY}, caller=LOCAL), "invalid_id", InvalidRequest)
        await refused(create({**BODY}, caller=LOCAL), "invalid_id", InvalidRequest)
        await refused(create({"id": "pizza-bot", **BODY}, caller=LOCAL), "reserved_id", Conflict)
        await refused(create({"id": "mine", **BODY}, caller=LOCAL), "already_exists", Conflict)
        await refused(
            create({"id": "new", **BODY, "files": [{"path": "../x", "content": ""}]}, caller=LOCAL), "invalid"
        )
        await refused(replace("mine", {**BODY, "name": ""}, caller=LOCAL), "invalid", InvalidRequest)
        await refused(replace("none", BODY, caller=LOCAL), "not_editable", Conflict)
        await refused(replace("../x", BODY, caller=LOCAL), "invalid_id", InvalidRequest)
        await refused(rig.skills.delete("none", caller=LOCAL), "no_such_skill", NotFound)
        await refused(rig.skills.import_archive(b"no zip", caller=LOCAL), "invalid_archive")
        assert {path: path.stat().st_mtime_ns for path in rig.user.path.rglob("*")} == before

    rigged(tmp_path, test)


def test_of_two_imports_of_one_id_exactly_one_wins(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mail/SKILL.md", "---\nname: mail\ndescription: d\nextra: kept\n---\nbody")

    async def test(rig):
        imports = (rig.skills.import_archive(out.getvalue(), caller=LOCAL) for _ in range(4))
        answers = await asyncio.gather(*imports, return_exceptions=True)
        assert [getattr(answer, "code", "made") for answer in answers].count("already_exists") == 3
        assert b"extra: kept" in (rig.user.path / "mail" / "SKILL.md").read_bytes()
        await rig.skills.delete("mail", caller=LOCAL)
        await rig.skills.import_archive(out.getvalue(), caller=LOCAL)
        exported = await rig.skills.export_archive("mail", caller=LOCAL)
        await rig.skills.delete("mail", caller=LOCAL)
        assert (await rig.skills.import_archive(exported, caller=LOCAL))["id"] == "mail"

    rigged(tmp_path, test)


def test_where_nothing_keeps_skills_writing_says_so_and_reading_goes_on(tmp_path):
    async def test(rig):
        for awaited in (
            rig.skills.create({"id": "x", **BODY}, caller=LOCAL),
            rig.skills.replace("mail", BODY, caller=LOCAL),
            rig.skills.delete("mail", caller=LOCAL),
            rig.skills.import_archive(b"", caller=LOCAL),
            rig.skills.generate("x", caller=LOCAL),
        ):
            await refused(awaited, "skills_disabled", Conflict)
        assert (await rig.skills.get("mail", caller=LOCAL))["id"] == "mail"

    rigged(tmp_path, test, shipped("mail"), keeps=False)


def test_a_folder_that_is_dropped_in_is_in_the_roster_and_changes_are_followed(tmp_path):
    async def test(rig):
        folder = rig.user.path / "fresh"
        folder.mkdir()
        (folder / "SKILL.md").write_text(TEXT)
        await rig.until(lambda roster: any(one.name == "fresh" for one in roster.subagents))
        (folder / "SKILL.md").write_text("---\ndescription: other\n---\n")
        await rig.until(lambda roster: any(one.description == "other" for one in roster.subagents))
        (folder / "SKILL.md").write_text("---\ndescription: [\n---\n")
        await rig.until(lambda roster: any(one.name == "fresh" for one in roster.unready))
        assert (await rig.row("fresh"))["status"] == "unavailable"
        (folder / "SKILL.md").unlink()
        folder.rmdir()
        await rig.until(lambda roster: not roster.unready)
        assert await rig.row("fresh") is None

    rigged(tmp_path, test)


def test_a_broken_skill_is_listed_with_file_line_and_reason_and_can_be_repaired(tmp_path):
    async def test(rig):
        listing = await rig.skills.listing(caller=LOCAL)
        (problem,) = listing["problems"]
        assert problem == {"source": "shipped", "id": "bad", "file": "SKILL.md", "line": 2, "reason": problem["reason"]}
        assert {row["id"]: row["status"] for row in listing["skills"]} == {"bad": "unavailable", "good": "ready"}
        assert "line 2" in next(row for row in listing["skills"] if row["id"] == "bad")["statusDetail"]
        await rig.skills.replace("bad", BODY, caller=LOCAL)
        assert (await rig.row("bad"))["status"] == "ready"

    rigged(tmp_path, test, shipped("bad", "---\ndescription: [a]\n---\n"), shipped("good"))


def test_a_disabled_skill_is_listed_and_nowhere_else_and_stays_disabled(tmp_path):
    async def test(rig):
        row = await rig.skills.enable("mail", False, caller=LOCAL)
        assert (row["enabled"], row["status"]) == (False, "disabled")
        assert rig.names() == {"other"}
        assert rig.live.roster().unready == ()
        fresh = Enablement(rig.storage)
        await fresh.load()
        assert not fresh.enabled(rig.live.catalogue.skills["mail"])
        assert (await rig.skills.enable("mail", True, caller=LOCAL))["status"] == "ready"
        assert await rig.storage.setting(SETTING, caller=LOCAL) is None
        await refused(rig.skills.enable("none", True, caller=LOCAL), "no_such_skill", NotFound)

    rigged(tmp_path, test, shipped("mail"), shipped("other"))


def test_switches_of_two_plugins_skills_are_apart(tmp_path):
    async def test(rig):
        await rig.skills.enable("a", False, caller=LOCAL)
        await rig.skills.enable("b", False, caller=LOCAL)
        stored = await rig.storage.setting(SETTING, caller=LOCAL)
        assert stored == {"plugin:acme": ["a"], "builtin": ["b"]}

    rigged(tmp_path, test, shipped("a", origin=Origin.PLUGIN, plugin="acme"), shipped("b"))


@pytest.mark.parametrize("stored", [1, "x", [], {"user": "x"}, {"user": [1, None]}, {"user": {}}])
def test_switches_that_cannot_be_read_count_as_nothing_switched_off(stored):
    async def main():
        async with MemoryStorage() as storage:
            await storage.put_setting(SETTING, stored, caller=LOCAL)
            enablement = Enablement(storage)
            await enablement.load()
            assert enablement.disabled == frozenset()

    asyncio.run(main())


def test_a_switch_that_cannot_be_applied_is_put_back(tmp_path, monkeypatch):
    async def test(rig):
        async def broken(*_):
            raise RuntimeError("no")

        monkeypatch.setattr(rig.live, "refresh", broken)
        with pytest.raises(RuntimeError):
            await rig.skills.enable("mail", False, caller=LOCAL)
        assert await rig.storage.setting(SETTING, caller=LOCAL) is None

    rigged(tmp_path, test, shipped("mail"))


def test_enabling_needs_every_server_to_be_there_and_on_and_says_which_is_not(tmp_path):
    servers = FakeServers(
        off=ServerState(status=ServerStatus.DISABLED), on=connected("t"), down=ServerState(status=ServerStatus.ERROR)
    )

    async def test(rig):
        await rig.skills.enable("mail", False, caller=LOCAL)
        error = await refused(rig.skills.enable("mail", True, caller=LOCAL), "dependency_disabled", Conflict)
        assert error.fields == {"off": "disabled", "gone": "missing"}
        assert (await rig.row("mail"))["enabled"] is False
        rig.servers.set(off=connected("t"), gone=ServerState(status=ServerStatus.LOADING))
        row = await rig.skills.enable("mail", True, caller=LOCAL)
        assert row["mcpDependencies"] == [
            {"id": "on", "enabled": True, "status": "connected"},
            {"id": "off", "enabled": True, "status": "connected"},
            {"id": "gone", "enabled": True, "status": "loading"},
            {"id": "down", "enabled": True, "status": "error"},
        ]

    rigged(
        tmp_path,
        test,
        shipped("mail", "---\ndescription: d\ntools: mcp:on:t mcp:off:t mcp:gone:t mcp:down:t\n---\n"),
        servers=servers,
    )


def test_a_server_that_comes_and_goes_moves_its_skills(tmp_path):
    servers = FakeServers(a=ServerState(status=ServerStatus.LOADING))

    async def test(rig):
        assert [one.state for one in rig.live.roster().unready] == ["loading"]
        rig.servers.set(a=connected("t"))
        await rig.until(lambda roster: roster.subagents)
        assert [one.tool.name for one in rig.live.roster().subagents[0].tools] == ["a__t"]
        tools = await rig.skills.tools(caller=LOCAL)
        assert tools == {
            "builtins": [{"ref": "builtin:eval", "name": "eval"}, {"ref": "builtin:ask_user", "name": "ask_user"}],
            "servers": [
                {
                    "server": "a",
                    "wildcard": "mcp:a:*",
                    "tools": [{"ref": "mcp:a:t", "name": "t", "description": "does it"}],
                }
            ],
        }
        rig.servers.set(a=ServerState(status=ServerStatus.CRASHED, detail="it died"))
        await rig.until(lambda roster: roster.unready)
        assert rig.live.roster().unready[0].detail == "server 'a' is crashed: it died"

    rigged(tmp_path, test, shipped("mail", "---\ndescription: d\ntools: mcp:a:t\n---\n"), servers=servers)


def test_a_skill_waits_while_the_servers_are_not_read_and_is_unavailable_when_they_are(tmp_path):
    servers = FakeServers()
    servers.read = False

    async def test(rig):
        assert (await rig.row("mail"))["status"] == "loading"
        assert (await rig.skills.enable("mail", True, caller=LOCAL))["enabled"] is True
        servers.read = True
        servers.set()
        await rig.until(lambda roster: roster.unready[0].state == "unavailable")
        assert "not configured" in (await rig.row("mail"))["statusDetail"]

    rigged(tmp_path, test, shipped("mail", "---\ndescription: d\ntools: mcp:a:t\n---\n"), servers=servers)


def test_a_source_that_breaks_keeps_what_it_had_and_is_told(tmp_path):
    async def test(rig):
        rig.shipped.error = OSError("the disk is gone")
        await rig.live.refresh("shipped")
        listing = await rig.skills.listing(caller=LOCAL)
        assert [row["id"] for row in listing["skills"]] == ["mail"]
        assert "the disk is gone" in listing["problems"][0]["reason"]
        rig.shipped.error = None
        rig.shipped.bundles = ["no bundle"]
        await rig.live.refresh("shipped")
        listing = await rig.skills.listing(caller=LOCAL)
        assert (listing["skills"], "no skill" in listing["problems"][0]["reason"]) == ([], True)

    rigged(tmp_path, test, shipped("mail"))


def test_a_callback_that_breaks_does_not_keep_the_others_from_being_called(tmp_path):
    async def test(rig):
        def broken():
            raise RuntimeError("no")

        called = asyncio.Event()
        rig.live.on_roster_change(broken)
        rig.live.on_roster_change(called.set)
        await rig.skills.create({"id": "x", **BODY}, caller=LOCAL)
        assert called.is_set()
        assert "skills.callback_failed" in rig.log.events

    rigged(tmp_path, test)


def test_a_rebuild_that_fails_is_told_to_who_waits_and_the_next_one_makes_it_good(tmp_path, monkeypatch):
    async def test(rig):
        states, rig.servers.states = rig.servers.states, None
        with pytest.raises(TypeError):
            await rig.live.refresh()
        assert "skills.rebuild_failed" in rig.log.events
        rig.servers.states = states
        rig.shipped.bundles = [shipped("fresh")]
        await rig.live.refresh("shipped")
        assert rig.names() == {"fresh"}

    rigged(tmp_path, test, shipped("mail"))


def test_who_waits_while_the_server_stops_is_told_so(tmp_path):
    async def test(rig):
        never = asyncio.Event()

        async def hanging():
            await never.wait()

        rig.shipped.skills = hanging
        waiting = [asyncio.ensure_future(rig.live.refresh("shipped"))]
        await asyncio.sleep(0)
        waiting.append(asyncio.ensure_future(rig.live.refresh("shipped")))
        await asyncio.sleep(0)
        await rig.live.close()
        for one in waiting:
            await refused(one, "server_stopping", Unavailable)
        await refused(rig.live.refresh(), "server_stopping", Unavailable)

    rigged(tmp_path, test, shipped("mail"))


def test_a_source_that_hangs_is_given_up_and_what_it_had_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr("pizzabot.host.skills.live.SOURCE_SECONDS", 0.05)

    async def test(rig):
        async def hanging():
            await asyncio.Event().wait()

        rig.shipped.skills = hanging
        await rig.live.refresh("shipped")
        listing = await rig.skills.listing(caller=LOCAL)
        assert ([row["id"] for row in listing["skills"]], len(listing["problems"])) == (["mail"], 1)

    rigged(tmp_path, test, shipped("mail"))


def test_a_watch_that_breaks_is_begun_again(tmp_path, monkeypatch):
    monkeypatch.setattr("pizzabot.host.skills.live.WATCH_AGAIN_SECONDS", 0.01)

    class Watched(Shipped):
        tries = 0

        async def changes(self):
            self.tries += 1
            if self.tries == 1:
                raise OSError("the watch is gone")
            self.bundles = [shipped("fresh")]
            yield None
            await asyncio.Event().wait()

    async def main():
        rig = Rig(tmp_path / "skills", keeps=False)
        rig.live.add("shipped", Watched())
        async with rig:
            await rig.until(lambda roster: [one.name for one in roster.subagents] == ["fresh"])
            assert "skills.watch_failed" in rig.log.events

    asyncio.run(main())


def test_a_draft_is_made_by_the_model_and_not_stored(tmp_path):
    draft = {"name": "Mail", "description": "reads", "body": "b", "tools": ["builtin:eval", "mcp:no:no"]}

    async def test(rig):
        made = await rig.skills.generate("read mail", caller=LOCAL)
        assert made == {
            "name": "Mail",
            "description": "reads",
            "body": "b",
            "declaredTools": ["builtin:eval"],
            "interruptOn": {},
        }
        assert (await rig.skills.listing(caller=LOCAL))["skills"] == []
        await refused(rig.skills.generate("again", caller=LOCAL), "generate_failed", Unavailable)
        for prompt in ("", "  \n", "x" * 20_001):
            await refused(rig.skills.generate(prompt, caller=LOCAL), "invalid", InvalidRequest)

    rigged(tmp_path, test, model=ScriptedModel(script=[Reply(json.dumps(draft)), Reply("I cannot")]))


def test_without_a_model_a_draft_says_why_there_is_none(tmp_path):
    async def test(rig):
        error = await refused(rig.skills.generate("x", caller=LOCAL), "generate_failed", Unavailable)
        assert "there is no model" in error.detail

    rigged(tmp_path, test)


def test_a_whole_host_gives_its_runtime_the_roster():
    async def main():
        async with host(settings={"skills": {"use": ["user"]}}) as opened:
            await opened.skills.create({"id": "mail", **BODY}, caller=LOCAL)
            await opened.runtime()
            first, *others = opened.skill_parts.live.sources
            assert (first, others, "shipped" in others) == ("user", sorted(others), True)
            assert "mail" in {one.name for one in opened.skill_parts.live.roster().subagents}

    asyncio.run(main())


def test_a_skill_that_is_written_while_the_server_runs_is_delegated_to_by_the_next_turn():
    task = '[[tool read_file {"file_path": "/skills/helper/references/a.md"}]] look [[then]] done reading'
    text = f"[[tool task {json.dumps({'description': task, 'subagent_type': 'helper'})}]] [[then]] all done"
    start = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"type": "human", "content": text}]}}}

    async def main():
        async with host() as opened, asyncio.timeout(60):
            await opened.runtime()
            files = [{"path": "references/a.md", "content": "ALPHA"}]
            await opened.skills.create({"id": "helper", **BODY, "files": files}, caller=LOCAL)
            await opened.runs.command("t", start, caller=LOCAL)
            wanted = EventFilter(channels=frozenset({"tools", "lifecycle"}))
            told = b""
            async with aclosing(await opened.runs.observe("t", wanted, caller=LOCAL)) as batches:
                async for batch in batches:
                    told += b"".join(event.data for event in batch.events)
                    if any(not event.namespace and b"completed" in event.data for event in batch.events):
                        break
            assert b"ALPHA" in told
            assert b"done reading" in told

    asyncio.run(main())


def test_a_source_that_nothing_offers_is_named():
    async def main():
        async with host(settings={"skills": {"use": ["nowhere"]}}):
            pass

    with pytest.raises(PizzabotError) as caught:
        asyncio.run(main())
    assert (caught.value.code, "nowhere" in caught.value.detail) == ("no_such_offer", True)
