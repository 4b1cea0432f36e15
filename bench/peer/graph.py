"""The graph that `langgraph dev` serves beside ours: built by the very function that our runtime uses, same model."""

from pizzabot_builtin_plugins.deepagents_runtime.graph_building import build_agent
from pizzabot_builtin_plugins.deepagents_runtime.middleware import Workshop
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
from pizzabot_builtin_plugins.echo.model import EchoModel

# No checkpointer: the server brings its own.
graph = build_agent(EchoModel(profile={"max_input_tokens": 200_000}), ToolSet(), Workshop(), None)  # type: ignore[arg-type]
