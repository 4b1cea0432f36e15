"""A scripted llama.cpp: put before the real one on the child's path, it speaks the same HTTP and does what it is told.

The model's file name says how loading goes: `broken` raises, `crash` dies, `mute` never ends. The user's last message
says how an answer goes: see `Handler`. Anything else is repeated word by word.
"""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


class CommonParams:
    def __init__(self):
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=0)
        self.cpuparams_batch = SimpleNamespace(n_threads=0)


class Server:
    def __init__(self, params):
        print("a library that prints to stdout", flush=True)
        if "broken" in params.model.path:
            sys.stderr.write("0.01 E llama_model_load: wrong number of tensors\n")
            raise RuntimeError("Failed to init server, please check the input params.")
        if "crash" in params.model.path:
            os.kill(os.getpid(), signal.SIGABRT)
        if "mute" in params.model.path:
            threading.Event().wait()
        sys.stderr.write("loading " + params.model.path + "\n")
        sys.stderr.flush()
        self.server = ThreadingHTTPServer((params.hostnames[0], params.port), Handler)
        self.server.daemon_threads = True
        self.server.params = params
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def listening_address(self):
        return "http://127.0.0.1:" + str(self.server.server_address[1])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(200, b'{"status":"ok"}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers.get("Authorization") != "Bearer " + self.server.params.api_keys[0]:
            return self.answer(401, b'{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}')
        if self.path != "/v1/chat/completions":
            return self.answer(404, b"{}")
        text = body["messages"][-1]["content"]
        if text == "overflow":
            message = "request (9031 tokens) exceeds the available context size (256 tokens), try increasing it"
            error = {"code": 400, "message": message, "type": "exceed_context_size_error"}
            return self.answer(400, json.dumps({"error": error}).encode())
        if text == "refuse":
            return self.answer(500, b'{"error":{"message":"roles must alternate","type":"server_error","code":500}}')
        if text == "silence":
            threading.Event().wait()
        if text == "die before":
            os.kill(os.getpid(), signal.SIGKILL)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        return self.stream(text, body)

    def stream(self, text, body):
        self.wfile.write(b": ping\n\n")
        if text == "garbage":
            self.wfile.write(b"data: {nonsense\n\n")
        elif text == "flood":
            self.wfile.write(b"data: " + b"x" * 2_000_000)
        elif text == "cut":
            self.delta({"content": "half"})
        elif text == "late error":
            self.delta({"content": "half"})
            self.event({"error": {"message": "compute error", "type": "server_error", "code": 500}})
        elif text == "die":
            self.delta({"content": "half"})
            os.kill(os.getpid(), signal.SIGKILL)
        elif text == "endless":
            try:
                while True:
                    self.delta({"content": "word "})
            except OSError:
                sys.stderr.write("the connection was closed\n")
                sys.stderr.flush()
        elif text == "use the tool":
            self.delta({"reasoning_content": "I need the weather."})
            call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}
            self.delta({"tool_calls": [call]})
            self.delta({"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]})
            self.delta({"tool_calls": [{"index": 0, "function": {"arguments": '"Paris"}'}}]})
            self.end("tool_calls")
        elif text == "what was asked":
            self.delta({"content": json.dumps(body)})
            self.end("stop")
        else:
            for word in text.split(" "):
                self.delta({"content": word + " "})
            self.end("stop")
        self.close_connection = True

    def delta(self, delta):
        self.event({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def end(self, reason):
        self.event({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
        self.event({"id": "chatcmpl-1", "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, event):
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
