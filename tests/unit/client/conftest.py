"""A scripted server on loopback that keeps a log as the real one does: what clients see is what it stored."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

WAIT = 20.0
NO_MODEL = "no-model"


class ScriptedServer:
    """Answers `run.start` with the frames of `script(text)`. The switches below make it misbehave.

    `lose_answers`   answers of that many commands are lost: done, but the connection closes
    `cut_after`      event streams close after that many frames, for each number in the list in turn
    `hold`           the run waits for `release` (or run.stop) before its last frames
    `quiet`          the run waits for `release` before its first frame
    `questions`      what is open on every thread; `run_questions` become open when the run says them
    `keep_questions` run.stop leaves them open
    `refusals`       envelopes' codes with which the next answers are refused
    """

    def __init__(self) -> None:
        self.log: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.runs: dict[str, str] = {}
        self.lose_answers = 0
        self.cut_after: list[int] = []
        self.refuse: tuple[int, Any] | None = None
        self.refuse_stream: tuple[int, Any] | None = None
        self.identity: Any = {"service": "pizza-bot", "protocolVersion": 1, "version": "0"}
        self.status: Any = {"version": "0", "model": "echo:echo", "runtime": {"state": "ready"}, "runs": {"active": 0}}
        self.token: str | None = None
        self.hold = False
        self.release = threading.Event()
        self.held = threading.Event()
        self.closing = threading.Event()
        self.changed = threading.Condition()
        self.stopped: list[str | None] = []
        self.ending: dict[str, Any] = {"event": "completed"}
        self.quiet = False
        self.questions: list[dict[str, Any]] = []
        self.run_questions: list[dict[str, Any]] = []
        self.refusals: list[tuple[str, str]] = []
        self.keep_questions = False
        self.answers: list[Any] = []
        self.cut_once = ""
        self.extra_frames: list[tuple[str, dict[str, Any], list[str]]] = []
        self._http = _listening(self)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.closing.set()
        self.release.set()
        with self.changed:
            self.changed.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(WAIT)

    def commands(self, method: str) -> list[dict[str, Any]]:
        return [request["body"] for request in self.requests if (request["body"] or {}).get("method") == method]

    def streams(self) -> list[dict[str, Any]]:
        return [request["body"] for request in self.requests if request["path"].endswith("/stream/events")]

    def append(self, run_id: str, method: str, data: Any, namespace: list[str] | None = None) -> None:
        with self.changed:
            seq = len(self.log) + 1
            params = {"namespace": namespace or [], "timestamp": seq, "data": data}
            self.log.append(
                {"type": "event", "event_id": f"synth:{run_id}:{seq}", "seq": seq, "method": method, "params": params}
            )
            self.changed.notify_all()

    def start(self, command: dict[str, Any]) -> dict[str, Any]:
        params = command["params"]
        message = params["input"]["messages"][-1]
        known = message["id"] in self.runs
        run_id = self.runs.setdefault(message["id"], params["run_id"])
        before = len(self.log)
        if not known:
            threading.Thread(target=self._run, args=(run_id, message["content"]), daemon=True).start()
        else:
            before = next(frame["seq"] for frame in self.log if run_id in frame["event_id"]) - 1
        return {
            "type": "success",
            "id": command["id"],
            "result": {"run_id": run_id},
            "meta": {"applied_through_seq": before},
        }

    def respond(self, command: dict[str, Any]) -> dict[str, Any]:
        """Take the answers; the run that goes on says which ones it got."""
        params = command["params"]
        if self.refusals:
            code, message = self.refusals.pop(0)
            return {"type": "error", "id": command["id"], "error": code, "message": message}
        self.answers += [entry["response"] for entry in params["responses"]]
        answered = {entry["interrupt_id"] for entry in params["responses"]}
        self.questions = [question for question in self.questions if question["interruptId"] not in answered]
        before = len(self.log)
        self.ending = {"event": "interrupted"} if self.questions else {"event": "completed"}
        threading.Thread(target=self._run, args=(params["run_id"], "went on"), daemon=True).start()
        return {
            "type": "success",
            "id": command["id"],
            "result": {"run_id": params["run_id"]},
            "meta": {"applied_through_seq": before},
        }

    def _run(self, run_id: str, text: str) -> None:
        if self.quiet:
            self.release.wait(WAIT)
        self.append(run_id, "lifecycle", {"event": "running"})
        for method, data, namespace in self.extra_frames:
            self.append(run_id, method, data, namespace)
        if self.cut_once:
            self._message(run_id, "m0", self.cut_once)
            cut = {"run_id": "m0", "event": "error", "message": "the server was restarted", "code": "aborted"}
            self.append(run_id, "messages", cut)
        self._message(run_id, "m1", text)
        if self.hold:
            self.held.set()
            self.release.wait(WAIT)
        for question in self.run_questions:
            asked = {"interrupt_id": question["interruptId"], **question}
            self.append(run_id, "input.requested", asked)
        self.questions += self.run_questions
        self.run_questions = []
        self.append(run_id, "lifecycle", self.ending)

    def _message(self, run_id: str, message_id: str, text: str) -> None:
        message = {"run_id": message_id, "event": "message-start", "role": "ai", "id": message_id}
        self.append(run_id, "messages", message)
        for word in text.split(" "):
            delta = {"type": "text-delta", "text": f"{word} "}
            self.append(
                run_id, "messages", {"run_id": message_id, "event": "content-block-delta", "index": 0, "delta": delta}
            )


def _listening(server: ScriptedServer) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw) if raw else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.requests.append({"path": self.path, "body": body, "headers": headers})
            if server.refuse is not None:
                return self._whole(*server.refuse)
            if self.path == "/":
                return self._whole(200, server.identity)
            if server.token is not None and headers.get("authorization") != f"Bearer {server.token}":
                return self._whole(401, {"error": "unauthorized", "detail": "a token is needed"})
            return self._route(body)

        do_POST = do_GET  # noqa: N815 -- the name that http.server looks for

        def _route(self, body: Any) -> None:
            if self.path == "/status":
                return self._whole(200, server.status)
            if self.path.endswith("/state"):
                known = any(
                    self.path.split("/")[2] in str(request["body"]) or server.log for request in server.requests
                )
                return self._whole(
                    *((200, {"values": {}}) if known else (404, {"error": "no_such_thread", "detail": "no"}))
                )
            if self.path.endswith("/interrupts"):
                return self._whole(200, {"interrupts": server.questions})
            if self.path == "/threads":
                return self._whole(200, {"thread_id": body["thread_id"]})
            if self.path.endswith("/commands"):
                return self._command(body)
            return self._events(body["since"])

        def _command(self, body: Any) -> None:
            if body["method"] == "run.start":
                answer = server.start(body)
            elif body["method"] == "input.respond":
                answer = server.respond(body)
            elif body["method"] == "run.stop":
                server.stopped.append(body["params"].get("run_id"))
                server.questions = server.questions if server.keep_questions else []
                server.ending = {"event": "completed", "code": "CANCELLED"}
                server.release.set()
                answer = {"type": "success", "id": body["id"], "result": {}}
            else:
                return self._whole(
                    422, {"type": "error", "id": body["id"], "error": "unknown_command", "message": "no"}
                )
            if server.lose_answers > 0:
                server.lose_answers -= 1
                self.close_connection = True
                return None
            return self._whole(200, answer)

        def _events(self, since: int) -> None:
            if server.refuse_stream is not None:
                return self._whole(*server.refuse_stream)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            left = server.cut_after.pop(0) if server.cut_after else None
            sent = since
            self.close_connection = True
            try:
                self._piece(": open\n\n")
                while not server.closing.is_set() and left != 0:
                    with server.changed:
                        server.changed.wait_for(lambda at=sent: len(server.log) > at or server.closing.is_set(), WAIT)
                        news = server.log[sent:]
                    for frame in news[:left]:
                        self._piece(f"event: {frame['method']}\ndata: {json.dumps(frame)}\nid: {frame['seq']}\n\n")
                        sent += 1
                        left = None if left is None else left - 1
            except (BrokenPipeError, ConnectionResetError):
                return None

        def _piece(self, text: str) -> None:
            data = text.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def _whole(self, status: int, value: Any) -> None:
            payload = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None: ...

    return Quiet(("127.0.0.1", 0), Handler)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer()
    try:
        yield scripted
    finally:
        scripted.close()


@pytest.fixture
def dead_url() -> str:
    """An address at which nobody listens."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def make_frame() -> Callable[..., dict[str, Any]]:
    def make(
        method: str, data: Any, *, namespace: tuple[str, ...] = (), run: str = "r", seq: int = 1
    ) -> dict[str, Any]:
        params = {"namespace": list(namespace), "timestamp": 1, "data": data}
        return {"type": "event", "event_id": f"synth:{run}:{seq}", "seq": seq, "method": method, "params": params}

    return make
