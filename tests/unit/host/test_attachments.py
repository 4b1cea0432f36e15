"""Attachments: what a run's messages refer to, whose they are, and that a failure leaves nothing behind."""

from contextlib import asynccontextmanager

import pytest
from engine_rig import log_of, rig, run, settled

from pizzabot.host.attachments.kinds import MAX_DOCUMENT_BYTES, MAX_IMAGE_BYTES, ceiling_of, type_of
from pizzabot.host.attachments.names import clean_name
from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Caller, PizzabotError, Unavailable

STRANGER = Caller(owner="somebody else")


@asynccontextmanager
async def attaching(tmp_path):
    data_root = tmp_path / "root"
    data_root.mkdir(exist_ok=True)
    async with rig(tmp_path / "app.sqlite", ScriptedRuntime(), data_root=data_root) as parts:
        parts.data_root = data_root
        yield parts


async def pieces(*given):
    for one in given:
        yield one


async def add(parts, name="a.png", content=b"\x89PNG", caller=LOCAL, **more):
    return await parts.files.attachments.add(pieces(content), filename=name, caller=caller, **more)


async def send(parts, *ids, thread_id="t"):
    parts_of = [{"type": "file", "url": f"attachment://{one}", "mediaType": "text/html", "name": "x"} for one in ids]
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, *parts_of]}
    body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [message]}}}
    reply = await parts.runs.command(thread_id, body, caller=LOCAL)
    await settled(parts, reply.envelope["result"]["run_id"])
    return [part for part in parts.runtime.turns[-1].messages[0].parts if part["type"] == "file"]


async def refusal(awaitable):
    with pytest.raises(PizzabotError) as refused:
        await awaitable
    return refused.value.code


def kept(parts):
    return {path.name for path in (parts.data_root / "attachments").iterdir() if path.is_file()}


def test_a_message_s_file_is_what_the_server_knows_and_not_what_the_client_says(tmp_path):
    async def scene():
        async with attaching(tmp_path) as parts:
            row = await add(parts)
            assert await send(parts, row["id"]) == [
                {
                    "type": "file",
                    "url": row["url"],
                    "mediaType": "image/png",
                    "name": "a.png",
                    "attachmentId": row["id"],
                    "sizeBytes": 4,
                }
            ]
            assert b"text/html" not in b"".join(event.data for event in await log_of(parts, "t"))
            shown = await parts.transcripts.page("t", caller=LOCAL)
            assert shown["turns"][0]["message"]["content"][1]["name"] == "a.png"

    run(scene())


def test_what_a_message_refers_to_belongs_to_its_thread_and_goes_with_it(tmp_path):
    async def scene():
        async with attaching(tmp_path) as parts:
            mine, other = await add(parts), await add(parts, "b.txt", b"b")
            await send(parts, mine["id"])
            await send(parts, mine["id"], thread_id="second")
            claimed = await parts.storage.attachment(mine["id"], caller=LOCAL)
            assert claimed.thread_id == "t"
            await parts.threads.delete("t", caller=LOCAL)
            assert kept(parts) == {mine["id"], other["id"]}
            await parts.threads.delete("second", caller=LOCAL)
            assert kept(parts) == {other["id"]}
            assert await refusal(parts.files.attachments.get(mine["id"], caller=LOCAL)) == "no_such_attachment"

    run(scene())


def test_a_reference_without_a_type_gets_that_of_the_attachment(tmp_path):
    async def scene():
        async with attaching(tmp_path) as parts:
            row = await add(parts)
            content = [{"type": "text", "text": "look"}, {"type": "file", "url": row["url"]}]
            message = {"role": "user", "content": content}
            body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [message]}}}
            reply = await parts.runs.command("t", body, caller=LOCAL)
            await settled(parts, reply.envelope["result"]["run_id"])
            assert parts.runtime.turns[-1].messages[0].parts[1]["mediaType"] == "image/png"

    run(scene())


def test_a_turn_resolves_the_bytes_of_its_own_person_s_attachments_only(tmp_path):
    async def scene():
        async with attaching(tmp_path) as parts:
            mine, theirs = await add(parts), await add(parts, "b.txt", b"b", caller=STRANGER)
            sent = await send(parts, mine["id"], theirs["id"], "nobody-s")
            assert [part.get("name") for part in sent] == ["a.png", None, None]
            resolve = parts.runtime.turns[-1].files.attachments.resolve
            found = await resolve(mine["id"])
            assert (found.name, found.media_type, found.content) == ("a.png", "image/png", b"\x89PNG")
            for other in (theirs["id"], "nobody-s", "../../etc/passwd"):
                assert await resolve(other) is None
            assert await refusal(parts.files.attachments.get(theirs["id"], caller=LOCAL)) == "no_such_attachment"
            assert await parts.files.attachments.delete(theirs["id"], caller=LOCAL) is False
            (parts.data_root / "attachments" / mine["id"]).unlink()
            assert await resolve(mine["id"]) is None
            assert await refusal(parts.files.attachments.get(mine["id"], caller=LOCAL)) == "no_such_attachment"
            assert await parts.files.attachments.delete(mine["id"], caller=LOCAL) is True

    run(scene())


def test_bytes_without_a_row_do_not_stay(tmp_path):
    async def scene():
        async with attaching(tmp_path) as parts:

            async def broken(attachment, /, *, caller):
                raise Unavailable("storage_failed", "the disk is full")

            parts.storage.add_attachment, works = broken, parts.storage.add_attachment
            assert await refusal(add(parts)) == "storage_failed"
            parts.storage.add_attachment = works
            assert await refusal(add(parts, thread_id="none")) == "no_such_thread"
            assert await refusal(add(parts, "a.exe")) == "unsupported_type"
            assert kept(parts) == set()
            assert list((parts.data_root / "attachments" / ".new").iterdir()) == []

    run(scene())


def test_a_kind_is_the_browser_s_where_it_is_known_and_else_the_extension_s():
    assert type_of("a.exe", "IMAGE/PNG; charset=x") == "image/png"
    assert type_of("a.JPG", "application/octet-stream") == "image/jpeg"
    assert type_of("a.md", "") == "text/markdown"
    assert type_of("a.tsx", "video/mp2t") == "text/plain"
    assert type_of("a.xlsx", None).endswith("spreadsheetml.sheet")
    assert type_of("json", None) is None
    assert type_of("a.svg", "image/svg+xml") is None
    assert ceiling_of("image/png") == MAX_IMAGE_BYTES == 3_932_160
    assert ceiling_of("application/pdf") == MAX_DOCUMENT_BYTES == 4_718_592


def test_names_are_the_last_part_of_a_path_and_never_nothing():
    assert clean_name("C:\\temp\\a.txt") == "a.txt"
    assert clean_name("/etc/ü\0\r\n.png") == "ü.png"
    assert [clean_name(name) for name in ("", "..", "a/", " . ")] == ["file"] * 4
    assert clean_name("x" * 500 + ".png") == "x" * 196 + ".png"
    assert len(clean_name("🍕" * 300).encode()) == 200
