"""A client's parameters to a checked `RunRequest`: input forms, roles, parts, strategy, ids (spec/02 §3).

Clients send human messages only: other roles are dropped, and so is every part but text and stored attachments
(durable-runs rule 11, spec/02 §3.1). A message's id, parts and metadata are kept; its place (`seq`, `rev`, `run_id`) is
the server's to say. What cannot be understood is refused with the field that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pizzabot.host.ids import checked_id, checked_run_id, new_run_id, uuid7
from pizzabot.host.runs.fingerprints import fingerprint
from pizzabot.host.runs.message_metadata import metadata_of
from pizzabot.host.text import clean, to_json
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.storage_backends import Multitask, NewRun
from pizzabot_hookspecs.wire import JsonValue, Message, Part

MAX_MESSAGES = 64
"""Messages one request may bring."""
MAX_PARTS = 64
_HUMAN = frozenset({"user", "human"})
_INPUT_KEYS = ("messages", "prompt")


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What `run.start` asks for. `run_id` is the client's, or None; `message_id` is that of its last message.

    `branch_from` is the turn that gets a sibling. `turn` is where the run's turn stands, for a run that branches off;
    the host decides it at admission (`transcripts/branching.py`).
    """

    thread_id: str
    run_id: str | None
    messages: tuple[Message, ...]
    model: str | None
    config: Mapping[str, JsonValue]
    multitask: Multitask
    message_id: str | None
    idempotency_key: str | None
    fingerprint: str
    branch_from: str | None = None
    turn: Mapping[str, JsonValue] | None = None


def parse_run_start(thread_id: str, params: Mapping[str, Any], *, idempotency_key: str | None) -> RunRequest:
    """The request in `params`; raises `InvalidRequest` with the fields that are wrong."""
    params = clean(params)
    configurable = _configurable(thread_id, params.get("config"))
    model = _named(configurable, "model", "a model id `use:model`")
    fork = _named(configurable, "checkpoint_id", "the id of a checkpoint")
    if configurable.get("checkpoint_ns") not in (None, ""):
        raise _wrong("config.configurable.checkpoint_ns", "empty: a run goes on from a checkpoint of the thread itself")
    branch = params.get("branch_from")
    source = params["input"] if "input" in params else {key: params[key] for key in _INPUT_KEYS if key in params}
    if branch is not None and not source:
        source = None  # the same words once more
    messages, own_id = _messages(source)
    if branch is not None and (not isinstance(branch, str) or not branch):
        raise _wrong("branch_from", "the id of a turn")
    if branch is not None and fork is not None:
        raise _wrong("branch_from", "alone: config.configurable.checkpoint_id says where to begin, too")
    config: dict[str, JsonValue] = {} if fork is None else {"checkpoint_id": fork}
    run_id = params.get("run_id")
    branching = {} if branch is None else {"branch_from": branch}
    return RunRequest(
        thread_id=thread_id,
        run_id=None if run_id is None else checked_run_id(run_id),
        messages=messages,
        model=model,
        config=config,
        multitask=_multitask(params),
        message_id=None if fork is not None else own_id,
        idempotency_key=checked_key(idempotency_key),
        fingerprint=fingerprint(thread=thread_id, input=source, config=config, model=model, **branching),
        branch_from=branch,
    )


def _wrong(field: str, expected: str) -> InvalidRequest:
    return InvalidRequest("invalid_argument", f"{field} must be {expected}", fields={field: f"must be {expected}"})


def checked_key(key: str | None) -> str | None:
    """An idempotency key. Raises `InvalidRequest` `invalid_argument`."""
    if key is None or 1 <= len(key) <= 255:
        return key
    raise _wrong("Idempotency-Key", "1 to 255 characters")


def _named(configurable: Mapping[str, Any], key: str, expected: str) -> str | None:
    value = configurable.get(key)
    if value is None or (isinstance(value, str) and value):
        return value
    raise _wrong(f"config.configurable.{key}", expected)


def _configurable(thread_id: str, config: object) -> Mapping[str, Any]:
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise _wrong("config", "an object")
    configurable = config.get("configurable")
    if configurable is None:
        return {}
    if not isinstance(configurable, Mapping):
        raise _wrong("config.configurable", "an object")
    named = configurable.get("thread_id")
    if named is not None and named != thread_id:
        raise InvalidRequest(
            "thread_id_mismatch",
            f"config.configurable.thread_id {named!r} is not the thread of the address, {thread_id!r}",
            fields={"config.configurable.thread_id": "must equal the thread of the address"},
        )
    return configurable


