"""The child process: llama.cpp's own server on loopback, behind a random key, for as long as the parent lives.

Run as `python -m pizzabot_builtin_plugins.local.child`. One JSON line on stdin says what to load, and the key: argv and
the environment can be read by others. One JSON line on stdout answers: `{"url": …}` or `{"error": …}`. Then it serves
until stdin ends or TERM comes. llama.cpp logs to stderr.

A process of its own, because loading holds the interpreter lock for seconds and a damaged file can kill it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

from pizzabot_hookspecs.support.guard import die_with_parent


def main() -> None:
    answers = _own_stdout()
    launch = json.loads(sys.stdin.readline())
    die_with_parent(launch["parent"])
    os.nice(5)  # it takes every core while it computes; the server's event loop goes first
    try:
        server = _load(launch)
    except Exception as error:  # noqa: BLE001  whatever it is, the parent has to hear of it
        _say(answers, {"error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _say(answers, {"url": server.listening_address})
    while sys.stdin.read(4096):
        pass
    os._exit(0)  # the parent is gone or wants us to go; llama.cpp's threads would wait for a running answer


def _own_stdout() -> TextIO:
    """Keep stdout for the one answer: whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _say(answers: TextIO, what: dict[str, str]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def _load(launch: dict[str, Any]) -> Any:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = launch["path"]
    parameters.model_alias = {launch["name"]}
    parameters.n_ctx = launch["context_size"] * launch["parallel"]
    parameters.n_parallel = launch["parallel"]
    parameters.n_gpu_layers = launch["gpu_layers"]
    parameters.cpuparams.n_threads = launch["threads"]
    parameters.cpuparams_batch.n_threads = launch["threads"]
    parameters.cache_ram_mib = launch["prompt_cache_mib"]
    # A cancelled request is noticed between batches: 2,048 tokens, the default, kept two cores busy for 2.2 s more.
    parameters.n_batch = parameters.n_ubatch = 256
    parameters.n_threads_http = launch["parallel"] + 4
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [launch["key"]]
    # By default the port answers any origin with credentials and serves a page, and may fetch models by itself.
    parameters.cors_origins = "http://127.0.0.1"
    parameters.cors_credentials = False
    parameters.ui = parameters.endpoint_slots = parameters.endpoint_props = parameters.endpoint_metrics = False
    parameters.offline = True
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()
