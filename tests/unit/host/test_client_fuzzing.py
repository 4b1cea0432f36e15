"""Whatever JSON a client sends: it is understood, or refused with a code. Nothing else ever comes out."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from engine_rig import rig
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pizzabot.host.runs.answers import checked_answer
from pizzabot.host.runs.requests import parse_run_start
from pizzabot.host.runs.responding import parse_responses
from pizzabot.host.text import to_json
from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, InvalidRequest
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, InterruptState

KEYS = (
    "input", "messages", "prompt", "role", "type", "content", "parts", "id", "text", "url", "mediaType", "config",
    "configurable", "model", "checkpoint_id", "checkpoint_ns", "thread_id", "multitask_strategy", "multitaskStrategy",
    "run_id", "keys", "responses", "response", "interrupt_id", "interruptId", "decisions", "decision", "choice",
    "message", "edited_action", "editedAction", "editedArgs", "editedName", "name", "args", "update", "goto",
    "action_requests", "review_configs", "action_name", "allowed_decisions", "args_schema", "answer_schema",
    "properties", "additionalProperties", "$ref", "items", "anyOf", "required", "version", "mode", "kind", "value",
    "values", "size",
)  # fmt: skip
WORDS = (
    "user", "human", "text", "file", "attachment://a", "enqueue", "approve", "edit", "reject", "respond", "retry",
    "send", "t", "i", "object", "string", "#", "#/$defs/A", "\ud83d", "\0", "", "(",
)  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS) | st.text(max_size=8)
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6)
MANY = settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
FEW = settings(MANY, max_examples=120)
CODES = {"invalid_argument", "invalid_id", "thread_id_mismatch", "not_supported", "invalid_decision"}

ACTION = {"name": "send", "args": {"to": "a"}, "args_schema": {"properties": {"to": {"type": "string"}}}}
REVIEW = {"action_name": "send", "allowed_decisions": ["approve", "edit", "reject", "respond"]}
FORM = {"version": 2, "mode": "form", "fields": [{"name": "size", "type": "select", "options": ["s", "l"]}]}
PAYLOADS = OBJECTS | st.just({"action_requests": [ACTION], "review_configs": [REVIEW]}) | st.just(FORM)


def answered(call, *given, **named):
    """What the call makes of it; a refusal has a code, a line and fields."""
    told = None
    try:
        return call(*given, **named)
    except InvalidRequest as refused:
        told = refused
    assert told.code in CODES
    assert told.fields
    assert "\n" not in told.detail
    return None


@MANY
@given(params=OBJECTS | st.fixed_dictionaries({"input": JSON}, optional={"config": JSON, "run_id": JSON}))
@example(params={"messages": [{"role": ["user"], "content": "x"}]})
@example(params={"messages": [{"type": {"a": 1}, "content": "x"}]})
@example(params={"messages": [{"content": [{"type": ["text"], "text": "x"}]}]})
@example(params={"prompt": "x", "config": {"configurable": {"checkpoint_id": ["c"]}}})
def test_any_parameters_start_a_run_or_are_refused(params):
    request = answered(parse_run_start, "t", params, idempotency_key=None)
    if request is not None:
        assert set(request.config) <= {"checkpoint_id"}
        assert to_json([message.to_json() for message in request.messages])


@MANY
@given(params=OBJECTS | st.fixed_dictionaries({"responses": JSON}) | st.fixed_dictionaries({"interrupt_id": JSON}))
@example(params={"responses": [{"interrupt_id": ["i"], "response": 1}]})
@example(params={"interrupt_id": "i", "response": 1, "run_id": {}})
def test_any_parameters_are_answers_or_are_refused(params):
    answered(parse_responses, params, idempotency_key=None)


@MANY
@given(kind=st.sampled_from(InterruptKind), payload=PAYLOADS, response=JSON | OBJECTS)
@example(kind=InterruptKind.APPROVAL, payload={"action_requests": 3, "review_configs": 3}, response=[])
@example(kind=InterruptKind.INPUT, payload={"answer_schema": {"pattern": "("}}, response="x")
@example(kind=InterruptKind.INPUT, payload={"answer_schema": {"$ref": "#"}}, response="x")
@example(kind=InterruptKind.RECOVERY, payload={}, response={"choice": ["retry"]})
@example(kind=InterruptKind.INPUT, payload={"version": [], "mode": {}}, response={"kind": {}})
@example(kind=InterruptKind.INPUT, payload=FORM, response={"kind": "form", "values": {"size": [{}], "\ud83d": 1}})
def test_any_response_to_any_question_is_an_answer_or_is_refused(kind, payload, response):
    interrupt = Interrupt(
        interrupt_id="i", run_id="r", thread_id="t", owner="local", kind=kind, payload=payload, namespace=(),
        state=InterruptState.OPEN, created_at=0.0,
    )  # fmt: skip
    answered(checked_answer, interrupt, response)


@pytest.fixture
def ask(tmp_path):
    """A command to an engine on a real file, and its reply."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        parts = runner.run(stack.enter_async_context(rig(tmp_path, ScriptedRuntime())))
        yield lambda body: runner.run(parts.runs.command("t", body, caller=LOCAL))
        runner.run(stack.aclose())


def test_any_command_has_an_envelope(ask):
    @FEW
    @given(
        method=st.sampled_from(("run.start", "run.stop", "state.get", "input.respond")),
        params=OBJECTS | st.dictionaries(st.sampled_from(KEYS), st.sampled_from(WORDS)) | JSON,
    )
    @example(method="run.stop", params={"run_id": "\ud800"})
    @example(method="input.respond", params={"interrupt_id": "\ud800", "response": "x"})
    @example(method="state.get", params={"keys": [["messages"], {}]})
    @example(method="run.start", params={"messages": [{"role": ["user"], "content": "x"}]})
    def commands(method, params):
        envelope = ask({"id": 1, "method": method, "params": params}).envelope
        assert envelope["type"] == "success" or envelope["message"], envelope

    commands()
