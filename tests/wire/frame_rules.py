"""What every frame that leaves the server has to be (design/wire.md §3 to §5), as JSON schemas and rules over a stream.

`check_stream` takes all frames of a thread from its first on, in the JS view. It says which frame breaks which rule.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from jsonschema import Draft202012Validator

Frame = dict[str, Any]
ENDS = {"completed", "failed", "interrupted"}
STREAMED = ("message-start", "content-block-start", "content-block-delta", "content-block-finish")

_TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 0}


def _object(
    required: dict[str, Any], optional: dict[str, Any] | None = None, *, closed: bool = False
) -> dict[str, Any]:
    schema = {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}
    return {**schema, "additionalProperties": False} if closed else schema


def _event(name: str, required: dict[str, Any] | None = None, optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return _object({"event": {"const": name}, **(required or {})}, optional, closed=True)


def _one_of(*schemas: dict[str, Any]) -> dict[str, Any]:
    """Told apart by `event`, so that a violation names the fault and not the whole list."""
    rules = [{"if": {"properties": {"event": schema["properties"]["event"]}}, "then": schema} for schema in schemas]
    names = sorted({schema["properties"]["event"]["const"] for schema in schemas})
    return {"type": "object", "required": ["event"], "properties": {"event": {"enum": names}}, "allOf": rules}


_DELTA = {
    "oneOf": [
        _object({"type": {"const": "text-delta"}, "text": _TEXT}, closed=True),
        _object({"type": {"const": "reasoning-delta"}, "reasoning": _TEXT}, closed=True),
        _object({"type": {"const": "data-delta"}, "data": {}}, closed=True),
        _object({"type": {"const": "block-delta"}, "fields": {"type": "object"}}, closed=True),
    ]
}
_CHUNK = _object({"type": {"const": "tool_call_chunk"}, "args": _TEXT}, {"id": {}, "name": {}, "index": {}})
_WHOLE = {
    "oneOf": [
        _object({"type": {"const": "text"}, "text": _TEXT}),
        _object({"type": {"const": "reasoning"}, "reasoning": _TEXT}),
        _object({"type": {"enum": ["tool_call", "invalid_tool_call"]}, "id": _NAME, "name": _NAME, "args": {}}),
    ]
}
_MODEL_RUN = {"run_id": _NAME}
_MESSAGES = _one_of(
    _event(
        "message-start",
        {"role": {"const": "ai"}, "id": _NAME, **_MODEL_RUN},
        {"metadata": {"type": "object"}, "name": _NAME},
    ),
    _event("content-block-start", {"index": _COUNT, "content": _object({"type": _NAME}), **_MODEL_RUN}),
    {
        **_event("content-block-delta", {"index": _COUNT, **_MODEL_RUN}, {"delta": _DELTA, "content": _CHUNK}),
        "oneOf": [{"required": ["delta"]}, {"required": ["content"]}],
    },
    _event("content-block-finish", {"index": _COUNT, "content": _WHOLE, **_MODEL_RUN}),
    _event("message-finish", _MODEL_RUN, {"usage": {"type": ["object", "null"]}, "metadata": {"type": "object"}}),
    _event("error", {"message": _NAME, "code": _NAME, **_MODEL_RUN}, {"id": _NAME}),
)

_COMMAND = _object({"lg_name": {"const": "Command"}, "update": _object({"messages": {"type": "array", "minItems": 1}})})
_TOOL_MESSAGE = _object({"type": {"const": "tool"}, "content": {"type": ["string", "array"]}, "tool_call_id": _NAME})
_CALL = {"tool_call_id": _NAME}
_TOOLS = _one_of(
    _event("tool-started", {**_CALL, "tool_name": _NAME, "input": {"type": ["object", "string"]}}),
    _event("tool-output-delta", {**_CALL, "delta": _TEXT}, {"tool_name": _NAME}),
    _event(
        "tool-finished",
        {**_CALL, "output": {"anyOf": [_COMMAND, _TOOL_MESSAGE, {"not": {"type": "object"}}]}},
        {"tool_name": _NAME},
    ),
    _event("tool-error", {**_CALL, "message": _NAME}, {"tool_name": {"type": ["string", "null"]}, "code": _NAME}),
)

_CAUSE = _object({"type": {"const": "toolCall"}, "tool_call_id": _NAME}, closed=True)
_ROOT_LIFECYCLE = _one_of(
    _event("running", {"graph_name": _NAME}),
    _event("completed", None, {"code": {"const": "CANCELLED"}, "graph_name": _NAME}),
    _event("failed", {"error": _NAME, "code": _NAME}, {"graph_name": _NAME}),
    _event("interrupted", None, {"code": {"const": "SUPERSEDED"}, "graph_name": _NAME}),
)
_CHILD = {"graph_name": _NAME, "trigger_call_id": {"type": ["string", "null"]}, "cause": _CAUSE}
_CHILD_LIFECYCLE = _one_of(
    _event("started", {"graph_name": _NAME, "cause": _CAUSE}, {"trigger_call_id": {"type": ["string", "null"]}}),
    _event("completed", None, _CHILD),
    _event("failed", None, {**_CHILD, "error": _TEXT}),
    _event("interrupted", None, _CHILD),
)

_MESSAGE = _object(
    {"type": {"enum": ["human", "ai", "tool", "system"]}, "id": _NAME, "content": {"type": ["string", "array"]}},
    {"tool_calls": {"type": "array"}, "tool_call_id": _NAME, "usage_metadata": {"type": ["object", "null"]}},
)
_VALUES = {
    **_object({"messages": {"type": "array", "items": _MESSAGE}}),
    "propertyNames": {"not": {"pattern": "^_"}},  # private channels and `__interrupt__`
    "not": {"required": ["hitl_edited_tool_calls"]},
}
_CHECKPOINTS = _object(
    {"id": _NAME, "step": {"type": "integer"}, "source": {"enum": ["input", "loop", "update", "fork"]}},
    {"parent_id": _NAME},
    closed=True,
)
_REQUESTED = _object(
    {"interrupt_id": _NAME, "payload": {"type": "object"}, "value": {"type": "object"}},
    {"kind": {"enum": ["approval", "input", "recovery"]}},
    closed=True,
)
_ACTION = _object({"name": _NAME, "args": {"type": "object"}, "args_schema": {"type": "object"}, "argsSchema": {}})
_CONFIG = _object({"action_name": _NAME, "actionName": _NAME, "allowed_decisions": {}, "allowedDecisions": {}})
_ACTIONS, _CONFIGS = ({"type": "array", "items": item, "minItems": 1, "maxItems": 1} for item in (_ACTION, _CONFIG))
_APPROVAL = _object(
    {
        "action_requests": _ACTIONS,
        "actionRequests": _ACTIONS,
        "review_configs": _CONFIGS,
        "reviewConfigs": _CONFIGS,
    }
)
_CUSTOM = _object({"payload": {}}, {"name": _NAME}, closed=True)
_ANSWERED = _object({"interrupt_ids": {"type": "array", "items": _NAME, "minItems": 1}}, closed=True)

PAYLOADS = {
    "messages": _MESSAGES,
    "tools": _TOOLS,
    "values": _VALUES,
    "checkpoints": _CHECKPOINTS,
    "input.requested": _REQUESTED,
    "input.answered": _ANSWERED,
    "custom": _CUSTOM,
}
ENVELOPE = _object(
    {
        "type": {"const": "event"},
        "event_id": {"type": "string", "pattern": "^synth:[^:]+:[0-9]+$"},
        "seq": {"type": "integer", "minimum": 1},
        "method": {"enum": [*PAYLOADS, "lifecycle"]},
        "params": _object(
            {
                "namespace": {"type": "array", "items": _NAME},
                "timestamp": {"type": "integer", "minimum": 10**12},
                "data": {},
            },
            {"node": _NAME},
            closed=True,
        ),
    },
    closed=True,
)


def check_payload(frame: Frame) -> None:
    """Envelope and payload of one frame."""
    _valid(ENVELOPE, frame, frame)
    method, params = frame["method"], frame["params"]
    schema = PAYLOADS.get(method) or (_CHILD_LIFECYCLE if params["namespace"] else _ROOT_LIFECYCLE)
    _valid(schema, params["data"], frame)
    if method == "input.requested":
        assert params["data"]["payload"] == params["data"]["value"], frame
        if params["data"].get("kind") == "approval":
            _valid(_APPROVAL, params["data"]["payload"], frame)
    if method == "messages":
        assert params.get("node"), f"a message without its node: {frame}"
    if method in ("messages", "tools"):
        assert params["namespace"], f"without the segment of its own task: {frame}"


def check_stream(frames: Sequence[Frame]) -> None:
    """Every rule, over all frames of a thread from its first on."""
    for frame in frames:
        check_payload(frame)
        json.dumps(frame, allow_nan=False)
    check_numbers(frames)
    for run in runs_of(frames):
        check_automaton(run)
        check_state_order(run)
        check_messages(run)
        check_interrupts(run)
        check_tools(run)
        check_children(run)


def check_numbers(frames: Sequence[Frame]) -> None:
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1)), "a gap, or one twice"
    ids = [frame["event_id"] for frame in frames]
    assert len(set(ids)) == len(ids)
    assert all(frame["event_id"].endswith(f":{frame['seq']}") for frame in frames)
    times = [frame["params"]["timestamp"] for frame in frames]
    assert times == sorted(times), "time goes back"


def runs_of(frames: Sequence[Frame]) -> list[list[Frame]]:
    """The frames by run, in order. Runs of a thread do not overlap."""
    runs: list[list[Frame]] = []
    for frame in frames:
        if not runs or _run(runs[-1][0]) != _run(frame):
            runs.append([])
        runs[-1].append(frame)
    ids = [_run(run[0]) for run in runs]
    assert len(set(ids)) == len(ids), f"runs overlap: {ids}"
    return runs


def check_automaton(run: Sequence[Frame]) -> None:
    """`running` first, one end last, in between nothing of the root's. A recovered run runs again."""
    root = [(index, _data(frame)["event"]) for index, frame in enumerate(run) if _is_root(frame, "lifecycle")]
    assert root[0] == (0, "running"), root
    assert root[-1][0] == len(run) - 1, f"frames after the end: {run[root[-1][0] :]}"
    assert root[-1][1] in ENDS, root
    assert {event for _, event in root[1:-1]} <= {"running"}, root


