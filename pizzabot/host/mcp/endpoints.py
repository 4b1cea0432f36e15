"""An entry with its references resolved and its program found, for one connecting: `endpoint_of`.

`${NAME}` asks the secret stores; it may stand within a longer text (`Bearer ${NAME}`), as other products' files have
it, and `${NAME:-other}` names what counts where it is not set. `${CLAUDE_PLUGIN_ROOT}` is a plugin's own folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pizzabot.host.mcp.definitions import Entry, read_entry
from pizzabot_hookspecs import InvalidRequest, PizzabotError, Secrets, Unavailable
from pizzabot_hookspecs.mcp_clients import McpEndpoint, McpTransport
from pizzabot_hookspecs.support.paths import contained_path
from pizzabot_hookspecs.support.redaction import sensitive_key

ROOT_VARIABLES = frozenset({"CLAUDE_PLUGIN_ROOT", "PIZZABOT_PLUGIN_ROOT"})

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,127})(?::-(.*))?", re.DOTALL)
_PYTHON = frozenset({"python", "python3"})
_PYTHON_FAMILY = frozenset({"pip", "pipx", "uv", "uvx"})
_NODE_FAMILY = frozenset({"bunx", "corepack", "node", "npm", "npx", "pnpm", "yarn"})


def endpoint_of(
    server_id: str,
    entry: Entry,
    *,
    root: Path | None,
    secrets: Secrets,
    path: Sequence[str],
    environ: Mapping[str, str],
) -> McpEndpoint:
    """Blocking: a secret store may take seconds. `path` are folders that are searched before those of `PATH`.

    Raises `InvalidRequest` `unset_secret`, `invalid_reference`, `invalid`; `Unavailable` `mcp_unresolved` where there
    is no such program.
    """
    resolve = _Resolver(secrets, root)
    if entry.transport is not McpTransport.STDIO:
        headers = {name: resolve(value) for name, value in entry.headers.items()}
        url = resolve(entry.url)
        read_entry({"type": entry.transport.value, "url": url, "headers": headers})
        return McpEndpoint(id=server_id, transport=entry.transport, url=url, headers=headers)
    env = {name: resolve(value) for name, value in entry.env.items()}
    searched = os.pathsep.join([*path, env.get("PATH", environ.get("PATH", os.defpath))])
    if path or "PATH" in env:
        env["PATH"] = searched
    return McpEndpoint(
        id=server_id,
        transport=entry.transport,
        command=_program(resolve(entry.command), root, searched),
        args=tuple(resolve(arg) for arg in entry.args),
        env=env,
        cwd=_folder(None if entry.cwd is None else resolve(entry.cwd), root),
    )


def secrets_of(endpoint: McpEndpoint) -> list[str]:
    """What is to be hidden of an entry, also where it is written out: values under names that look like secrets."""
    pairs = [*endpoint.env.items(), *endpoint.headers.items()]
    return [part for name, value in pairs if sensitive_key(name) for part in (value, value.rpartition(" ")[2])]


class _Resolver:
    def __init__(self, secrets: Secrets, root: Path | None) -> None:
        self._secrets = secrets
        self._root = root

    def __call__(self, text: str) -> str:
        return _REFERENCE.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        named = _NAMED.fullmatch(match[1])
        if named is None:
            raise InvalidRequest(
                "invalid_reference",
                f"{match[0][:80]} is no reference: write ${{NAME}} with a NAME of letters, digits and _",
            )
        name, other = named[1], named[2]
        if name in ROOT_VARIABLES and self._root is not None:
            return str(self._root)
        try:
            return self._secrets.resolve(f"${{{name}}}")
        except InvalidRequest:
            if other is None:
                raise
            return other


def _program(command: str, root: Path | None, searched: str) -> str:
    if Path(command).is_absolute():
        return command
    if os.sep in command:
        return str(_inside(command, root, "command"))
    found = shutil.which(command, path=searched)
    if found is not None:
        return found
    if command in _PYTHON:
        return sys.executable
    beside = Path(sys.executable).parent / command
    if command in _PYTHON_FAMILY and os.access(beside, os.X_OK):
        return str(beside)
    way_out = "install it, or name its folder in [mcp] path"
    if command in _NODE_FAMILY:
        way_out = "install Node.js, or name the folder of its programs in [mcp] path"
    raise Unavailable("mcp_unresolved", f"the program {command!r} could not be resolved: {way_out}")


def _folder(cwd: str | None, root: Path | None) -> Path | None:
    if cwd is None:
        return root
    folder = Path(cwd).expanduser()
    if root is not None:
        folder = _inside(os.path.relpath(folder, root) if folder.is_absolute() else cwd, root, "cwd")
    elif not folder.is_absolute():
        raise InvalidRequest("invalid", f"`cwd` {cwd[:80]!r} must be absolute")
    if not folder.is_dir():
        raise InvalidRequest("invalid", f"`cwd` {cwd[:80]!r} is no folder")
    return folder


def _inside(path: str, root: Path | None, field: str) -> Path:
    if root is None:
        raise InvalidRequest("invalid", f"`{field}` {path[:80]!r} must be absolute, or the name of a program")
    plain = os.path.normpath(path)
    if plain == ".":
        return root
    try:
        return contained_path(root, plain)
    except PizzabotError as error:
        raise InvalidRequest("invalid", f"`{field}` {path[:80]!r} leads out of its plugin's folder") from error
