"""One sandbox: QuickJS in a WebAssembly instance of its own, with a limit of memory, stopped from any thread.

A step (`run`, `settle`) goes as far as the guest can go by itself and returns what it asks for. Only one thread at a
time may be in a step; which one does not matter. During a step the guest computes without Python: the interpreter lock
is taken only when it calls the host.
"""

from __future__ import annotations

import json
import re
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import (
    MAX_BRIDGED_CHARACTERS,
    MEMORY_BYTES,
)
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.image import Image, new_engine
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.prelude import prelude
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.refusals import Refused

_SPARE_BYTES = 4 * 1024 * 1024
_HEAP_BYTES = MEMORY_BYTES - _SPARE_BYTES
"""What QuickJS is told: it then mostly finds out itself, as an error that the code can catch."""

_HALF_PAIR = re.compile("[\ud800-\udfff]")

_OK, _THROWN = 0, 1
_REFUSED = -1  # a host function that failed; the guest makes an error of it


if TYPE_CHECKING:
    import wasmtime


class Broken(StrEnum):
    """Why a sandbox cannot be used any more."""

    STACK = "stack"
    MEMORY = "memory"
    STOPPED = "stopped"
    FAULT = "fault"


class GuestBroken(Exception):
    """The step ended in the middle. The sandbox must be closed."""

    def __init__(self, reason: Broken, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


@dataclass(frozen=True)
class HostCall:
    """A call that the guest waits for, the `number`th of its eval. With a `fault` it is to be refused."""

    id: str
    number: int
    name: str
    arguments: Mapping[str, Any]
    fault: str = ""


@dataclass(frozen=True)
class Answer:
    """What a call came to: a JSON value, or `{message, facts}` for what is thrown in the guest."""

    id: str
    thrown: bool
    value: object


@dataclass(frozen=True)
class End:
    """How the code ended. `hidden` characters of result and console were cut off; `stack` is only of an error."""

    thrown: bool
    text: str
    hidden: int
    stack: str


@dataclass
class Said:
    """What a guest has said since the eval began: console output, calls not yet taken, its end."""

    console: list[str] = field(default_factory=list)
    calls: list[HostCall] = field(default_factory=list)
    count: int = 0
    end: End | None = None


class Guest:
    """Creating takes 2 ms, a step as long as the code does: both belong in a thread. `stop` may come from anywhere."""

    def __init__(self, image: Image, tools: Sequence[tuple[str, str]], *, task: bool) -> None:
        import wasmtime

        self.said = Said()
        self._busy = threading.Lock()
        self._closed = False
        self._engine = new_engine()
        self._store = wasmtime.Store(self._engine)
        self._store.set_limits(memory_size=MEMORY_BYTES)
        self._store.set_epoch_deadline(1)
        self._store.set_wasi(wasmtime.WasiConfig())  # a clock and chance; no files, arguments, environment or output
        with self._step():
            self._exports = _instance(self._engine, self._store, image, self._host_call)
            self._memory: wasmtime.Memory = self._exports["memory"]
            self._call("set_memory_limit", _HEAP_BYTES)
            self._slot = self._call("qjs_alloc", 4)
            self._undefined = self._call("new_undefined")
            self._functions = self._installed(prelude(tools, task=task))

    # -- steps --------------------------------------------------------------------------------------------------------

    def run(self, code: str) -> list[HostCall]:
        """Begin an eval: run `code` as far as it goes. The calls that it waits for, oldest first."""
        with self._step():
            self.said = Said()
            self._invoke("begin")
            pointer, length = self._written(code)
            status = self._call("eval_async", pointer, length, self._slot)
            self._call("qjs_free", pointer, length)
            if status == _OK:
                promise = self._result()
                self._invoke("watch", promise)
                self._call("free_value", promise)
            elif status == _THROWN:
                self._call("last_exception", self._slot)
                self._invoke("failed", self._result())
            else:
                raise GuestBroken(Broken.FAULT, f"eval status {status}")
            return self._carried_on()

    def settle(self, answers: Sequence[Answer]) -> list[HostCall]:
        """Hand over results and go on. The calls that it waits for now and did not before."""
        with self._step():
            for answer in answers:
                texts = [answer.id, *_crossing(answer)]
                handles = [self._new_string(text) for text in texts]
                self._invoke("settle", *handles)
                for handle in handles:
                    self._call("free_value", handle)
                self._finish_jobs()
            return self._carried_on()

    def stop(self) -> None:
        """End the step under way, also inside a native operation, and every later one. From any thread, at once."""
        self._engine.increment_epoch()

    def close(self) -> None:
        """Give the memory back. Waits for the step under way: stop it before."""
        with self._busy:
            if not self._closed:
                self._closed = True
                self._functions = {}
                self._exports = None
                self._store.close()

    @property
    def full(self) -> bool:
        """Whether the memory has grown to its limit. It never shrinks."""
        return self._memory.data_len(self._store) > MEMORY_BYTES - _SPARE_BYTES

    def _carried_on(self) -> list[HostCall]:
        self._finish_jobs()
        end = self.said.end
        if self.full and (end is None or (end.thrown and end.text == "null")):
            raise GuestBroken(Broken.MEMORY)  # not even the error could be made
        calls, self.said.calls = self.said.calls, []
        return calls

    def _finish_jobs(self) -> None:
        while self._call("execute_pending_jobs") > 0:  # a bounded number at a time
            pass

    @contextmanager
    def _step(self) -> Iterator[None]:
        import wasmtime

        with self._busy:
            if self._closed:
                raise GuestBroken(Broken.STOPPED)
            try:
                yield
            except wasmtime.Trap as trap:
                raise GuestBroken(_reason(trap), str(trap.message)) from None
            except wasmtime.WasmtimeError as error:
                raise GuestBroken(Broken.FAULT, str(error)) from None

    # -- what the guest asks ------------------------------------------------------------------------------------------

    def _host_call(self, _name: int, _length: int, _this: int, count: int, pointer: int) -> int:
        try:
            values = [self._string(handle) for handle in struct.unpack(f"<{count}i", self._read(pointer, 4 * count))]
            self._heard(*values)
            return int(self._call("new_undefined"))
        except Exception:  # noqa: BLE001 - an exception must not cross the border; the guest gets an error
            return _REFUSED

    def _heard(self, kind: str, *values: str) -> None:
        said = self.said
        if kind == "log":
            said.console.append(json.loads(values[0]))
        elif kind == "call":
            said.calls.append(_call_of(*values, number=said.count))
            said.count += 1
        elif kind == "done":
            ending, text, hidden, stack = values
            said.end = End(ending == "error", json.loads(text), int(hidden), json.loads(stack))

    # -- the border ---------------------------------------------------------------------------------------------------

    def _installed(self, source: str) -> dict[str, int]:
        """Run the prelude with the one function of the host; the guest's functions by name."""
        pointer, length = self._written(source)
        status = self._call("eval_code", pointer, length, self._slot)
        self._call("qjs_free", pointer, length)
        if status != _OK:
            raise GuestBroken(Broken.FAULT, "the prelude does not run")
        install = self._result()
        pointer, length = self._written("post")
        functions = self._called(install, self._call("new_function", pointer, length))
        return {name: self._property(functions, name) for name in ("begin", "settle", "watch", "failed")}

    def _invoke(self, name: str, *handles: int) -> None:
        self._call("free_value", self._called(self._functions[name], *handles))

    def _called(self, function: int, *handles: int) -> int:
        size = 4 * len(handles)
        pointer = self._allocated(size) if size else 0
        if size:
            self._memory.write(self._store, struct.pack(f"<{len(handles)}i", *handles), pointer)
        status = self._call("call_function", function, self._undefined, pointer, len(handles), self._slot)
        if size:
            self._call("qjs_free", pointer, size)
        if status != _OK:
            raise GuestBroken(Broken.MEMORY, f"call status {status}")
        return self._result()

    def _property(self, owner: int, name: str) -> int:
        pointer, length = self._written(name)
        self._call("get_prop", owner, pointer, length, self._slot)
        return self._result()

    def _new_string(self, text: str) -> int:
        pointer, length = self._written(text)
        handle: int = self._call("new_string", pointer, length)
        self._call("qjs_free", pointer, length)
        return handle

    def _string(self, handle: int) -> str:
        if self._call("get_string", handle) != _OK:
            raise ValueError("not a string")
        text = self._read(self._call("qjs_last_ptr"), self._call("qjs_last_len")).decode()
        self._call("qjs_result_free")
        return text

    def _written(self, text: str) -> tuple[int, int]:
        data = text.encode()
        pointer = self._allocated(len(data))
        if data:
            self._memory.write(self._store, data, pointer)
        return pointer, len(data)

    def _allocated(self, size: int) -> int:
        pointer: int = self._call("qjs_alloc", size)
        if pointer == 0 and size:
            raise GuestBroken(Broken.MEMORY)
        return pointer

    def _result(self) -> int:
        (value,) = struct.unpack("<i", self._read(self._slot, 4))
        return int(value)

    def _read(self, pointer: int, length: int) -> bytes:
        return bytes(self._memory.read(self._store, pointer, pointer + length)) if length else b""

    def _call(self, name: str, *values: int) -> Any:
        return self._exports[name](self._store, *values)


def _instance(engine: wasmtime.Engine, store: wasmtime.Store, image: Image, host_call: Any) -> Any:
    import wasmtime

    nothing = wasmtime.Instance(store, wasmtime.Module.deserialize(engine, image.nothing), []).exports(store)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    linker.define(store, "env", "host_interrupt", nothing["interrupted"])
    linker.define(store, "env", "host_module_normalize", nothing["normalize"])
    linker.define(store, "env", "host_module_load", nothing["load"])
    number = wasmtime.ValType.i32
    linker.define_func("env", "host_call", wasmtime.FuncType([number() for _ in range(5)], [number()]), host_call)
    return linker.instantiate(store, wasmtime.Module.deserialize(engine, image.guest)).exports(store)


def _call_of(call_id: str, name: str, arguments: str, *, number: int) -> HostCall:
    """Read in the guest's thread: a megabyte of JSON takes milliseconds."""
    given: dict[str, Any] = {}
    fault = ""
    try:
        given = json.loads(arguments)
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        fault = "an argument has half of a surrogate pair, which no file and no model can hold"
    except RecursionError:
        fault = "the arguments are nested too deeply"
    return HostCall(call_id, number, name, given, fault)


def _crossing(answer: Answer) -> tuple[str, str]:
    """Kind and JSON. A value that is too long is thrown as an error that says so."""
    text = json.dumps(answer.value, ensure_ascii=False)
    if not text.isascii() and _HALF_PAIR.search(text):
        text = json.dumps(answer.value)
    if len(text) <= MAX_BRIDGED_CHARACTERS:
        return ("thrown" if answer.thrown else "value"), text
    refused = Refused(f"the result has {len(text)} characters as JSON; {MAX_BRIDGED_CHARACTERS} are allowed")
    return "thrown", json.dumps(refused.told())


def _reason(trap: wasmtime.Trap) -> Broken:
    import wasmtime

    code = wasmtime.TrapCode
    if trap.trap_code is code.INTERRUPT:
        return Broken.STOPPED
    if trap.trap_code is code.STACK_OVERFLOW or trap.trap_code is code.MEMORY_OUT_OF_BOUNDS:
        return Broken.STACK
    return Broken.MEMORY if trap.trap_code is code.UNREACHABLE else Broken.FAULT
