"""What plugin authors test with. Names are imported on first use, so that the pytest plugin costs nothing.

host                     a whole host, without discovery, on a data root of its own
install_plugin           a module and real metadata in a folder, so that real discovery finds it without pip
plugin_folder            puts such a folder on the import path, and cleans up
imported_by              what importing a module brings in
StorageContract, ModelProviderContract, TransportContract, AgentRuntimeContract     suites to subclass
SkillSourceContract                      a suite for a source of skills
MaterializerContract                     a suite for what turns sources into a bundle
McpServersContract                       a suite for a source of MCP servers
RunStoreContract, InterruptContract      the parts of StorageContract that can be passed before the rest is there
ScriptedHost, ScriptedModel, ScriptedRuntime                                        doubles at the border
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pizzabot.testing.hosts import host as host
    from pizzabot.testing.interrupt_contract import InterruptContract as InterruptContract
    from pizzabot.testing.materializer_contract import MaterializerContract as MaterializerContract
    from pizzabot.testing.mcp_servers_contract import McpServersContract as McpServersContract
    from pizzabot.testing.plugins import imported_by as imported_by
    from pizzabot.testing.plugins import install_plugin as install_plugin
    from pizzabot.testing.plugins import plugin_folder as plugin_folder
    from pizzabot.testing.provider_contract import ModelProviderContract as ModelProviderContract
    from pizzabot.testing.run_store_contract import RunStoreContract as RunStoreContract
    from pizzabot.testing.runtime_contract import AgentRuntimeContract as AgentRuntimeContract
    from pizzabot.testing.scripted_host import ScriptedHost as ScriptedHost
    from pizzabot.testing.scripted_model import ScriptedModel as ScriptedModel
    from pizzabot.testing.scripted_runtime import ScriptedRuntime as ScriptedRuntime
    from pizzabot.testing.skill_contract import SkillSourceContract as SkillSourceContract
    from pizzabot.testing.storage_contract import StorageContract as StorageContract
    from pizzabot.testing.transport_contract import TransportContract as TransportContract

_HOMES = {
    "host": "hosts",
    "imported_by": "plugins",
    "install_plugin": "plugins",
    "plugin_folder": "plugins",
    "AgentRuntimeContract": "runtime_contract",
    "InterruptContract": "interrupt_contract",
    "McpServersContract": "mcp_servers_contract",
    "MaterializerContract": "materializer_contract",
    "ModelProviderContract": "provider_contract",
    "RunStoreContract": "run_store_contract",
    "ScriptedHost": "scripted_host",
    "ScriptedModel": "scripted_model",
    "ScriptedRuntime": "scripted_runtime",
    "SkillSourceContract": "skill_contract",
    "StorageContract": "storage_contract",
    "TransportContract": "transport_contract",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
