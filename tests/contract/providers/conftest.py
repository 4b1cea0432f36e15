"""Real HTTP servers on loopback that speak OpenAI's and Ollama's protocols, and the context that providers get."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pizzabot_hookspecs import Context, InvalidRequest

WAIT = 20.0


class EnvironmentOf:
    """`context.secrets` over a plain dict."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def resolve(self, reference: Any, /) -> str:
        name = reference["env"]
        if not self._values.get(name):
            raise InvalidRequest("unset_secret", f"the environment variable {name} is not set")
        return self._values[name]


class ModelServer:
    """A loopback server. `requests` are (method, path, headers, body); `hung_up`: a client went away mid-answer."""

    def __init__(self, answer: Callable[[ModelServer, Any], None]) -> None:
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.hung_up = threading.Event()
        self.closing = threading.Event()
        self.behaviour: dict[str, Any] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None: ...

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                self.parsed = json.loads(body) if body else None
                server.requests.append(
                    (self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, self.parsed)
                )
                try:
                    answer(server, self)
                except (BrokenPipeError, ConnectionResetError):
                    server.hung_up.set()
                    self.close_connection = True

            do_POST = do_GET  # noqa: N815 -- the name that http.server looks for

            def whole(self, status: int, value: Any, content_type: str = "application/json") -> None:
                payload = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def begin(self, content_type: str) -> None:
                self.send_response(200)
                self.send_header("content-type", content_type)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()

            def piece(self, payload: str) -> None:
                data = payload.encode()
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()

            def end(self) -> None:
                self.wfile.write(b"0\r\n\r\n")

            def hang(self) -> None:
                """Say nothing until the server is closed."""
                server.closing.wait(WAIT)
                self.close_connection = True

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None: ...

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(WAIT)

    def bodies(self, path: str) -> list[Any]:
        return [body for _, at, _, body in self.requests if at == path]


def words_for(server: ModelServer, prompt: str) -> Iterator[str]:
    """The prompt word by word; for a prompt to count, words until the client goes away or the server closes."""
    if not prompt.startswith("Count"):
        yield from (f"{word} " for word in prompt.split())
        return
    until = time.monotonic() + WAIT
    while time.monotonic() < until and not server.closing.wait(0.01):
        yield "another "


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(block.get("text", "") for block in content or () if isinstance(block, dict))


def openai_answer(server: ModelServer, request: Any) -> None:
    scripted = server.behaviour.get(request.path)
    if scripted is not None and scripted(request):
        return None
    if request.path == "/v1/models":
        ids = ["gpt-x", "gpt-y", "text-embedding-3", "whisper-1", "sora-2", "gpt-realtime"]
        return request.whole(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in ids]})
    if request.path == "/v1/chat/completions":
        return openai_chat(server, request)
    return request.whole(404, {"error": {"message": "no such path"}})


def openai_chat(server: ModelServer, request: Any) -> None:
    body = request.parsed
    if body["model"] == "gone":
        return request.whole(404, {"error": {"message": "The model `gone` does not exist", "code": "model_not_found"}})
    prompt = text_of(body["messages"][-1]["content"])
    if not body.get("stream"):
        message = {"role": "assistant", "content": "".join(words_for(server, prompt))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return request.whole(
            200, {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
        )
    request.begin("text/event-stream")
    for word in words_for(server, prompt):
        request.piece(openai_event({"content": word}, body["model"]))
    request.piece(openai_event({}, body["model"], finish="stop"))
    request.piece("data: [DONE]\n\n")
    return request.end()


def openai_event(delta: dict[str, Any], model: str = "gpt-x", finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


def ollama_answer(server: ModelServer, request: Any) -> None:
    scripted = server.behaviour.get(request.path)
    if scripted is not None and scripted(request):
        return None
    if request.path == "/api/tags":
        names = ["qwen3:4b", "llava", "old", "nomic-embed"]
        return request.whole(200, {"models": [{"name": name, "model": name} for name in names]})
    if request.path == "/api/show":
        return ollama_show(request)
    if request.path == "/api/chat":
        return ollama_chat(server, request)
    return request.whole(404, {"error": "no such path"})


def ollama_show(request: Any) -> None:
    known = {
        "qwen3:4b": (["completion", "tools", "thinking"], 8192),
        "llava": (["completion", "vision"], 4096),
        "nomic-embed": (["embedding"], 2048),
    }
    name = request.parsed["model"]
    if name == "old":
        return request.whole(500, {"error": "secret-of-the-server"})
    if name not in known:
        return request.whole(404, {"error": f"model '{name}' not found"})
    capabilities, window = known[name]
    return request.whole(200, {"capabilities": capabilities, "model_info": {"x.context_length": window}})


def ollama_chat(server: ModelServer, request: Any) -> None:
    body = request.parsed
    request.begin("application/x-ndjson")
    for word in words_for(server, text_of(body["messages"][-1].get("content"))):
        request.piece(ollama_line({"role": "assistant", "content": word}))
    request.piece(ollama_line({"role": "assistant", "content": ""}, done=True))
    return request.end()


def ollama_line(message: dict[str, Any], *, done: bool = False) -> str:
    end = {"done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4} if done else {}
    return (
        json.dumps({"model": "m", "created_at": "2025-01-01T00:00:00Z", "message": message, "done": done, **end}) + "\n"
    )


@contextmanager
def _serving(answer: Callable[[ModelServer, Any], None]) -> Iterator[ModelServer]:
    server = ModelServer(answer)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def openai_server() -> Iterator[ModelServer]:
    with _serving(openai_answer) as server:
        yield server


@pytest.fixture
def ollama_server() -> Iterator[ModelServer]:
    with _serving(ollama_answer) as server:
        yield server


@pytest.fixture
def openai_event_of() -> Callable[..., str]:
    return openai_event


@pytest.fixture
def ollama_line_of() -> Callable[..., str]:
    return ollama_line


@pytest.fixture
def make_context(tmp_path: Path) -> Callable[..., Context]:
    def make(name: str = "test", **environ: str) -> Context:
        return Context(
            name=name,
            data_root=tmp_path,
            logger=_Silent(),
            secrets=EnvironmentOf(environ),
            clock=time.time,
            redact=str,
        )

    return make


class _Silent:
    def debug(self, event: str, **facts: Any) -> None:
        logging.getLogger("providers").debug("%s %s", event, facts)

    info = warning = error = exception = debug


@pytest.fixture(autouse=True)
def _no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
