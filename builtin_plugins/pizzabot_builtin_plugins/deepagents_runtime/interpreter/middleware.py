# ruff: noqa: TID253 - imported behind `runtime.prepare`
"""The tool `eval` for one agent, and the ends of its turn, at which the sandbox goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.types import Command

from pizzabot_builtin_plugins.deepagents_runtime.interpreter import outcomes
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import (
    EVAL_SECONDS,
    MAX_BRIDGED_CALLS,
    MAX_CODE_BYTES,
    MAX_CONCURRENT_TASKS,
    MAX_RESULT_CHARACTERS,
    MEMORY_BYTES,
)
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bridges import SIGNATURES, Bridge, Returned
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.dispatching import SIGNATURE, dispatch
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.driving import TASK, Evaluation
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.guest import Guest, HostCall
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.image import load_image, require_packages
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.launching import Launches
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.outcomes import Outcome
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.sessions import NoRoom, Session, Sessions
from pizzabot_hookspecs.errors import Unavailable

NAME = "eval"

_CODE_ADVICE = f"{MAX_CODE_BYTES} bytes are allowed. Keep data in files and read it with tools.readFile."


def interpreter_middleware(
    *,
    bridges: Sequence[BaseTool],
    dispatch: BaseTool | None,
    cache_folder: Path | None = None,
    redact: Callable[[str], str] = str,
) -> AgentMiddleware[Any, Any, Any]:
    """The tool `eval` for one agent; each agent has its own.

    `bridges` are the agent's file tools, `dispatch` its tool `task`. `cache_folder` keeps the compiled sandbox between
    starts of the server. No sandbox is made before the agent evals. Put it ahead of middleware that may answer in the
    model's place: it sees the ends of turns. Raises `Unavailable` `missing_package` and `InvalidRequest`
    `not_a_file_tool`.
    """
    require_packages()
    return CodeInterpreter([Bridge(tool) for tool in bridges], dispatch, cache_folder=cache_folder, redact=redact)


class CodeInterpreter(AgentMiddleware[Any, Any, Any]):
    """Nothing of it is in the checkpoint: a sandbox lives as long as its agent's turn."""

    def __init__(
        self,
        bridges: Sequence[Bridge],
        task: BaseTool | None,
        *,
        cache_folder: Path | None,
        redact: Callable[[str], str],
        seconds: float = EVAL_SECONDS,
    ) -> None:
        super().__init__()
        self._bridges = {bridge.name: bridge for bridge in bridges}
        self._task = task
        self._cache_folder = cache_folder
        self._redact = redact
        self._seconds = seconds
        self.sessions = Sessions(delegating=task is not None)
        told = description([bridge.name for bridge in bridges], task=task is not None)
        self.tools = [StructuredTool.from_function(coroutine=self._eval, name=NAME, description=told)]

    async def _eval(self, code: Annotated[str, "JavaScript to run"], runtime: ToolRuntime[Any, Any]) -> ToolMessage:
        outcome = await self._evaluated(code, runtime)
        return ToolMessage(
            content=outcome.text,
            tool_call_id=runtime.tool_call_id or "",
            name=NAME,
            status="error" if outcome.failed else "success",
        )

    async def _evaluated(self, code: str, runtime: ToolRuntime[Any, Any]) -> Outcome:
        if fault := code_fault(code):
            return Outcome(fault, failed=True)
        key = session_key(runtime.config)
        kept = False
        try:
            async with self.sessions.using(key) as session:
                outcome = await self._in_session(session, code, runtime)
                kept = "thread_id" in runtime.config.get("configurable", {})
        except NoRoom:
            kept = True
            return Outcome("No sandbox became free: too many evals are at work. Try again later.", failed=True)
        except Unavailable as error:
            return Outcome(error.detail, failed=True)
        except asyncio.CancelledError:
            raise
        except Exception:
            kept = True  # an interrupt: the turn goes on later, with the sandbox if it is still there
            raise
        finally:
            if not kept:
                self.sessions.end(key)
        return outcome

    async def _in_session(self, session: Session, code: str, runtime: ToolRuntime[Any, Any]) -> Outcome:
        guest = await session.open(self._new_guest)
        lost, session.lost = session.lost, False
        evaluation = Evaluation(
            guest,
            partial(self._answered, runtime=runtime, launches=Launches()),
            redact=self._redact,
            seconds=self._seconds,
        )
        try:
            outcome = await evaluation.run(code)
        finally:
            if not evaluation.usable:
                session.drop()
                session.lost = False  # the outcome says so
        return Outcome(f"[{outcomes.LOST}]\n{outcome.text}", outcome.failed) if lost else outcome

    def _new_guest(self) -> Guest:
        tools = [(bridge.name, bridge.label) for bridge in self._bridges.values()]
        return Guest(load_image(self._cache_folder), tools, task=self._task is not None)

    async def _answered(self, call: HostCall, *, runtime: ToolRuntime[Any, Any], launches: Launches) -> Returned:
        call_id = f"{runtime.tool_call_id}:{call.number}"
        if call.name == TASK and self._task is not None:
            return await dispatch(self._task, call.arguments, runtime, call_id=call_id, launches=launches)
        return await self._bridges[call.name].call(call.arguments, runtime, call_id=call_id)

    # -- the ends of a turn: an answer without calls, an error, a stop. A node for that would cost a checkpoint a turn

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        key = session_key(get_config())
        messages = request.state["messages"]
        if messages and messages[-1].type == "human":  # a new turn, and one that paused before is not gone on with
            self.sessions.end(key)
        goes_on = False
        try:
            response = await handler(request)
            goes_on = any(getattr(message, "tool_calls", ()) for message in response.result)
        finally:
            if not goes_on:
                self.sessions.end(key)
        return response

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        try:
            return await handler(request)
        except asyncio.CancelledError:
            self.sessions.end(session_key(request.runtime.config))
            raise


