"""Kind `agent_runtimes`: what answers a turn. One acts, chosen by `[runtime] use`; the built-in is `deepagents`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pizzabot_hookspecs.agent_middleware import AgentMiddlewareSource
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.callers import Caller
from pizzabot_hookspecs.files import TurnFiles
from pizzabot_hookspecs.interrupts import IntentLog
from pizzabot_hookspecs.model_providers import ModelDescriptor
from pizzabot_hookspecs.offers import Offer, hookspec
from pizzabot_hookspecs.wire import Frame, JsonValue, Message, Namespace, ThreadState

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pizzabot_hookspecs.storage_backends import GraphStorage


@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """A model that the host resolved and built. `id` is the qualified `<use>:<model>`."""

    id: str
    chat: BaseChatModel
    descriptor: ModelDescriptor


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """What the person set for the agent, as it is when a turn begins (spec/01 §11).

    `persona` is added to the orchestrator's prompt, last. `memories` says whether the prompt speaks of them; the area
    itself decides at each operation. The limits are tool calls of one turn, of the orchestrator and of each subagent
    by itself; -1 is none.
    """

    persona: str = ""
    memories: bool = False
    max_tool_calls: int = 100
    max_subagent_tool_calls: int = 150


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One execution on a thread.

    `messages`  what the person said, in order; empty when the turn only goes on from the checkpoint
    `recover`   the same run was begun before and its process died: go on from the checkpoint; say `messages` only if
                the checkpoint does not hold them yet (compare by message id)
    `told`      with `recover`: ids of messages and calls of this turn that its log holds to their end; None where
                nobody knows. What else the checkpoint holds of the turn is told first: an answer as a whole message
                under its id, a call by the frame of its result. The log may be behind the checkpoint by an instant
    `answers`   decided interrupts by id, each with its canonical answer: go on from where they were raised. An
                approval's is `{"decisions": [one]}`, a question's is handed to the tool as it is. They may be some of
                the open ones; with `recover` also ones that were consumed before. Without messages
    `skip`      tool calls that must not run (again), with the text that stands for their result; with `settle` too
    `settle`    do not go on: only leave the checkpoint without open tool calls, as `AgentRun.stop` does, and end
    `intents`   where a call of a tool that is not repeatable is announced before it runs and closed after
    `config`    what of the client's `config.configurable` concerns the graph: `checkpoint_id` forks. Other keys of a
                client's are never in it
    `files`     the areas of files that the turn has
    `settings`  what the person set for the agent, as it was when the run began
    """

    run_id: str
    thread_id: str
    caller: Caller
    model: ChosenModel
    messages: tuple[Message, ...] = ()
    recover: bool = False
    told: frozenset[str] | None = None
    answers: Mapping[str, JsonValue] = field(default_factory=dict)
    skip: Mapping[str, str] = field(default_factory=dict)
    settle: bool = False
    intents: IntentLog
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    files: TurnFiles = field(default_factory=TurnFiles)
    settings: AgentSettings = field(default_factory=AgentSettings)


class AgentRun(Protocol):
    """A turn in progress. Nothing happens until it is iterated, and one consumer iterates it once."""

    def __aiter__(self) -> AsyncIterator[Frame]:
        """Frames in order, without root lifecycle. Raises what went wrong; the host classifies and closes the log.

        A run that waits ends with `input.requested` frames: `interrupt_id`, `kind` (`approval` or `input`), and the
        payload of `NewInterrupt` as `payload` and as `value`. The root's `checkpoints` frames tell where the turn can
        be branched from: the first one's `parent_id` is what it began on, the last one's `id` what it left.

        Names of `custom` frames that begin with `pizzabot.` are the product's: of a runtime's, the host takes
        `pizzabot.context` (`{v: 1, reason: "auto", tokens_before, tokens_after}`, where the model's context was
        shortened in the turn) and drops the others. What tools and graphs say under such a name, a runtime drops.
        """
        ...

    async def stop(self) -> None:
        """Stop the model call, tools, subagents and child processes. Safe to call twice and before iteration.

        When it returns, the iteration has ended or will end without another model or tool call; text that was
        streamed is in the checkpoint, marked as cut off, and no tool call is left without a result.
        """
        ...


class BuiltinTool(StrEnum):
    """Tools of the runtime's own that a skill can declare (spec/04 §1.2). The orchestrator has them all."""

    EVAL = "builtin:eval"
    ASK_USER = "builtin:ask_user"


RUNTIME_TOOLS = frozenset({"task", "eval", "ask_user", "ls", "read_file", "write_file", "edit_file", "glob", "grep"})
"""Names of tools that are a runtime's own: no tool of a plugin or an MCP server is called so."""


@dataclass(frozen=True, kw_only=True)
class SubagentSpec:
    """Somebody to whom the orchestrator may delegate, through the tool `task`; it has these tools and no others.

    `name` is what the model writes, `description` what it chooses by, `prompt` the subagent's system prompt. It works
    with the model of the conversation and sees nothing of it but the task. Beside `tools` and `builtins` it has the
    six file tools. `files` are its bundle by their path in it (`references/a.md`): it alone reads them, under
    `/skills/<name>/`, as they were when its turn began.
    """

    name: str
    description: str
    prompt: str
    tools: tuple[AgentTool, ...] = ()
    builtins: frozenset[BuiltinTool] = frozenset()
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class UnreadySkill:
    """A specialist who exists and cannot be called now: the orchestrator is told. `state` is loading or unavailable."""

    name: str
    state: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Roster:
    """Who and what there is to work with, at one moment. `tools` are the orchestrator's own.

    Two of the same `fingerprint` are alike in everything: a runtime keeps what it built for one.
    """

    fingerprint: str = ""
    tools: Sequence[AgentTool] = ()
    subagents: Sequence[SubagentSpec] = ()
    unready: Sequence[UnreadySkill] = ()


