"""Vectors that are written by hand: what no recording has, or what must not depend on one."""

from __future__ import annotations

import json
from typing import Any

BASE = 1_796_000_000_000
Frame = dict[str, Any]


class Log:
    """Frames of one thread, numbered from 1."""

    def __init__(self) -> None:
        self.frames: list[Any] = []

    def add(
        self, run: str | None, method: str, data: Any, namespace: tuple[str, ...] = (), *, at: int | None = None
    ) -> Log:
        seq = len(self.frames) + 1
        timestamp = BASE + (seq if at is None else at)
        params: Frame = {"namespace": list(namespace), "timestamp": timestamp, "data": data}
        if method == "messages":
            params["node"] = "model"
        event_id = f"synth:{run or 'thread'}:{seq}"
        self.frames.append({"type": "event", "event_id": event_id, "seq": seq, "method": method, "params": params})
        return self

    def fact(self, run: str | None, name: str, *, v: Any = 1, **payload: Any) -> Log:
        return self.add(run, "custom", {"name": f"pizzabot.{name}", "payload": {"v": v, **payload}})

    def begin(self, run: str, turn_id: str, parent: str | None = None, text: str = "go", **more: Any) -> Log:
        message = {"id": turn_id, "role": "user", "content": [{"type": "text", "text": text}], "metadata": {}}
        self.add(run, "lifecycle", {"event": "running", "graph_name": "pizza-bot"})
        turn = {"turn_id": turn_id, "parent_id": parent, "source": "user", "message": message, "base": None}
        self.fact(run, "turn", run_id=run, **turn, **more)
        return self.fact(run, "run", run_id=run, turn_id=turn_id, status="running", model="a:b", started_at=BASE)

    def say(self, run: str, message: str, *pieces: str, below: tuple[str, ...] = ()) -> Log:
        self.open(run, message, below=below)
        for piece in pieces:
            self.delta(run, message, piece, below=below)
        return self.close(run, message, "".join(pieces), below=below)

    def message(self, run: str, message: str, event: str, /, *, below: tuple[str, ...] = (), **data: Any) -> Log:
        return self.add(
            run, "messages", {"event": event, **data, "run_id": message}, (*below, f"model_request:{message}")
        )

    def open(self, run: str, message: str, *, below: tuple[str, ...] = ()) -> Log:
        self.message(run, message, "message-start", below=below, role="ai", id=f"lc-{message}", name="pizza-bot")
        return self.message(
            run, message, "content-block-start", below=below, index=0, content={"type": "text", "text": ""}
        )

    def delta(self, run: str, message: str, piece: str, *, below: tuple[str, ...] = (), **more: Any) -> Log:
        delta = {"type": "text-delta", "text": piece}
        return self.message(run, message, "content-block-delta", below=below, index=0, delta=delta, **more)

    def close(self, run: str, message: str, text: str, *, below: tuple[str, ...] = ()) -> Log:
        whole = {"type": "text", "text": text}
        self.message(run, message, "content-block-finish", below=below, index=0, content=whole)
        return self.message(run, message, "message-finish", below=below, usage=None, metadata={})

    def tool(self, run: str, call_id: str, event: str, namespace: tuple[str, ...] = ("tools:x",), **data: Any) -> Log:
        return self.add(run, "tools", {"event": event, "tool_call_id": call_id, **data}, namespace)

    def end(self, run: str, turn_id: str, status: str = "success", **data: Any) -> Log:
        self.fact(run, "run", run_id=run, turn_id=turn_id, status=status, ended_at=BASE + 99)
        return self.add(run, "lifecycle", {"event": "completed", **data})

    def turn(self, run: str, turn_id: str, parent: str | None, answer: str) -> Log:
        return self.begin(run, turn_id, parent).say(run, f"by-{run}", answer).end(run, turn_id)


def prototype_names() -> Log:
    """Ids and names that are members of every JavaScript object."""
    log = Log().begin("constructor", "__proto__")
    log.say("constructor", "__proto__", "a", "b")
    log.tool("constructor", "__proto__", "tool-started", tool_name="constructor", input={"__proto__": 1})
    log.tool("constructor", "__proto__", "tool-finished", output="toString")
    log.end("constructor", "__proto__")
    log.begin("__proto__", "constructor", "__proto__")
    data = {"interrupt_id": "toString", "kind": "hasOwnProperty", "payload": {"__proto__": {"a": 1}}}
    log.add("__proto__", "input.requested", data)
    log.fact("__proto__", "run", run_id="__proto__", turn_id="constructor", status="valueOf")
    return log.add("__proto__", "lifecycle", {"event": "interrupted"})


