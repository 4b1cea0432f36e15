"""Attachments: a reference in the checkpoint, bytes in the model's hands, words where they cannot be had."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime.attachments import MAX_TEXT, block_of
from pizzabot_hookspecs.files import AttachedFile
from pizzabot_hookspecs.wire import Message

from .agent_rig import agent, run

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


def attached(attachment_id: str, media_type: str, *, text: str | None = "look", message_id: str = "u1") -> Message:
    file: Any = {
        "type": "file",
        "url": f"attachment://{attachment_id}",
        "mediaType": media_type,
        "name": "what I sent.png",
        "attachmentId": attachment_id,
    }
    parts: tuple[Any, ...] = (file,) if text is None else ({"type": "text", "text": text}, file)
    return Message(id=message_id, role="user", parts=parts)


def blocks(model: ScriptedModel, number: int = 0) -> list[dict[str, Any]]:
    (content,) = [m.content for m in model.calls[number].messages if m.type == "human" and m.id == "u1"]
    return [block for block in content if isinstance(block, dict)]


@pytest.mark.parametrize("tools", [True, False])
def test_an_image_reaches_the_model_as_bytes_and_the_checkpoint_as_its_reference(
    tmp_path: Path, *, tools: bool
) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.attachments.files["a1"] = AttachedFile(id="a1", name="cat.png", media_type="image/png", content=PNG)
            model = ScriptedModel(script=[Reply("a cat"), Reply("still a cat")])
            descriptor = {"supports_tools": tools, "supports_vision": True}
            await one.say(model, descriptor=descriptor, messages=(attached("a1", "image/png"),))
            image = next(block for block in blocks(model) if block["type"] == "image")
            assert base64.b64decode(image["base64"]) == PNG
            assert image["mime_type"] == "image/png"
            values = str(await one.values())
            assert "attachment://a1" in values
            assert image["base64"] not in values
            await one.say(model, "and now?", descriptor=descriptor)
            assert any(block["type"] == "image" for block in blocks(model, 1))

    run(scenario())


def test_text_goes_in_as_text_a_document_with_its_name_and_an_image_only_to_a_model_that_may_see_it() -> None:
    text = AttachedFile(id="a", name="t.csv", media_type="text/csv", content="a,b\nä,2".encode())
    assert block_of(text, sees_images=False)["text"] == "Attached file 't.csv' (text/csv):\na,b\nä,2"
    long = AttachedFile(id="a", name="t.txt", media_type="text/plain", content=b"x" * (MAX_TEXT + 7))
    assert block_of(long, sees_images=True)["text"].endswith("[Cut here: 7 more characters.]")
    pdf = block_of(AttachedFile(id="a", name="b.pdf", media_type="application/pdf", content=b"%PDF"), sees_images=False)
    assert (pdf["type"], pdf["mime_type"], pdf["extras"]["filename"]) == ("file", "application/pdf", "b.pdf")
    image = AttachedFile(id="a", name="c.png", media_type="image/png", content=PNG)
    assert "cannot look at images" in block_of(image, sees_images=False)["text"]


def test_a_missing_attachment_is_named_and_a_message_of_files_alone_gets_a_text(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.attachments.files["a1"] = AttachedFile(
                id="a1", name="b.pdf", media_type="application/pdf", content=b"%PDF"
            )
            model = ScriptedModel(script=[Reply("ok"), Reply("ok")])
            await one.say(model, messages=(attached("a1", "application/pdf", text=None),))
            assert [block["type"] for block in blocks(model)][:2] == ["text", "file"]
            del one.attachments.files["a1"]
            await one.say(model, "again")
            assert "'what I sent.png' is no longer there" in str(blocks(model, 1))

    run(scenario())


def test_an_attachment_is_read_once_a_turn_and_messages_without_one_are_the_same_objects(tmp_path: Path) -> None:
    from pizzabot.testing.runtime_contract import call

    async def scenario() -> None:
        async with agent(tmp_path) as one:
            one.attachments.files["a1"] = AttachedFile(id="a1", name="n.txt", media_type="text/plain", content=b"note")
            steps = [Reply(tool_calls=[call("ls", f"c{n}", path="/")]) for n in range(3)]
            model = ScriptedModel(script=[*steps, Reply("done")])
            await one.say(model, messages=(attached("a1", "text/plain"),))
            assert len(model.calls) == 4
            assert one.attachments.asked == ["a1"]

    run(scenario())
