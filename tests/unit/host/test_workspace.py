"""A thread's own files: versions, branches, limits, what people do with them (spec/12 §2.1)."""

import asyncio
import hashlib
import io
import json
import re
import tracemalloc
import zipfile
from contextlib import aclosing, asynccontextmanager, suppress

import pytest
import structlog
from engine_rig import EVERYTHING, collect_until, log_of, rig, run, settled, start

from pizzabot.host.blobs.collecting import collect
from pizzabot.host.files.descriptors import Root
from pizzabot.host.files.disk_area import DiskArea
from pizzabot.host.files.pool import FilePool
from pizzabot.host.workspace import changes, uploads, usage, use_case
from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Caller, Conflict, PizzabotError
from pizzabot_hookspecs.wire import Frame

STRANGER = Caller(owner="somebody else")


class WritingRuntime(ScriptedRuntime):
    """Lines `write <path> <text>`, `offload <path> <text>`, `local <path> <text>` of a message write a file before it
    is echoed. What a turn has of files is kept in `areas`."""

    def __init__(self, **options):
        super().__init__(**options)
        self.areas = []
        self.refused = []

    def start(self, turn, /):
        return _Writing(super().start(turn), turn, self)


class _Writing:
    def __init__(self, inner, turn, runtime):
        self._inner, self._turn, self._runtime = inner, turn, runtime

    async def stop(self):
        await self._inner.stop()

    async def __aiter__(self):
        self._runtime.areas.append(self._turn.files)
        for message in self._turn.messages:
            for line in message.text.splitlines():
                await self._do(*line.split(" ", 2))
        async for frame in self._inner:
            yield frame

    async def _do(self, verb, path="", text=""):
        try:
            if verb == "write":
                await self._turn.files.workspace.write(path, text.encode())
            elif verb == "local":
                await self._turn.files.folders.write(f"/f{path}", text.encode())
            elif verb == "offload":
                await self._turn.files.offloads.write(path, text.encode())
        except PizzabotError as refused:
            self._runtime.refused.append(refused.code)


@asynccontextmanager
async def threads(tmp_path, runtime=None, **options):
    """A thread `t` on a data root of its own."""
    data_root = tmp_path / "root"
    data_root.mkdir(exist_ok=True)
    async with rig(tmp_path / "app.sqlite", runtime or WritingRuntime(), data_root=data_root, **options) as parts:
        parts.data_root = data_root
        with suppress(Conflict):
            await parts.threads.create("t", caller=LOCAL)
        yield parts


async def say(parts, text, thread_id="t", **params):
    reply = await start(parts, thread_id, text, **params)
    assert "result" in reply, reply
    return await settled(parts, reply["result"]["run_id"])


async def paths(parts, thread_id="t"):
    shown = await parts.workspace.page(thread_id, caller=LOCAL)
    return sorted(row["path"] for row in shown["artifacts"])


async def content(stored, start=0, end=None):
    chunks = stored.opened(start, stored.size if end is None else end)
    try:
        return b"".join([piece async for piece in chunks])
    finally:
        await chunks.aclose()


async def text_of(parts, path, **asked):
    return (await content(await parts.workspace.get("t", path, caller=LOCAL, **asked))).decode()


async def pieces(*given):
    for one in given:
        yield one


def blobs(parts):
    return {one.name for one in (parts.data_root / "blobs").rglob("*") if re.fullmatch("[0-9a-f]{64}", one.name)}


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def facts(events, name):
    found = (json.loads(event.data) for event in events if event.name == f"pizzabot.{name}")
    return [one["payload"] for one in found]


async def refusal(awaitable):
    with pytest.raises(PizzabotError) as refused:
        await awaitable
    return refused.value.code


# -- writing ---------------------------------------------------------------------------------------------------------