def session_key(config: RunnableConfig | Mapping[str, Any]) -> str:
    """Thread and agent: the namespace without its last segment, which is the step (spec/05 §7).

    Without a thread nothing tells two runs apart: the step stays in the key, and the sandbox serves one eval.
    """
    configurable = config.get("configurable", {})
    namespace = str(configurable.get("checkpoint_ns", ""))
    thread = configurable.get("thread_id")
    return namespace if thread is None else f"{thread}\n{namespace.rpartition('|')[0]}"


def code_fault(code: str) -> str | None:
    """Why the code cannot be run, None where it can be."""
    if len(code) > MAX_CODE_BYTES:
        return f"The code has {len(code)} characters; {_CODE_ADVICE}"
    try:
        size = len(code.encode())
    except UnicodeEncodeError as error:
        return f"The code has half of a surrogate pair at character {error.start}: write it as an escape."
    if size > MAX_CODE_BYTES:
        return f"The code has {size} bytes; {_CODE_ADVICE}"
    if "\0" in code:
        return f"The code has a NUL at character {code.index(chr(0))}: write \\u0000."
    return None


def description(names: Sequence[str], *, task: bool) -> str:
    """What the model is told; the only words about `eval` in a prompt."""
    purpose = (
        "Run JavaScript in a sandbox and get the value of its last expression (and console output), at most "
        f"{MAX_RESULT_CHARACTERS} characters. Use it to work through data in bulk: read files page by page, compute, "
        "write the results to a file, and return only what the conversation needs. Top-level await works; top-level "
        "names stay for the next eval of this turn. No network, no modules, no timers."
    )
    lines = [
        purpose,
        "Functions (each takes one object, returns a promise, throws an Error with a message when it fails):",
        *(f"- tools.{SIGNATURES[name]}" for name in names),
    ]
    if "read_file" in names:
        lines.append(
            "readFile gives plain text, limit lines (100 unless given) from offset (0 is the first), without numbers "
            "and final newline, '' behind the last line; a page that is too large throws with error.offset and "
            "error.limit to read instead."
        )
    if task:
        lines.append(
            f"- {SIGNATURE}: have a subagent do one item and get its report; fan out with Promise.all, "
            f"{MAX_CONCURRENT_TASKS} work at once."
        )
    lines.append(
        f"Limits: {EVAL_SECONDS:.0f} s including what it waits for, {MEMORY_BYTES // 2**20} MiB, "
        f"{MAX_BRIDGED_CALLS} calls of these functions per eval. After an interruption for an approval the whole eval "
        "is run again: let it write only what may be written twice."
    )
    return "\n".join(lines)
