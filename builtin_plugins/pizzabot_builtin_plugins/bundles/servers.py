"""The MCP servers of a bundle: those of its `.mcp.json`, and those that its manifest holds or names (spec/04 §6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pizzabot_builtin_plugins.bundles.inside import filled_in, inside, own_file, with_root
from pizzabot_builtin_plugins.bundles.json_files import JsonFile
from pizzabot_builtin_plugins.bundles.manifest import Manifest
from pizzabot_hookspecs.mcp_servers import McpServerDefinition
from pizzabot_hookspecs.skill_sources import Origin

FILE = ".mcp.json"
KEY = "mcpServers"
MAX_SERVERS = 50
"""Of one bundle."""


def servers_of(root: Path, manifest: Manifest) -> tuple[McpServerDefinition, ...]:
    """`${NAME}` references stay as they are written. Raises `BundleFaultError` for what is no server, a `cwd` that is
    no folder of the bundle, and an id that two different entries have."""
    found: dict[str, McpServerDefinition] = {}
    for said, servers in _maps(root, manifest):
        for server_id, entry in servers.items():
            server = _definition(root, manifest.name, said, server_id, entry)
            known = found.setdefault(server_id, server)
            if known.entry != server.entry:
                raise said.fault(f"two of its MCP servers have the id {server_id[:80]!r}", server_id)
    if len(found) > MAX_SERVERS:
        raise manifest.said.fault(f"it has {len(found)} MCP servers; at most {MAX_SERVERS} are taken", KEY)
    return tuple(found.values())


def _maps(root: Path, manifest: Manifest) -> Iterator[tuple[JsonFile, dict[str, Any]]]:
    read: set[Path] = set()
    for item in manifest.servers:
        if isinstance(item, dict):
            yield manifest.said, _unwrapped(manifest.said, item)
        else:
            path = inside(root, item, said=manifest.said, keys=(KEY,))
            read.add(path)
            yield _file(root, path)
    usual = own_file(root, FILE)
    if usual is not None and usual.resolve() not in read:
        yield _file(root, usual.resolve())


def _file(root: Path, path: Path) -> tuple[JsonFile, dict[str, Any]]:
    said = JsonFile.read(path, str(path.relative_to(root)).encode(errors="replace").decode())
    return said, _unwrapped(said, said.values)


def _unwrapped(said: JsonFile, values: dict[str, Any]) -> dict[str, Any]:
    """`{"mcpServers": {…}}`, or the map itself."""
    servers = values.get(KEY, values)
    if not isinstance(servers, dict):
        raise said.fault(f"`{KEY}` has to be a map of servers", KEY)
    return servers


def _definition(root: Path, plugin: str, said: JsonFile, server_id: str, entry: object) -> McpServerDefinition:
    if not isinstance(entry, dict):
        raise said.fault(f"the MCP server {server_id[:80]!r} has to be an object", server_id)
    _check_cwd(root, said, server_id, entry.get("cwd"))
    try:
        filled: Any = filled_in(entry, root)
    except RecursionError as error:
        raise said.fault(f"the MCP server {server_id[:80]!r} is nested too deep", server_id) from error
    return McpServerDefinition(id=server_id, entry=filled, origin=Origin.PLUGIN, plugin=plugin, root=root)


def _check_cwd(root: Path, said: JsonFile, server_id: str, cwd: object) -> None:
    """One that is a reference is checked when it is resolved."""
    if not isinstance(cwd, str) or "${" in with_root(cwd, root):
        return
    if not inside(root, cwd, said=said, keys=(server_id, "cwd")).is_dir():
        raise said.fault(f"`cwd` {cwd[:80]!r} is no folder", server_id, "cwd")