def unknown_things() -> Log:
    """Facts, versions, kinds and payloads that this fold does not know, between ones that it knows."""
    log = Log().begin("r1", "m1").fact("r1", "weather", sky="grey").fact("r1", "usage", v=2, run_id="r1")
    log.open("r1", "a").fact("r1", "head", v="1", turn_id="nowhere").delta("r1", "a", "one ")
    log.message("r1", "a", "content-block-start", index=1, content={"type": "image", "url": "x"})
    log.message("r1", "a", "content-block-delta", index=1, delta={"type": "data-delta", "data": {}})
    log.message("r1", "a", "content-block-delta", index=7, delta={"type": "text-delta", "text": "no block"})
    log.message("r1", "a", "content-block-finish", index=1, content={"type": "image", "url": "x"})
    log.add("r1", "custom", {"payload": 1}).add("r1", "custom", {"name": "plugin.x", "payload": {"v": 1}})
    log.add("r1", "custom", {"name": "pizzabot.turn", "payload": {"v": 1, "turn_id": "forged"}}, ("tools:x",))
    log.add("r1", "brand-new", {"event": "x"}).fact("r1", "turn", turn_id=7).fact("r1", "run", status="success")
    log.fact("r1", "message", turn_id="m1", message="no message").fact(None, "request", interrupt_id="i", state="odd")
    log.delta("r1", "a", "two").message("r1", "a", "content-block-finish", index=0, content={"type": "text"})
    return log.message("r1", "a", "message-finish").end("r1", "m1")


def facts_of_the_thread() -> Log:
    """Compaction, a branch that is chosen, messages that were not streamed, usage that grows."""
    log = Log().turn("r1", "m1", None, "one").turn("r2", "m2", "m1", "two").turn("r3", "m3", "m1", "other two")
    usage = {"model": "a:b", "input_tokens": 9, "output_tokens": 1, "total_tokens": 10, "namespaces": {"": 10}}
    log.begin("r4", "m4", "m3").fact("r4", "usage", run_id="r4", **usage, context={"tokens": 9, "max": 100})
    log.fact("r4", "context", reason="auto", tokens_before=900, tokens_after=90).say("r4", "d", "four")
    log.fact("r4", "usage", run_id="r4", **{**usage, "total_tokens": 30}, context={"tokens": 29, "max": None})
    log.end("r4", "m4").fact(None, "head", turn_id="m2")
    log.fact(None, "context", reason="manual", tokens_before=90, tokens_after=9)
    told = {"id": "w1", "role": "assistant", "content": [{"type": "text", "text": "written"}, {"type": "image"}]}
    log.fact(None, "message", turn_id="m2", message=told)
    log.fact(None, "message", turn_id=None, message={"id": "w2", "role": "user", "content": "by hand"})
    return log.fact(None, "message", turn_id="m2", message={**told, "content": "written again"})


def before_the_facts() -> Log:
    """A log that is older than the facts: each run is a turn of its own, one that answers goes on in its turn."""
    log = Log().add("r1", "lifecycle", {"event": "running"}).say("r1", "a", "hello")
    log.add("r1", "input.requested", {"interrupt_id": "i1", "kind": "input", "payload": {"question": "?"}})
    log.add("r1", "lifecycle", {"event": "interrupted"}).add("r2", "lifecycle", {"event": "running"})
    log.add("r2", "input.answered", {"interrupt_ids": ["i1"]}).say("r2", "b", "thanks")
    log.add("r2", "lifecycle", {"event": "completed"}).add("r3", "lifecycle", {"event": "running"})
    log.add("r3", "lifecycle", {"event": "failed", "error": "no model", "code": "MODEL_UNAVAILABLE"})
    return log.fact(None, "message", turn_id=None, message={"id": "w", "role": "assistant", "content": "late"})