def test_what_a_run_writes_is_a_version_with_a_fact_that_observers_see(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            stream = await parts.runs.observe("t", EVERYTHING, since=0, caller=LOCAL)
            row = await say(parts, "write /a.md hello")
            seen = await collect_until(stream, lambda event: event.name == "pizzabot.artifact")
            [told] = facts(seen, "artifact")
            assert told == {
                "v": 1,
                "path": "/a.md",
                "sha256": sha("hello"),
                "size": 5,
                "mediaType": "text/markdown",
                "op": "created",
                "author": "agent",
                "run_id": row.run_id,
                "turn_id": told["turn_id"],
            }
            shown = await parts.workspace.page("t", caller=LOCAL)
            [artifact] = shown["artifacts"]
            assert artifact.pop("updatedAt")
            assert artifact == {
                "path": "/a.md",
                "version": 1,
                "sha256": sha("hello"),
                "size": 5,
                "mediaType": "text/markdown",
                "kind": "text",
                "author": "agent",
                "runId": row.run_id,
                "presented": True,
            }
            assert await text_of(parts, "/a.md") == "hello"
            numbers = [event.seq for event in await log_of(parts, "t")]
            assert numbers == list(range(1, len(numbers) + 1))

    run(scene())


def test_blobs_are_private_and_lie_in_two_levels_of_folders(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await say(parts, "write /a.md hello")
            digest = sha("hello")
            path = parts.data_root / "blobs" / digest[:2] / digest[2:4] / digest
            assert path.read_bytes() == b"hello"
            assert path.stat().st_mode & 0o777 == 0o600
            folders = [one for one in (parts.data_root / "blobs").rglob("*") if one.is_dir()]
            assert {one.stat().st_mode & 0o777 for one in [parts.data_root / "blobs", *folders]} == {0o700}
            assert list((parts.data_root / "blobs" / "new").iterdir()) == []

    run(scene())


def test_a_write_that_is_done_again_with_the_same_content_makes_no_second_version(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await say(parts, "write /a.md hello")
            again = await parts.workspace.put("t", "/a.md", b"hello", base_sha256=None, caller=LOCAL)
            assert again["version"] == 1
            based = await parts.workspace.put("t", "/a.md", b"hello", base_sha256="0" * 64, caller=LOCAL)
            assert based["version"] == 1
            await say(parts, "write /a.md hello")
            assert len((await parts.workspace.versions("t", "/a.md", caller=LOCAL))["versions"]) == 1
            assert len(facts(await log_of(parts, "t"), "artifact")) == 1

    run(scene())


def test_of_two_who_write_one_file_the_second_is_told_what_it_is_now(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await parts.workspace.put("t", "/a.md", b"first", base_sha256=None, caller=LOCAL)
            edits = [
                parts.workspace.put("t", "/a.md", text, base_sha256=sha("first"), caller=LOCAL)
                for text in (b"one", b"two")
            ]
            answers = await asyncio.gather(*edits, return_exceptions=True)
            [kept] = [one for one in answers if isinstance(one, dict)]
            [refused] = [one for one in answers if isinstance(one, Conflict)]
            assert refused.code == "artifact_changed"
            assert refused.fields == {"sha256": kept["sha256"], "version": "2"}
            taken = await refusal(parts.workspace.put("t", "/a.md", b"new", base_sha256=None, caller=LOCAL))
            assert taken == "artifact_changed"
            gone = await refusal(parts.workspace.put("t", "/b.md", b"new", base_sha256="0" * 64, caller=LOCAL))
            assert gone == "artifact_changed"

    run(scene())


def test_the_area_of_a_turn_lists_reads_writes_finds_and_searches(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await say(parts, "write /notes/a.md one\nwrite /notes/deep/b.txt two\nwrite /c.py print(1)")
            area = parts.runtime.areas[0].workspace
            assert [(one.path, one.is_folder) for one in await area.list("/")] == [("/c.py", False), ("/notes", True)]
            assert [one.path for one in await area.list("/notes")] == ["/notes/a.md", "/notes/deep"]
            read = await area.read("/notes/a.md", max_bytes=100)
            assert (read.content, read.tag) == (b"one", sha("one"))
            assert await refusal(area.read("/notes/a.md", max_bytes=2)) == "file_too_large"
            assert await refusal(area.read("/notes", max_bytes=2)) == "not_a_file"
            assert await refusal(area.read("/missing", max_bytes=2)) == "no_such_file"
            assert await refusal(area.read("/../x", max_bytes=2)) == "invalid_path"
            assert await refusal(area.list("/c.py")) == "not_a_folder"
            assert await refusal(area.list("/missing")) == "no_such_file"
            found = await area.find("**/*.md", limit=10)
            assert ([one.path for one in found.entries], found.truncated) == (["/notes/a.md"], False)
            found = await area.find("**", limit=1)
            assert (len(found.entries), found.truncated) == (1, True)
            hits = await area.search("o", limit=10)
            assert [(one.path, one.line, one.text) for one in hits.matches] == [
                ("/notes/a.md", 1, "one"),
                ("/notes/deep/b.txt", 1, "two"),
            ]
            hits = await area.search("o", "/notes", pattern="*.md", limit=10)
            assert [one.path for one in hits.matches] == ["/notes/a.md"]
            assert (await area.search("o", limit=1)).truncated

    run(scene())


def test_an_edit_by_the_agent_is_compared_with_what_it_read(tmp_path):
    runtime = WritingRuntime(gates=["word:0"])

    async def scene():
        async with threads(tmp_path, runtime) as parts:
            reply = await start(parts, "t", "write /a.md hello")
            await runtime.reached("word:0")
            area = runtime.areas[0].workspace
            assert await refusal(area.write("/a.md", b"x", base="0" * 64)) == "file_changed"
            assert await refusal(area.write("/a.md", b"x", new=True)) == "file_exists"
            assert (await area.write("/a.md", b"hello", new=True)).size == 5
            assert await refusal(area.write("/a.md/b", b"x")) == "not_a_folder"
            await area.write("/f/b", b"x")
            assert await refusal(area.write("/f", b"x")) == "not_a_file"
            assert await refusal(area.write("/", b"x")) == "not_a_file"
            await asyncio.gather(*(area.write("/a.md", f"{number}".encode()) for number in range(20)))
            assert len((await parts.workspace.versions("t", "/a.md", caller=LOCAL))["versions"]) == 21
            runtime.release("word:0")
            await settled(parts, reply["result"]["run_id"])
            assert await refusal(area.write("/a.md", b"late")) == "lease_lost"

    run(scene())


def test_each_limit_of_a_workspace_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "MAX_FILE_BYTES", 10)
    monkeypatch.setattr(usage, "MAX_PATHS", 3)
    monkeypatch.setattr(usage, "MAX_WORKSPACE_BYTES", 25)

    async def scene():
        async with threads(tmp_path) as parts:
            put = parts.workspace.put
            assert await refusal(put("t", "/a", b"x" * 11, base_sha256=None, caller=LOCAL)) == "file_too_large"
            for name in "abc":
                await put("t", f"/{name}", name.encode() * 8, base_sha256=None, caller=LOCAL)
            assert await refusal(put("t", "/d", b"x", base_sha256=None, caller=LOCAL)) == "too_many_files"
            full = put("t", "/a", b"x" * 10, base_sha256=sha("a" * 8), caller=LOCAL)
            assert await refusal(full) == "area_full"
            await parts.workspace.delete("t", "/b", caller=LOCAL)
            await put("t", "/d", b"x", base_sha256=None, caller=LOCAL)
            assert await refusal(put("t", "/b", b"x", base_sha256=None, caller=LOCAL)) == "too_many_files"

    run(scene())


def test_names_in_any_script_and_with_percent_signs_are_what_they_are(tmp_path):
    names = ["/日本/ファイル.md", "/%41", "/a%2Fb", "/ space . md", "/naïve 🍕.txt", "/'\"<>&?#;.md", "/e\u0301", "/é"]

    async def scene():
        async with threads(tmp_path) as parts:
            for name in names:
                await parts.workspace.put("t", name, name.encode(), base_sha256=None, caller=LOCAL)
            assert await paths(parts) == sorted(names)
            for name in names:
                assert await text_of(parts, name) == name
            for bad in ["a", "/a/", "//a", "/a/../b", "/./a", "/a\\b", "/a\0", "/a\n", "/" + "x" * 1024, "/%2e%2e/a"]:
                assert await refusal(parts.workspace.get("t", bad, caller=LOCAL)) == "invalid_path", bad

    run(scene())


# -- branches --------------------------------------------------------------------------------------------------------


def test_files_follow_branches(tmp_path):
    async def scene():
        async with branching(tmp_path) as parts:
            await say(parts, "write /base.md base", message_id="m1")
            await say(parts, "write /first.md one\nwrite /base.md changed", message_id="m2")
            assert await paths(parts) == ["/base.md", "/first.md"]
            await say(parts, "write /second.md two", message_id="m3", branch_from="m2")
            assert await paths(parts) == ["/base.md", "/second.md"]
            assert await text_of(parts, "/base.md") == "base"
            await parts.transcripts.choose_head("t", "m2", caller=LOCAL)
            assert await paths(parts) == ["/base.md", "/first.md"]
            assert await text_of(parts, "/base.md") == "changed"
            await parts.transcripts.choose_head("t", "m3", caller=LOCAL)
            assert await paths(parts) == ["/base.md", "/second.md"]
            area = parts.runtime.areas[-1].workspace
            assert [one.path for one in await area.list("/")] == ["/base.md", "/second.md"]

    run(scene())


def test_a_person_s_edit_is_of_the_branch_and_an_upload_of_all(tmp_path):
    async def scene():
        async with branching(tmp_path) as parts:
            await say(parts, "first", message_id="m1")
            await say(parts, "second", message_id="m2")
            await parts.workspace.put("t", "/edit.md", b"mine", base_sha256=None, caller=LOCAL)
            await parts.workspace.upload("t", pieces(b"up"), filename="up.txt", caller=LOCAL)
            await say(parts, "other", message_id="m3", branch_from="m2")
            assert await paths(parts) == ["/uploads/up.txt"]
            await parts.transcripts.choose_head("t", "m2", caller=LOCAL)
            assert await paths(parts) == ["/edit.md", "/uploads/up.txt"]

    run(scene())


@asynccontextmanager
async def branching(tmp_path):
    """A runtime that keeps branches: every turn leaves a checkpoint."""
    async with threads(tmp_path, BranchingRuntime()) as parts:
        yield parts


class BranchingRuntime(WritingRuntime):
    async def has_checkpoint(self, thread_id, checkpoint_id, /, *, caller):
        return True

    async def tip(self, thread_id, /, *, caller):
        return None

    async def go_to(self, thread_id, checkpoint_id, /, *, caller):
        return f"{checkpoint_id}+"

    async def copy_thread(self, thread_id, checkpoint_id, new_thread_id, /, *, caller):
        return None

    def start(self, turn, /):
        return _Checkpointed(super().start(turn), turn, self)


class _Checkpointed:
    def __init__(self, inner, turn, runtime):
        self._inner, self._turn, self._runtime = inner, turn, runtime

    async def stop(self):
        await self._inner.stop()

    async def __aiter__(self):
        yield Frame(
            method="checkpoints",
            data={"id": f"end-{self._turn.run_id}", "parent_id": f"base-{self._turn.run_id}"},
            timestamp=0,
        )
        async for frame in self._inner:
            yield frame


def test_a_fork_has_the_files_of_its_path_and_keeps_them_when_the_thread_goes(tmp_path):
    async def scene():
        async with branching(tmp_path) as parts:
            await parts.workspace.upload("t", pieces(b"up"), filename="up.txt", caller=LOCAL)
            await parts.workspace.delete("t", "/uploads/up.txt", caller=LOCAL)
            await parts.workspace.restore("t", "/uploads/up.txt", 1, caller=LOCAL)
            await say(parts, "write /a.md one\noffload /kept.txt aside", message_id="m1")
            await parts.workspace.put("t", "/a.md", b"edited", base_sha256=sha("one"), caller=LOCAL)
            await say(parts, "write /a.md two\nwrite /b.md b", message_id="m2")
            await parts.transcripts.fork("t", "m1", new_thread_id="copy", caller=LOCAL)
            assert await paths(parts, "copy") == ["/a.md", "/uploads/up.txt"]
            rows = (await parts.workspace.versions("copy", "/a.md", caller=LOCAL))["versions"]
            assert [(row["version"], row["author"]) for row in rows] == [(2, "person"), (1, "agent")]
            rows = (await parts.workspace.versions("copy", "/uploads/up.txt", caller=LOCAL))["versions"]
            assert [(row["version"], row["deleted"]) for row in rows] == [(3, False), (2, True), (1, False)]
            log = await log_of(parts, "copy")
            stored = await parts.storage.files("copy", turns=None, path="/a.md", caller=LOCAL)
            assert json.loads(log[stored[0].seq - 1].data)["payload"]["path"] == "/a.md"
            await say(parts, "hello", "copy")
            assert (await parts.runtime.areas[-1].offloads.read("/kept.txt", max_bytes=10)).content == b"aside"
            await parts.threads.delete("t", caller=LOCAL)
            await parts.files.collector.idle()
            assert await content(await parts.workspace.get("copy", "/a.md", caller=LOCAL)) == b"edited"
            assert blobs(parts) == {sha("one"), sha("edited"), sha("up")}
            assert [one.name for one in (parts.data_root / "offloads").iterdir()] == ["copy"]

    run(scene())


# -- deleting --------------------------------------------------------------------------------------------------------


def test_a_thread_s_files_go_with_it_and_one_that_gets_its_id_has_none(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await say(parts, "write /a.md one\noffload /x y")
            await parts.threads.create("other", caller=LOCAL)
            await parts.workspace.put("other", "/b.md", b"kept", base_sha256=None, caller=LOCAL)
            added = await parts.files.attachments.add(pieces(b"hi"), filename="a.txt", thread_id="t", caller=LOCAL)
            await parts.threads.delete("t", caller=LOCAL)
            await parts.files.collector.idle()
            assert blobs(parts) == {sha("kept")}
            assert not (parts.data_root / "attachments" / added["id"]).exists()
            assert list((parts.data_root / "offloads").iterdir()) == []
            await parts.threads.create("t", caller=LOCAL)
            assert await paths(parts) == []
            assert await refusal(parts.workspace.get("t", "/a.md", caller=LOCAL)) == "no_such_file"
            await parts.workspace.put("t", "/a.md", b"new", base_sha256=None, caller=LOCAL)

    run(scene())


def test_what_a_crash_left_is_collected_at_the_next_start(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await say(parts, "write /a.md one")
            async with parts.files.blobs.add_bytes(b"never a row"):
                pass
            (parts.data_root / "blobs" / "new" / "dead-half").write_bytes(b"ha")
            (parts.data_root / "attachments").mkdir(exist_ok=True)
            left = parts.data_root / "attachments" / "01890000-0000-7000-8000-000000000000"
            left.write_bytes(b"left")
        async with threads(tmp_path) as parts:
            await parts.files.collector.idle()
            await parts.files.attachments.sweep(structlog.get_logger())
            assert blobs(parts) == {sha("one")}
            assert list((parts.data_root / "blobs" / "new").iterdir()) == []
            assert not left.exists()
            assert await text_of(parts, "/a.md") == "one"

    run(scene())


def test_a_collection_spares_a_blob_whose_row_is_about_to_be_written(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await parts.files.collector.idle()
            asked, answer = asyncio.Event(), asyncio.Event()
            used_blobs = parts.storage.used_blobs

            async def slowly(digests, /):
                used = await used_blobs(digests)
                asked.set()
                await answer.wait()
                return used

            async with parts.files.blobs.add_bytes(b"before"):
                pass
            parts.storage.used_blobs = slowly
            collecting = asyncio.create_task(collect(parts.files.blobs, parts.storage))
            await asked.wait()
            await parts.workspace.put("t", "/a.md", b"before", base_sha256=None, caller=LOCAL)
            async with parts.files.blobs.add_bytes(b"held"):
                answer.set()
                assert await collecting == 0
                assert blobs(parts) == {sha("before"), sha("held")}
            parts.storage.used_blobs = used_blobs
            assert await collect(parts.files.blobs, parts.storage) == 1
            assert await text_of(parts, "/a.md") == "before"

    run(scene())


# -- what people do --------------------------------------------------------------------------------------------------


def test_a_person_writes_only_while_no_run_goes_on_and_uploads_at_any_time(tmp_path):
    runtime = WritingRuntime(gates=["word:0"])

    async def scene():
        async with threads(tmp_path, runtime) as parts:
            await parts.workspace.put("t", "/a.md", b"one", base_sha256=None, caller=LOCAL)
            reply = await start(parts, "t", "hello there")
            await runtime.reached("word:0")
            put = parts.workspace.put("t", "/a.md", b"two", base_sha256=sha("one"), caller=LOCAL)
            assert await refusal(put) == "thread_busy"
            assert await refusal(parts.workspace.delete("t", "/a.md", caller=LOCAL)) == "thread_busy"
            assert await refusal(parts.workspace.restore("t", "/a.md", 1, caller=LOCAL)) == "thread_busy"
            up = await parts.workspace.upload("t", pieces(b"up"), filename="up.txt", caller=LOCAL)
            assert up["path"] == "/uploads/up.txt"
            runtime.release("word:0")
            await settled(parts, reply["result"]["run_id"])
            await parts.workspace.put("t", "/a.md", b"two", base_sha256=sha("one"), caller=LOCAL)

    run(scene())


def test_a_person_writes_while_a_question_is_open(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await start(parts, "t", "question why")
            await parts.engine.when_idle()
            await parts.workspace.put("t", "/a.md", b"one", base_sha256=None, caller=LOCAL)
            assert await paths(parts) == ["/a.md"]

    run(scene())


def test_a_deleted_file_is_a_version_and_can_be_restored(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await parts.workspace.put("t", "/a.md", b"one", base_sha256=None, caller=LOCAL)
            gone = await parts.workspace.delete("t", "/a.md", caller=LOCAL)
            assert (gone["version"], gone["deleted"], gone["sha256"]) == (2, True, None)
            assert await paths(parts) == []
            assert await refusal(parts.workspace.get("t", "/a.md", caller=LOCAL)) == "no_such_file"
            assert await refusal(parts.workspace.delete("t", "/a.md", caller=LOCAL)) == "no_such_file"
            assert await text_of(parts, "/a.md", version=1) == "one"
            assert await refusal(parts.workspace.get("t", "/a.md", version=2, caller=LOCAL)) == "no_such_version"
            assert await refusal(parts.workspace.restore("t", "/a.md", 2, caller=LOCAL)) == "no_such_version"
            back = await parts.workspace.restore("t", "/a.md", 1, caller=LOCAL)
            assert (back["version"], back["sha256"]) == (3, sha("one"))
            assert await paths(parts) == ["/a.md"]
            listed = (await parts.workspace.versions("t", "/a.md", caller=LOCAL))["versions"]
            assert [(row["version"], row["deleted"]) for row in listed] == [(3, False), (2, True), (1, False)]
            told = facts(await log_of(parts, "t"), "artifact")
            assert [one["op"] for one in told] == ["created", "deleted", "created"]
            assert await refusal(parts.workspace.versions("t", "/none", caller=LOCAL)) == "no_such_file"

    run(scene())


def test_what_is_saved_is_text_of_two_mebibytes_at_most(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            put = parts.workspace.put
            big = b"x" * (use_case.MAX_EDITED_BYTES + 1)
            assert await refusal(put("t", "/a", big, base_sha256=None, caller=LOCAL)) == "file_too_large"
            assert await refusal(put("t", "/a", b"\xff", base_sha256=None, caller=LOCAL)) == "not_text"
            await put("t", "/a", big[1:], base_sha256=None, caller=LOCAL)

    run(scene())


def test_pages_go_from_the_newest_to_the_oldest_and_end(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            for number in range(5):
                await parts.workspace.put("t", f"/{number}", b"x%d" % number, base_sha256=None, caller=LOCAL)
            seen, cursor = [], None
            while True:
                shown = await parts.workspace.page("t", cursor=cursor, limit=2, caller=LOCAL)
                seen.append([row["path"] for row in shown["artifacts"]])
                cursor = shown["cursor"]
                if cursor is None:
                    break
            assert seen == [["/4", "/3"], ["/2", "/1"], ["/0"]]
            for bad in ({"limit": 0}, {"limit": 201}, {"cursor": "x"}):
                assert await refusal(parts.workspace.page("t", caller=LOCAL, **bad)) == "invalid_argument"

    run(scene())


def test_a_workspace_is_its_owner_s(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await parts.workspace.put("t", "/a", b"x", base_sha256=None, caller=LOCAL)
            stranger = {"caller": STRANGER}
            for asked in [
                parts.workspace.page("t", **stranger),
                parts.workspace.get("t", "/a", **stranger),
                parts.workspace.put("t", "/a", b"y", base_sha256=None, **stranger),
                parts.workspace.delete("t", "/a", **stranger),
                parts.workspace.versions("t", "/a", **stranger),
                parts.workspace.restore("t", "/a", 1, **stranger),
                parts.workspace.archive("t", [("/a", 1)], **stranger),
                parts.workspace.upload("t", pieces(b"x"), filename="a", **stranger),
                parts.workspace.changes("t", "run", **stranger),
            ]:
                assert await refusal(asked) == "no_such_thread"

    run(scene())


def test_html_svg_xml_and_unknown_types_are_only_downloads(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            shown = {}
            for name, given in {
                "a.html": b"<p>",
                "a.svg": b"<svg/>",
                "a.xml": b"<a/>",
                "a.bin": b"\0\1",
                "a.txt": b"x",
                "a.md": b"x",
                "a.png": b"\x89PNG",
                "a.pdf": b"%PDF",
                "a.py": b"x",
            }.items():
                up = await parts.workspace.upload("t", pieces(given), filename=name, caller=LOCAL)
                shown[name] = (await parts.workspace.get("t", up["path"], caller=LOCAL)).inline
            assert {name for name, inline in shown.items() if not inline} == {"a.html", "a.svg", "a.xml", "a.bin"}

    run(scene())


def test_a_name_that_is_taken_gets_a_number_and_a_hostile_one_is_made_harmless(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:

            async def up(name, given):
                answer = await parts.workspace.upload("t", pieces(given), filename=name, caller=LOCAL)
                return answer["path"].removeprefix("/uploads/")

            assert [await up("a.txt", one) for one in (b"1", b"2", b"3")] == ["a.txt", "a-1.txt", "a-2.txt"]
            assert await up("../../etc/passwd", b"x") == "passwd"
            assert await up("C:\\Users\\me\\b.txt", b"x") == "b.txt"
            assert await up("..", b"x") == "file"
            assert await up("", b"x") == "file-1"
            assert await up("a\0\nb.txt", b"x") == "ab.txt"
            assert await up("%2e%2e", b"y") == "file-2"
            assert await up("日本.md", b"x") == "日本.md"
            long = await up("ü" * 300 + ".txt", b"x")
            assert long.endswith(".txt")
            assert len(long.encode()) <= 200
            assert len((await up("ü" * 300 + ".txt", b"y")).encode()) <= 200

    run(scene())


def test_an_upload_is_streamed_and_one_that_is_too_large_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", 3 * 1024 * 1024)

    async def scene():
        async with threads(tmp_path) as parts:
            taken = 0

            async def endless():
                nonlocal taken
                while True:
                    taken += 65_536
                    yield b"x" * 65_536

            up = parts.workspace.upload("t", endless(), filename="big.bin", caller=LOCAL)
            assert await refusal(up) == "file_too_large"
            assert taken == 3 * 1024 * 1024 + 65_536
            assert list((parts.data_root / "blobs" / "new").iterdir()) == []
            assert blobs(parts) == set()

    run(scene())


def test_fifty_mebibytes_go_in_and_out_in_pieces(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            piece, size = bytes(range(256)) * 256, 50 * 1024 * 1024
            tracemalloc.start()
            up = await parts.workspace.upload(
                "t", pieces(*[piece] * (size // len(piece))), filename="big.bin", caller=LOCAL
            )
            stored = await parts.workspace.get("t", up["path"], caller=LOCAL)
            digest = hashlib.sha256()
            async with aclosing(stored.opened(0, stored.size)) as chunks:
                async for one in chunks:
                    digest.update(one)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert digest.hexdigest() == up["sha256"] == stored.tag
            assert (up["size"], up["inline"]) == (size, False)
            assert peak < 8 * 1024 * 1024
            assert await content(stored, 256, 260) == b"\0\1\2\3"

    run(scene())


# -- archives --------------------------------------------------------------------------------------------------------


def test_an_archive_holds_the_versions_that_were_pinned(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await parts.workspace.put("t", "/a.md", b"one", base_sha256=None, caller=LOCAL)
            await parts.workspace.put("t", "/a.md", b"two", base_sha256=sha("one"), caller=LOCAL)
            await parts.workspace.put("t", "/日本/%2F.txt", b"odd", base_sha256=None, caller=LOCAL)
            made = await parts.workspace.archive("t", [("/a.md", 1), ("/日本/%2F.txt", 1)], caller=LOCAL)
            data = await content(made)
            assert (len(data), hashlib.sha256(data).hexdigest(), made.inline) == (made.size, made.tag, False)
            with zipfile.ZipFile(io.BytesIO(data)) as opened:
                assert opened.testzip() is None
                assert {one.filename: opened.read(one) for one in opened.infolist()} == {
                    "a.md": b"one",
                    "日本/%2F.txt": b"odd",
                }
            for items, code in [
                ([], "invalid_argument"),
                ([("/a.md", 1), ("/a.md", 2)], "invalid_argument"),
                ([("/a.md", 3)], "no_such_version"),
                ([("/none", 1)], "no_such_file"),
                ([("/../a.md", 1)], "invalid_path"),
                ([("/a.md", 1)] * 51, "archive_too_large"),
            ]:
                assert await refusal(parts.workspace.archive("t", items, caller=LOCAL)) == code

    run(scene())


def test_an_archive_has_limits_of_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("pizzabot.host.workspace.archive.MAX_ARCHIVED_BYTES", 5)

    async def scene():
        async with threads(tmp_path) as parts:
            for name in "ab":
                await parts.workspace.put("t", f"/{name}", b"123", base_sha256=None, caller=LOCAL)
            (await parts.workspace.archive("t", [("/a", 1)], caller=LOCAL)).opened(0, 0)
            both = parts.workspace.archive("t", [("/a", 1), ("/b", 1)], caller=LOCAL)
            assert await refusal(both) == "archive_too_large"

    run(scene())


# -- changes ---------------------------------------------------------------------------------------------------------


def test_what_a_run_did_to_files_is_told_before_it_ends_and_equals_the_real_difference(tmp_path):
    async def scene():
        async with threads(tmp_path) as parts:
            await parts.workspace.put("t", "/a.md", b"one\ntwo\nthree\n", base_sha256=None, caller=LOCAL)
            await parts.workspace.put("t", "/same.md", b"same", base_sha256=None, caller=LOCAL)
            runtime = parts.runtime
            row = await say(parts, "write /b.md draft\nwrite /b.md final\nwrite /same.md x\nwrite /same.md same")
            [told] = facts(await log_of(parts, "t"), "changes")
            created = {"path": "/b.md", "op": "created", "sizeBefore": None, "sizeAfter": 5, "added": 1, "removed": 0}
            assert told["files"] == [created]
            assert (told["run_id"], told["truncated"]) == (row.run_id, False)
            names = [event.name for event in await log_of(parts, "t") if event.run_id == row.run_id][-3:]
            assert names == ["pizzabot.changes", "pizzabot.run", None]
            answer = await parts.workspace.changes("t", row.run_id, path="/b.md", caller=LOCAL)
            assert answer == {
                "files": [created],
                "truncated": False,
                "diff": "--- /b.md\n+++ /b.md\n@@ -0,0 +1 @@\n+final\n\\ No newline at end of file\n",
            }
            assert runtime.refused == []
            edited = await say(parts, "write /a.md changed")
            answer = await parts.workspace.changes("t", edited.run_id, caller=LOCAL)
            assert answer["files"] == [
                {"path": "/a.md", "op": "changed", "sizeBefore": 14, "sizeAfter": 7, "added": 1, "removed": 3}
            ]
            silent = await say(parts, "hello")
            nothing = await parts.workspace.changes("t", silent.run_id, caller=LOCAL)
            assert nothing == {"files": [], "truncated": False}
            assert len(facts(await log_of(parts, "t"), "changes")) == 2
            assert await refusal(parts.workspace.changes("t", "run_x", caller=LOCAL)) == "no_such_run"
            missing = parts.workspace.changes("t", edited.run_id, path="/b.md", caller=LOCAL)
            assert await refusal(missing) == "no_such_file"

    run(scene())


def test_changes_that_are_too_large_or_too_many_are_marked(tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "MAX_CHANGED_FILES", 2)
    monkeypatch.setattr(changes, "MAX_COMPARED_BYTES", 10)

    async def scene():
        async with threads(tmp_path) as parts:
            row = await say(parts, "write /a 12345678901\nwrite /b x")
            answer = await parts.workspace.changes("t", row.run_id, caller=LOCAL)
            assert answer["truncated"] is True
            assert [(one["path"], one["added"]) for one in answer["files"]] == [("/a", None), ("/b", 1)]
            answer = await parts.workspace.changes("t", row.run_id, path="/a", caller=LOCAL)
            assert (answer["diff"], answer["truncated"]) == (None, True)
            row = await say(parts, "write /1 a\nwrite /2 b\nwrite /3 c")
            answer = await parts.workspace.changes("t", row.run_id, caller=LOCAL)
            assert (len(answer["files"]), answer["truncated"]) == (2, True)

    run(scene())


def test_what_a_run_wrote_into_granted_folders_is_told_with_its_own_files(tmp_path):
    granted = tmp_path / "granted"
    granted.mkdir()
    (granted / "old.txt").write_text("one\ntwo\n")
    (granted / "same.txt").write_text("same")

    async def scene():
        async with threads(tmp_path, folders=OneFolder(granted)) as parts:
            text = "write /a.md x\nlocal /old.txt one\nlocal /new.txt a\nlocal /new.txt b\nlocal /same.txt same"
            await say(parts, text)
            [told] = facts(await log_of(parts, "t"), "changes")
            assert [(row["path"], row["op"], row["sizeBefore"], row["sizeAfter"]) for row in told["files"]] == [
                ("/a.md", "created", None, 1),
                ("/local/f/new.txt", "created", None, 1),
                ("/local/f/old.txt", "changed", 8, 3),
            ]
            assert [(row["added"], row["removed"]) for row in told["files"]] == [(1, 0), (1, 0), (1, 2)]
            shown = await parts.transcripts.page("t", caller=LOCAL)
            [item] = [item for item in shown["turns"][0]["items"] if item["kind"] == "changes"]
            assert item["files"] == told["files"]

    run(scene())


class OneFolder:
    """A folder of the disk as `/f`, the only one that is granted."""

    def __init__(self, root):
        self._root = root
        self._pool = FilePool()

    def __call__(self, caller):
        return self

    async def granted(self):
        return []

    async def read(self, path, /, *, max_bytes):
        return await self._area().read(path.removeprefix("/f"), max_bytes=max_bytes)

    async def write(self, path, content, /, *, base=None, new=False):
        return await self._area().write(path.removeprefix("/f"), content, base=base, new=new)

    def _area(self):
        return DiskArea(Root(str(self._root)), self._pool)
