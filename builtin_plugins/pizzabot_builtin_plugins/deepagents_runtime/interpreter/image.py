"""QuickJS as WebAssembly: taken from the package `quickjs-rs`, compiled once, kept in memory and in a folder.

Compiling takes 0.3 s and leaves the interpreter lock alone; reading the compiled code from the folder takes 10 ms.
A file of the folder is native code that this process will run: only one of this user's that nobody else may write is
used, and only if its digest fits.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import stat
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import STACK_BYTES
from pizzabot_hookspecs.errors import Unavailable

if TYPE_CHECKING:
    import wasmtime

PACKAGES = {"wasmtime": "wasmtime==50.0.1", "quickjs_rs": "quickjs-rs==0.2.6"}
"""Modules that `builtin:eval` needs, with the releases whose interface this is written for."""

GUEST_FILE = "_guest.wasm"

EXPORTS = frozenset({
    "call_function", "eval_async", "eval_code", "execute_pending_jobs", "free_value", "get_prop", "get_string",
    "last_exception", "memory", "new_function", "new_string", "new_undefined", "qjs_alloc", "qjs_free", "qjs_last_len",
    "qjs_last_ptr", "qjs_result_free", "set_memory_limit", "type_of",
})  # fmt: skip
"""What `guest` calls. quickjs-rs does not promise these names: a release without one of them is refused by name."""

NOTHING = """(module
  (func (export "interrupted") (result i32) i32.const 0)
  (func (export "load") (param i32 i32 i32) (result i32) i32.const 0)
  (func (export "normalize") (param i32 i32 i32 i32 i32) (result i32) i32.const 0))"""
"""What the guest asks the host while it computes, answered without Python: a guest never needs the interpreter lock."""

_DIGEST_BYTES = 32
_PREFIX, _SUFFIX = "eval-", ".native"

_loading = threading.Lock()
_loaded: Image | None = None


@dataclass(frozen=True)
class Image:
    """Compiled code of the guest and of `NOTHING`."""

    guest: bytes
    nothing: bytes


def require_packages() -> None:
    """Raises `Unavailable` `missing_package` when a package is not installed. Imports none."""
    for module, pin in PACKAGES.items():
        if not _installed(module):
            raise Unavailable(
                "missing_package",
                f"builtin:eval needs the package {pin.partition('==')[0]}, which is not installed: pip install '{pin}'",
            )


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # somebody put something else in its place
        return False


def warm(cache_folder: Path | None = None) -> None:
    """Have the compiled guest in memory. Blocks for up to a second the first time: for a background thread."""
    load_image(cache_folder)


def load_image(cache_folder: Path | None) -> Image:
    """The compiled guest, shared by the whole process. Blocks: call it in a thread.

    Raises `Unavailable`: `missing_package`, `incompatible_package`.
    """
    global _loaded
    with _loading:
        if _loaded is None:
            require_packages()
            try:
                import wasmtime  # noqa: F401 - whether it can be
            except (ImportError, OSError) as error:
                raise Unavailable(
                    "incompatible_package", f"builtin:eval: wasmtime cannot be loaded: {error}"
                ) from error
            _loaded = _found(cache_folder) or _compiled(cache_folder)
        return _loaded


def new_engine() -> wasmtime.Engine:
    """An engine of its own for each sandbox: its epoch stops that one and no other (0.2 ms)."""
    import wasmtime

    config = wasmtime.Config()
    config.epoch_interruption = True
    config.max_wasm_stack = STACK_BYTES
    config.parallel_compilation = False  # one core for the compiler, the others for the server
    return wasmtime.Engine(config)


def _compiled(folder: Path | None) -> Image:
    import wasmtime

    engine = new_engine()
    try:
        module = wasmtime.Module(engine, _guest_bytes())
    except wasmtime.WasmtimeError as error:
        raise Unavailable(
            "incompatible_package", f"builtin:eval: quickjs-rs's guest does not compile: {error}"
        ) from None
    missing = EXPORTS - {export.name for export in module.exports}
    if missing:
        raise Unavailable(
            "incompatible_package",
            f"builtin:eval: this release of quickjs-rs lacks {', '.join(sorted(missing))}; "
            f"pip install '{PACKAGES['quickjs_rs']}'",
        )
    image = Image(bytes(module.serialize()), bytes(wasmtime.Module(engine, NOTHING).serialize()))
    if folder is not None:
        with suppress(OSError):  # the folder spares time and nothing else
            _keep(image, folder)
    return image


def _guest_bytes() -> bytes:
    spec = importlib.util.find_spec("quickjs_rs")
    folder = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path()
    try:
        return (folder / GUEST_FILE).read_bytes()
    except OSError as error:
        raise Unavailable(
            "incompatible_package", f"builtin:eval: quickjs-rs without its {GUEST_FILE}: {error}"
        ) from None


def _file_name() -> str:
    of = [_guest_bytes(), NOTHING.encode(), importlib.metadata.version("wasmtime").encode(), str(STACK_BYTES).encode()]
    of += [sys.platform.encode(), platform.machine().encode(), platform.processor().encode()]
    digest = hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in of)).hexdigest()
    return f"{_PREFIX}{digest[:32]}{_SUFFIX}"


def _found(folder: Path | None) -> Image | None:
    """The image in the folder, None where there is none that can be trusted to be what was written."""
    if folder is None:
        return None
    try:
        with (folder / _file_name()).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            digest, content = file.read(_DIGEST_BYTES), file.read()
    except OSError:
        return None
    if hashlib.sha256(content).digest() != digest:
        return None
    length = int.from_bytes(content[:8], "big")
    return Image(guest=content[8 : 8 + length], nothing=content[8 + length :])


def _keep(image: Image, folder: Path) -> None:
    """Write the image beside its name and then under it, and remove those of other releases."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    content = len(image.guest).to_bytes(8, "big") + image.guest + image.nothing
    target = folder / _file_name()
    draft = target.with_suffix(f".{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    for other in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        if other != target:
            other.unlink(missing_ok=True)