def equal_and_backward_times() -> Log:
    """Order is that of `seq` alone."""
    log = Log().begin("r1", "m1")
    log.message("r1", "a", "message-start", role="ai", id="lc-a")
    log.add("r1", "messages", _block(0, "reasoning"), ("model_request:a",), at=500)
    thought = {"type": "reasoning-delta", "reasoning": "hm"}
    delta = {"event": "content-block-delta", "index": 0, "delta": thought, "run_id": "a"}
    log.add("r1", "messages", delta, ("model_request:a",), at=20)
    log.add("r1", "messages", _block(1, "text"), ("model_request:a",), at=20)
    log.message("r1", "a", "content-block-delta", index=1, delta={"type": "text-delta", "text": "so"})
    return log.message("r1", "a", "message-finish").end("r1", "m1")


def late_text() -> Log:
    """A text that begins before a call and has its first word after it stands before it; an empty one shows nothing."""
    log = Log().begin("r1", "m1").open("r1", "a")
    log.message("r1", "a", "content-block-start", index=1, content=_chunk("c", "look"))
    log.message("r1", "a", "content-block-start", index=2, content={"type": "text", "text": ""})
    log.delta("r1", "a", "").delta("r1", "a", "First ").delta("r1", "a", "this.")
    log.message("r1", "a", "content-block-finish", index=2, content={"type": "text", "text": ""})
    return log.close("r1", "a", "First this.").end("r1", "m1")


def calls_with_equal_ids() -> Log:
    """A model that numbers its calls anew in each message, and the same ids below a subagent."""
    log = Log().begin("r1", "m1")
    for message in ("a", "b"):
        log.message("r1", message, "message-start", role="ai", id=f"lc-{message}")
        log.message("r1", message, "content-block-start", index=0, content=_chunk("call_0", "look"))
        log.message("r1", message, "content-block-delta", index=0, content={"type": "tool_call_chunk", "args": "{}"})
        whole = {"type": "tool_call", "id": "call_0", "name": "look", "args": {}}
        log.message("r1", message, "content-block-finish", index=0, content=whole).message(
            "r1", message, "message-finish"
        )
        log.tool("r1", "call_0", "tool-started", tool_name="look", input={"of": message})
        log.tool("r1", "call_0", "tool-finished", output=f"of {message}")
    args = {"description": "\n  Look around \nwell", "subagent_type": "clerk"}
    log.tool("r1", "call_1", "tool-started", ("tools:t",), tool_name="task", input=args)
    cause = {"type": "toolCall", "tool_call_id": "call_1"}
    log.add("r1", "lifecycle", {"event": "started", "graph_name": "clerk", "cause": cause}, ("tools:t",))
    log.tool("r1", "call_0", "tool-started", ("tools:t", "tools:u"), tool_name="look", input={})
    log.tool("r1", "call_0", "tool-error", ("tools:t", "tools:u"), message="blind")
    log.tool("r1", "call_9", "tool-error", ("tools:t",), tool_name="nope", message="the graph's own namespace")
    told = {"type": "tool", "content": "all told", "tool_call_id": "call_1", "status": "success"}
    log.tool(
        "r1", "call_1", "tool-finished", ("tools:t",), output={"lg_name": "Command", "update": {"messages": [told]}}
    )
    return log.end("r1", "m1")


def results() -> Log:
    """An empty result and none, lists of parts, structures, failures, a stop."""
    log = Log().begin("r1", "m1")
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    outputs = [
        ("empty", {"output": ""}), ("none", {}), ("null", {"output": None}), ("number", {"output": 4.5}),
        ("list", {"output": [1, {"b": 2, "a": 1}]}), ("structure", {"output": {"b": 2, "a": [None, True]}}),
        ("parts", {"output": {"type": "tool", "content": parts, "tool_call_id": "parts"}}),
        ("image", {"output": {"type": "tool", "content": [*parts, {"type": "image"}], "tool_call_id": "image"}}),
        ("failed", {"output": {"type": "tool", "content": "no", "tool_call_id": "failed", "status": "error"}}),
    ]  # fmt: skip
    for call_id, more in outputs:
        log.tool("r1", call_id, "tool-started", tool_name="t", input='{"as": "text"}')
        log.tool("r1", call_id, "tool-output-delta", delta="so far")
        log.tool("r1", call_id, "tool-finished", **more)
    log.tool("r1", "again", "tool-started", tool_name="t").tool("r1", "again", "tool-error", message="lost")
    log.tool("r1", "again", "tool-started", tool_name="t", input={}).tool("r1", "left", "tool-started", tool_name="t")
    log.tool("r1", "stopped", "tool-started", tool_name="t").tool(
        "r1", "stopped", "tool-error", message="aborted", code="aborted"
    )
    return log.end("r1", "m1", "cancelled", code="CANCELLED")


