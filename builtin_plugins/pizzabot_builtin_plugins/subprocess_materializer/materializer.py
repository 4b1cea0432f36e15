"""`SubprocessMaterializer`: `python <entrypoint> <source>…` in the bundle's folder, which writes the output folder.

The child has a process group of its own and ends with this process. It gets the few variables that every child gets
and three that are meant for it, not the host's environment: that holds keys (docs/extend/materializers.md).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pizzabot_builtin_plugins.subprocess_materializer.settings import SubprocessSettings
from pizzabot_hookspecs import InvalidRequest, Logger, Unavailable
from pizzabot_hookspecs.materializers import MaterializeRequest
from pizzabot_hookspecs.support.processes import Tail, clean_environment, exited, running

MAX_OUTPUT_BYTES = 65_536
"""Of stdout and of stderr: their ends are kept for the report."""
MAX_SAID = 600
"""Characters of it in the report."""

_ROOTS = ("${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}")


class SubprocessMaterializer:
    def __init__(self, settings: SubprocessSettings, logger: Logger) -> None:
        self._python = str(settings.python or sys.executable)
        self._logger = logger

    async def materialize(self, request: MaterializeRequest, /) -> Mapping[str, bytes]:
        """Nothing is returned: what counts is in `request.output`.

        Raises `InvalidRequest` `invalid_entrypoint`, `Unavailable` `materializer_failed`. A cancelled one ends the
        whole group before it returns.
        """
        script = await asyncio.to_thread(entrypoint_of, request)
        command = [self._python, str(script), *(str(source) for source in request.sources)]
        out, err = Tail(MAX_OUTPUT_BYTES), Tail(MAX_OUTPUT_BYTES)
        try:
            async with running(command, env=_environment(request), cwd=request.root, stdin=False) as process:
                assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - pipes
                drains = [
                    asyncio.create_task(out.drain(process.stdout)),
                    asyncio.create_task(err.drain(process.stderr)),
                ]
                code = await exited(process)
        except OSError as error:
            raise Unavailable("materializer_failed", f"{self._python} cannot be started: {error}") from error
        await asyncio.gather(*drains)
        self._logger.info("materializer.ended", bundle=request.bundle, code=code)
        if code != 0:
            raise Unavailable(
                "materializer_failed", f"{request.entrypoint} ended with exit code {code}{_said(out, err)}"
            )
        return {}


def entrypoint_of(request: MaterializeRequest) -> Path:
    """The script: a regular file inside the bundle, links followed only there. Raises `InvalidRequest`."""
    written = request.entrypoint
    if not written:
        raise InvalidRequest("invalid_entrypoint", f"the bundle {request.bundle} names no `entrypoint`")
    root = Path(os.path.realpath(request.root))
    filled = written
    for placeholder in _ROOTS:
        filled = filled.replace(placeholder, str(root))
    try:
        script = Path(os.path.realpath(root / filled))
        fault = (
            "leads out of the bundle's folder"
            if not script.is_relative_to(root)
            else None
            if script.is_file()
            else "is no file in the bundle"
        )
    except (OSError, ValueError) as error:
        fault = f"cannot be followed: {error}"
    if fault is not None:
        raise InvalidRequest("invalid_entrypoint", f"`entrypoint` {written[:120]!r} {fault}")
    return script


def _environment(request: MaterializeRequest) -> dict[str, str]:
    told = {
        "PIZZABOT_MATERIALIZER_OUTPUT_DIR": str(request.output),
        "PIZZABOT_MATERIALIZER_PLUGIN_NAME": request.bundle,
        "PIZZABOT_MATERIALIZER_PLUGIN_ROOT": str(request.root),
    }
    older = {name.replace("PIZZABOT_", "PIZZA_"): value for name, value in told.items()}
    # Without bytecode in it the bundle's folder stays as it was installed.
    return clean_environment({**told, **older, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"})


def _said(out: Tail, err: Tail) -> str:
    text = " | ".join((err.text.strip() or out.text.strip()).splitlines()[-5:])
    return f": {text[-MAX_SAID:]}" if text else ""