def check_state_order(run: Sequence[Frame]) -> None:
    """The frame before `values` is its checkpoint: clients pair the two. A checkpoint without values is harmless."""
    for before, frame in pairwise(run):
        if frame["method"] == "values":
            pair = (before["method"], before["params"]["namespace"])
            expected = ("checkpoints", frame["params"]["namespace"])
            assert pair == expected, f"values without their checkpoint: {str(frame)[:500]}"


def check_messages(run: Sequence[Frame]) -> None:
    """Each message starts once, is never interleaved by key, has blocks in order, and ends before the run does."""
    open_blocks: dict[tuple[Any, ...], dict[int, list[str]]] = {}
    for frame in run:
        if frame["method"] != "messages":
            continue
        data, key = _data(frame), (*frame["params"]["namespace"], frame["params"]["node"], _data(frame)["run_id"])
        event = data["event"]
        if event == "message-start":
            assert key not in open_blocks, f"starts twice: {frame}"
            open_blocks[key] = {}
            continue
        assert key in open_blocks, f"before its start or after its end: {frame}"
        if event in ("message-finish", "error"):
            del open_blocks[key]
            continue
        _check_block(open_blocks[key], event, data, frame)
    assert not open_blocks, f"never ended: {list(open_blocks)}"


def _check_block(blocks: dict[int, list[str]], event: str, data: dict[str, Any], frame: Frame) -> None:
    index = data["index"]
    if event == "content-block-start":
        assert index not in blocks, f"a block starts twice: {frame}"
        blocks[index] = []
        return
    assert index in blocks, f"a block that did not start: {frame}"
    if event == "content-block-delta":
        blocks[index].append(_piece(data))
        return
    whole = data["content"]
    streamed = "".join(blocks[index])
    if whole["type"] == "tool_call":
        assert json.loads(streamed or "{}") == whole["args"], frame
    else:
        assert streamed == whole.get("text", whole.get("reasoning", streamed)), frame