def sources() -> Log:
    """What results were taken from: of a call, of one below a subagent, of one that began anew; facts of nothing."""
    log = Log().begin("r1", "m1")
    dough = {"id": "s1", "title": "Dough", "url": "https://example.org/dough", "excerpt": "Flour.", "retrievedAt": BASE}
    oven = {"id": "s2", "title": "Oven", "excerpt": "", "retrievedAt": BASE}
    below = ("tools:s", "tools:y")
    log.tool("r1", "c1", "tool-started", tool_name="search", input={}).tool("r1", "c1", "tool-finished", output="[]")
    log.fact("r1", "sources", call_id="c1", namespace=[], sources=[dough, 3, None, oven])
    log.tool("r1", "c2", "tool-started", tool_name="search").tool("r1", "c2", "tool-finished", output="first")
    log.fact("r1", "sources", call_id="c2", namespace=[], sources=[dough])
    log.tool("r1", "c2", "tool-started", tool_name="search").tool("r1", "c2", "tool-finished", output="again")
    args = {"description": "Look", "subagent_type": "clerk"}
    log.tool("r1", "c3", "tool-started", ("tools:s",), tool_name="task", input=args)
    log.tool("r1", "c1", "tool-started", below, tool_name="search").tool("r1", "c1", "tool-finished", below, output="x")
    log.fact("r1", "sources", call_id="c1", namespace=["tools:s"], sources=[oven])
    log.fact("r1", "sources", call_id="nobody", namespace=[], sources=[oven])
    log.fact("r9", "sources", call_id="c2", namespace=[], sources=[oven])
    log.fact(None, "sources", call_id="c2", namespace=[], sources=[oven])
    log.fact("r1", "sources", v=2, call_id="c2", namespace=[], sources=[oven])
    for wrong in ({"call_id": 2}, {"namespace": "tools:s"}, {"sources": {"0": oven}}, {"namespace": ["tools:q"]}):
        log.fact("r1", "sources", **{"call_id": "c2", "namespace": [], "sources": [oven], **wrong})
    log.tool("r1", "c3", "tool-finished", ("tools:s",), output="done").say("r1", "a", "As [one](#source-s1) says.")
    return log.end("r1", "m1")


def changes() -> Log:
    """What runs did to files: of two runs of a turn, told again, and what is no change of a run that there is."""
    log = Log().begin("r1", "m1").say("r1", "a", "written")
    dough = {"path": "/dough.md", "op": "created", "sizeBefore": None, "sizeAfter": 5, "added": 1, "removed": 0}
    oven = {"path": "/oven.png", "op": "changed", "sizeBefore": 3, "sizeAfter": 4, "added": None, "removed": None}
    log.fact("r1", "artifact", path="/dough.md", sha256="0", size=5, mediaType="text/markdown", op="created")
    log.fact("r1", "changes", run_id="r1", turn_id="m1", files=[dough, 3, oven], truncated=False)
    log.end("r1", "m1")
    log.fact("r2", "run", run_id="r2", turn_id="m1", status="running", started_at=BASE)
    log.fact("r2", "changes", run_id="r2", turn_id="m1", files=[oven], truncated=False)
    log.fact("r2", "changes", run_id="r2", turn_id="m1", files=[dough], truncated=True)
    for wrong in ({"run_id": "r9"}, {"run_id": 2}, {"files": {"0": oven}}, {"v": 2}):
        log.fact("r2", "changes", **{"run_id": "r2", "turn_id": "m1", "files": [oven], "truncated": False, **wrong})
    return log.end("r2", "m1")


def merged_deltas() -> Log:
    """Deltas that retention merged, in two stretches; who has a part of one replaces it."""
    log = Log().begin("r1", "m1").open("r1", "a")
    for piece in ("na ", "na ", "na ", "na "):
        log.delta("r1", "a", piece)
    log.frames[-1] = _merged(log.frames[-1], "na na na na ", log.frames[-4]["seq"])
    del log.frames[-4:-1]
    kept = log.frames[-1]["seq"]
    log.frames += [None] * (kept - len(log.frames))
    log.add("r1", "lifecycle", {"event": "completed"}, ("tools:q",)).delta("r1", "a", "batman")
    log.message("r1", "a", "error", message="aborted", code="aborted").end("r1", "m1", "cancelled", code="CANCELLED")
    log.frames = [frame for frame in log.frames if frame is not None]
    return log