def _multitask(params: Mapping[str, Any]) -> Multitask:
    value = params.get("multitask_strategy", params.get("multitaskStrategy"))
    if value is None:
        return Multitask.INTERRUPT
    try:
        return Multitask(value)
    except ValueError:
        raise _wrong("multitask_strategy", "interrupt, enqueue or reject") from None


def _messages(source: object) -> tuple[tuple[Message, ...], str | None]:
    """The human messages of an input, and the id that the client gave the last one."""
    if source is None:
        return (), None
    if not isinstance(source, Mapping):
        raise _wrong("input", "an object with `messages` or `prompt`, or null")
    prompt = source.get("prompt")
    if isinstance(prompt, str):
        return _said([Message(id=uuid7(), role="user", parts=({"type": "text", "text": prompt},))]), None
    given = source.get("messages")
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list):
        raise _wrong("input.messages", "a list of messages")
    if len(given) > MAX_MESSAGES:
        raise _wrong("input.messages", f"at most {MAX_MESSAGES} messages")
    messages: list[Message] = []
    own_id: str | None = None
    for position, item in enumerate(given):
        message = _message(item, f"input.messages.{position}")
        if message is not None:
            messages.append(message)
            own_id = item["id"] if isinstance(item.get("id"), str) else None
    if len({message.id for message in messages}) != len(messages):
        raise _wrong("input.messages", "messages with different ids")
    return _said(messages), own_id


def _said(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, if there is something in them: models that are asked nothing fail, or answer at random."""
    if any(message.text.strip() or any(part["type"] == "file" for part in message.parts) for message in messages):
        return tuple(messages)
    raise _wrong("input.messages", "at least one human message with text or a file")


def _message(item: object, field: str) -> Message | None:
    if not isinstance(item, Mapping):
        raise _wrong(field, "an object")
    named = "role" if item.get("role") is not None else "type"
    role = item.get(named)
    if role is not None and not isinstance(role, str):
        raise _wrong(f"{field}.{named}", "text")
    if role is not None and role not in _HUMAN:
        return None
    given_id = item.get("id")
    message_id = checked_id(given_id, what=f"{field}.id") if isinstance(given_id, str) else uuid7()
    return Message(id=message_id, role="user", parts=_parts(item, field), metadata=metadata_of(item, field))


def _parts(item: Mapping[str, Any], field: str) -> tuple[Part, ...]:
    blocks = item.get("parts", item.get("content"))
    if blocks is None or isinstance(blocks, str):
        return ({"type": "text", "text": blocks or ""},)
    if not isinstance(blocks, list):
        raise _wrong(f"{field}.content", "text or a list of parts")
    if len(blocks) > MAX_PARTS:
        raise _wrong(f"{field}.content", f"at most {MAX_PARTS} parts")
    parts = [part for block in blocks if (part := _part(block)) is not None]
    return tuple(parts) or ({"type": "text", "text": ""},)


UNKNOWN_TYPE = "application/octet-stream"
"""Of a file whose part does not say it: the attachment's own row does, where there is one."""


def _part(block: object) -> Part | None:
    """A part that a client may send: text, or a file that is a stored attachment; anything else is dropped."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, Mapping):
        return None
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    url = block.get("url")
    if block.get("type") == "file" and isinstance(url, str) and url.startswith("attachment://"):
        attachment_id = url.removeprefix("attachment://")
        named = (block.get(key) for key in ("mediaType", "mime_type", "mimeType"))
        media_type = next((kind for kind in named if isinstance(kind, str)), UNKNOWN_TYPE)
        if attachment_id:
            return {"type": "file", "url": url, "mediaType": media_type, "attachmentId": attachment_id}
    return None


def input_of(request: RunRequest) -> dict[str, Any]:
    """What the run row keeps of the input, read back by `messages_of`."""
    return {"messages": [message.to_json() for message in request.messages]}


def messages_of(stored: Mapping[str, Any]) -> tuple[Message, ...]:
    return tuple(Message.from_json(message) for message in stored.get("messages", ()))


def new_run_of(request: RunRequest) -> NewRun:
    """The run to admit; under an id of its own where the client has none."""
    return NewRun(
        run_id=request.run_id or new_run_id(),
        thread_id=request.thread_id,
        input=input_of(request),
        options=options_of(request),
        fingerprint=request.fingerprint,
        multitask=request.multitask,
        idempotency_key=request.idempotency_key,
        message_id=request.message_id,
    )


def options_of(request: RunRequest) -> dict[str, Any]:
    options: dict[str, Any] = {"model": request.model, "config": dict(request.config)}
    if request.turn is not None:
        options["turn"] = dict(request.turn)
    return dict(orjson.loads(to_json(options)))