EMPTY_ROSTER = Roster()


@dataclass(frozen=True, kw_only=True)
class RuntimeServices:
    """What a runtime may use of the host. It can grow.

    `roster` is asked when a turn begins, quick and without waiting; that turn goes on with what it got. What is handed
    to `on_roster_change` is called on the loop whenever the answer is another one: a runtime can get ready before the
    next turn. `middleware` is the plugins', `cache` a folder for what may be made anew at any time.
    """

    graph_storage: GraphStorage
    roster: Callable[[], Roster] = lambda: EMPTY_ROSTER
    on_roster_change: Callable[[Callable[[], None]], None] = lambda _changed: None
    middleware: Sequence[AgentMiddlewareSource] = ()
    cache: Path | None = None


class AgentRuntime(Protocol):
    """Turns messages into frames and keeps the model's memory (checkpoints). The person's log is the host's.

    May also be a `KnowsSettledCalls`, a `KeepsHistory`, a `KeepsBranches` and a `CompactsContext`.
    """

    async def prepare(self, services: RuntimeServices, /) -> None:
        """Load what is heavy, in a thread: called once, behind the listener. A turn waits for it."""
        ...

    def start(self, turn: Turn, /) -> AgentRun:
        """An `AgentRun` for `turn`. Does no work yet and does not raise for a bad turn: the iteration does."""
        ...

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState | None:
        """The newest state (or that of `checkpoint_id`) as JSON, or None where the thread never ran a turn."""
        ...

    async def forget(self, thread_id: str, /, *, caller: Caller) -> None:
        """Remove everything kept for the thread. Idempotent."""
        ...


@runtime_checkable
class KnowsSettledCalls(Protocol):
    """A capability of an `AgentRuntime`: tell which tool calls have their result, whatever the intents say.

    A process can die between storing a result and closing its intent. The host asks before it decides that a run needs
    attention; without the capability every open intent is a question to the person.
    """

    async def settled_calls(self, thread_id: str, call_ids: Collection[str], /, *, caller: Caller) -> frozenset[str]:
        """Those of `call_ids` whose result is stored in the thread's checkpoints, a subagent's included."""
        ...


@runtime_checkable
class KeepsHistory(Protocol):
    """A capability of an `AgentRuntime`: tell a thread's earlier states, and let a client write one."""

    async def history(
        self, thread_id: str, /, *, limit: int, before: str | None, namespace: Namespace, caller: Caller
    ) -> Sequence[ThreadState]:
        """As `Threads.history`; the host has checked whose thread it is. Must not hold up running turns.

        Raises `NotFound` `no_such_checkpoint`.
        """
        ...

    async def update_state(
        self,
        thread_id: str,
        values: Mapping[str, JsonValue],
        /,
        *,
        as_node: str | None,
        checkpoint_id: str | None,
        caller: Caller,
    ) -> ThreadState:
        """As `Threads.update_state`; the host lets no run begin meanwhile.

        Raises `NotFound` `no_such_checkpoint`, `InvalidRequest` `invalid_values`, `no_such_node`.
        """
        ...


@runtime_checkable
class KeepsBranches(Protocol):
    """A capability of an `AgentRuntime`: go back to an earlier state and on from there. No run goes on meanwhile."""

    async def tip(self, thread_id: str, /, *, caller: Caller) -> str | None:
        """The id of the newest checkpoint of the thread's root, None where there is none."""
        ...

    async def has_checkpoint(self, thread_id: str, checkpoint_id: str, /, *, caller: Caller) -> bool: ...

    async def go_to(self, thread_id: str, checkpoint_id: str, /, *, caller: Caller) -> str:
        """Make the state of an earlier checkpoint the newest one, by an empty copy; the copy's id.

        What the copied state waits for does not wait in the copy. Raises `NotFound` `no_such_checkpoint`.
        """
        ...

    async def copy_thread(self, thread_id: str, checkpoint_id: str, target_id: str, /, *, caller: Caller) -> None:
        """Give the thread `target_id`, which has none, the checkpoint and all it came from, under the same ids.

        Raises `NotFound` `no_such_checkpoint`.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """What shortening a context did: tokens of what the model is sent, before and after, and the new checkpoint."""

    tokens_before: int
    tokens_after: int
    checkpoint_id: str


@runtime_checkable
class CompactsContext(Protocol):
    """A capability of an `AgentRuntime`: shorten what the model is sent of a thread. Its messages stay as they are."""

    async def compact(self, thread_id: str, model: ChosenModel, /, *, caller: Caller) -> Compaction:
        """Raises `Conflict` `nothing_to_compact` where there is too little to shorten: no model was called then."""
        ...


@hookspec
def pizzabot_agent_runtimes() -> list[Offer[AgentRuntime]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the runtimes this plugin has; `[runtime] use` picks one by name::

    @hookimpl
    def pizzabot_agent_runtimes() -> list[Offer[AgentRuntime]]:
        return [Offer(name="replay", summary="answers from recordings", create=make_runtime, settings=Settings)]
    """