def _piece(data: dict[str, Any]) -> str:
    if "content" in data:
        return str(data["content"]["args"])
    return str(data["delta"].get("text", data["delta"].get("reasoning", "")))


def check_interrupts(run: Sequence[Frame]) -> None:
    """Asked once in a run, before the root's `interrupted`; answered right behind `running`."""
    asked = [_data(frame)["interrupt_id"] for frame in run if frame["method"] == "input.requested"]
    assert len(set(asked)) == len(asked), "asked twice"
    end = _data(run[-1])
    paused = end["event"] == "interrupted" and "code" not in end
    assert bool(asked) == paused or end.get("code") == "NEEDS_ATTENTION", (asked, end)
    for index, frame in enumerate(run):
        if frame["method"] == "input.answered":
            assert index == 1, "not right behind running"
            assert frame["params"]["namespace"] == []


def check_tools(run: Sequence[Frame]) -> None:
    """A call that ends was told to start, or ends with what the person or the runtime decided about it."""
    started: dict[str, list[str]] = {}
    for frame in run:
        if frame["method"] == "tools":
            data = _data(frame)
            namespace = started.setdefault(data["tool_call_id"], frame["params"]["namespace"])
            assert namespace == frame["params"]["namespace"], f"a call moved: {frame}"
            assert namespace[-1].startswith("tools:"), frame


def check_children(run: Sequence[Frame]) -> None:
    """What is said and called below a task comes after the child's `started`: clients drop what they cannot place."""
    announced: set[tuple[str, ...]] = {()}
    for frame in run:
        namespace = tuple(frame["params"]["namespace"])
        if frame["method"] == "lifecycle" and namespace and _data(frame)["event"] == "started":
            announced.add(namespace)
        elif frame["method"] in ("messages", "tools"):
            assert namespace[:-1] in announced, f"below nothing that was announced: {frame}"


def _valid(schema: dict[str, Any], value: Any, frame: Frame) -> None:
    error = next(iter(Draft202012Validator(schema).iter_errors(value)), None)
    if error is not None:
        where = "/".join(map(str, error.absolute_path))
        shown = json.dumps(frame, ensure_ascii=False)[:1500]
        raise AssertionError(f"{frame.get('method')} {where}: {error.message[:300]} in {shown}")


def _run(frame: Frame) -> str:
    return str(frame["event_id"].split(":")[1])


def _data(frame: Frame) -> dict[str, Any]:
    return dict(frame["params"]["data"])


def _is_root(frame: Frame, method: str) -> bool:
    return bool(frame["method"] == method and frame["params"]["namespace"] == [])