def questions_taken_back() -> Log:
    """Expired and withdrawn requests, one asked in vain by a run that failed."""
    log = Log()
    for number, state in enumerate(("expired", "withdrawn"), start=1):
        run, turn_id, asked = f"r{number}", f"m{number}", f"i{number}"
        log.begin(run, turn_id, f"m{number - 1}" if number > 1 else None)
        payload = {"question": "?"}
        log.add(run, "input.requested", {"interrupt_id": asked, "kind": "input", "payload": payload, "value": payload})
        log.fact(run, "request", interrupt_id=asked, kind="input", state="open", at=BASE, run_id=run)
        log.fact(run, "run", run_id=run, turn_id=turn_id, status="interrupted").add(
            run, "lifecycle", {"event": "interrupted"}
        )
        log.fact(None, "request", interrupt_id=asked, kind="input", state=state, at=BASE + 5, run_id=run)
        log.add(None, "input.answered", {"interrupt_ids": [asked]})
    log.begin("r3", "m3", "m2").add("r3", "input.requested", {"interrupt_id": "i3", "kind": "approval", "payload": {}})
    return log.add("r3", "lifecycle", {"event": "failed", "error": "broken", "code": "INTERNAL"})


def exact_numbers() -> Log:
    """Frames as text: 20 digits, numbers as they are written, doubled keys, keys that look like numbers, in order."""
    log = Log().begin("r1", "m1")
    log.tool("r1", "c1", "tool-started", tool_name="t", input={})
    log.tool("r1", "c1", "tool-finished", output={})
    log.end("r1", "m1")
    exact = '{"id":12345678901234567890,"10":1.0,"9":1e5,"a":1,"a":2,"s":"\\ud83c\\udf55 \\"q\\""}'
    texts = [json.dumps(frame, ensure_ascii=False, separators=(",", ":")) for frame in log.frames]
    log.frames = [
        text.replace('"input":{}', f'"input":{exact}').replace('"output":{}', f'"output":{exact}') for text in texts
    ]
    return log


def _chunk(call_id: str, name: str) -> Frame:
    return {"type": "tool_call_chunk", "id": call_id, "name": name, "args": "", "index": 0}


def _block(index: int, kind: str) -> Frame:
    return {"event": "content-block-start", "index": index, "content": {"type": kind, kind: ""}, "run_id": "a"}


def _merged(frame: Frame, text: str, from_seq: int) -> Frame:
    data = {**frame["params"]["data"], "delta": {"type": "text-delta", "text": text}, "from_seq": from_seq}
    return {**frame, "params": {**frame["params"], "data": data}}


def unclosed_reasoning() -> Log:
    log = Log().begin("r1", "m1")
    log.message("r1", "a1", "message-start", role="ai", id="lc-a1", name="pizza-bot")
    log.message("r1", "a1", "content-block-start", index=0, content={"type": "reasoning", "reasoning": ""})
    log.message("r1", "a1", "content-block-delta", index=0, delta={"type": "reasoning-delta", "reasoning": "hm"})
    log.message("r1", "a1", "content-block-finish", index=0, content={"type": "reasoning", "reasoning": "hm"})
    told = {"finish_reason": "stop", "pizzabot": {"unclosed_reasoning": True}}
    log.message("r1", "a1", "message-finish", usage=None, metadata=told)
    return log.end("r1", "m1")


WRITTEN = {
    "reasoning without an end": unclosed_reasoning,
    "names of every object": prototype_names,
    "unknown things": unknown_things,
    "facts of the thread": facts_of_the_thread,
    "a log older than the facts": before_the_facts,
    "equal and backward times": equal_and_backward_times,
    "text that comes late": late_text,
    "calls with equal ids": calls_with_equal_ids,
    "results of tools": results,
    "sources": sources,
    "changes": changes,
    "merged deltas": merged_deltas,
    "questions taken back": questions_taken_back,
    "exact numbers": exact_numbers,
}
