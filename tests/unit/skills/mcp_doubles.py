"""MCP servers as skills see them, at the border of the process."""

from langchain_core.tools import StructuredTool

from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot_hookspecs.mcp_clients import McpTool


def tool(name, *, description="does it", **hints):
    made = StructuredTool.from_function(func=lambda text="": text, name=name, description=description or name)
    return McpTool(name=name, description=description, tool=made, **hints)


def connected(*names, **hints):
    return ServerState(status=ServerStatus.CONNECTED, tools={name: tool(name, **hints) for name in names})


class FakeServers:
    def __init__(self, **states):
        self.now, self.trusting, self.callbacks, self.read = dict(states), set(), [], True

    def states(self):
        return self.now

    def known(self):
        return self.read

    def on_change(self, callback):
        self.callbacks.append(callback)

    def trusted(self, server_id):
        return server_id in self.trusting

    def set(self, **states):
        self.now = {**self.now, **states}
        for callback in self.callbacks:
            callback()
