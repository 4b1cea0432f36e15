# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Shortening a thread's context at once, between two turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepagents.middleware.summarization import SUMMARIZATION_EVENT_KEY
from langgraph.constants import END
from langgraph.types import StateUpdate

from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_builtin_plugins.deepagents_runtime.abilities import calls_tools
from pizzabot_builtin_plugins.deepagents_runtime.compaction import Summaries
from pizzabot_builtin_plugins.deepagents_runtime.graph_building import with_known_window
from pizzabot_builtin_plugins.deepagents_runtime.middleware import HISTORY_SHARE
from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import thread_config
from pizzabot_hookspecs import Conflict, Unavailable
from pizzabot_hookspecs.agent_runtimes import Compaction
from pizzabot_hookspecs.errors import PizzabotError, classify

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.tools import BaseTool

    from pizzabot_builtin_plugins.deepagents_runtime.graphs import Graph
    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
    from pizzabot_hookspecs.agent_runtimes import ChosenModel


async def compact(graph: Graph, thread_id: str, model: ChosenModel, tools: ToolSet, own: Graph) -> Compaction:
    """Have `model` sum up all but the newest messages, and store that the summary stands for them.

    `own` is the graph that the model's turns run on: its tools are part of what a call sends.

    Raises `Conflict` `nothing_to_compact`, `Unavailable` `model_failed`.
    """
    snapshot = await graph.aget_state(thread_config(thread_id))
    chat = with_known_window(model.chat, model.descriptor)
    summaries, offered = _as_sent(chat, tools, own, able=calls_tools(model))
    try:
        done = await summaries.compacted(snapshot.values, offered)
    except PizzabotError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a provider's library raises
        detail = f"{model.id} did not sum up the conversation ({classify(error)}): {tools.redact(str(error))}"
        raise Unavailable("model_failed", f"{detail}; nothing was changed, try again or choose another model") from None
    if done is None:
        detail = f"thread {thread_id!r} has nothing before the messages that stay as they are"
        raise Conflict("nothing_to_compact", f"{detail}; it can be shortened when it is longer")
    event, shortened = done
    if shortened.tokens_after >= shortened.tokens_before:
        detail = f"{model.id} wrote a summary that is no shorter than what it stands for"
        raise Unavailable("model_failed", f"{detail}; nothing was changed, try again or choose another model")
    written: dict[str, Any] = {SUMMARIZATION_EVENT_KEY: event}
    updates = [[StateUpdate(written, "model")], [StateUpdate(None, END)]]
    stored = await graph.abulk_update_state(thread_config(thread_id), updates)
    return Compaction(
        tokens_before=shortened.tokens_before,
        tokens_after=shortened.tokens_after,
        checkpoint_id=str(stored["configurable"]["checkpoint_id"]),
    )


def _as_sent(chat: BaseChatModel, tools: ToolSet, own: Graph, *, able: bool) -> tuple[Summaries, list[BaseTool]]:
    """The middleware of the model's graph, and the tools that a call of it is sent with."""
    if not able:
        window = (chat.profile or {}).get("max_input_tokens")
        # Nothing keeps such a thread below the model's window, and a summary must not fail of it.
        return Summaries(chat, prompts.CONVERSATION, trimmed=int(window * HISTORY_SHARE) if window else None), []
    prompt = prompts.agent_prompt(specialists=bool(tools.subagents), memories=True, unready=tools.unready)
    node: Any = own.nodes["tools"].bound
    return Summaries(chat, prompt), list(node.tools_by_name.values())
