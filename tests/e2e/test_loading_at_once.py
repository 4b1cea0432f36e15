"""The listener and the first MCP server are loaded in two threads at once: whoever comes second waits, nobody fails.

Packages import each other in circles. Where one thread is inside of one and another begins at its other end, Python
breaks the deadlock by handing out a module that is not there yet, and the start fails with an ImportError.
"""

from __future__ import annotations

import subprocess
import sys

# The listener's thread stands still where the module `uvicorn.config` begins, until the other one waits for it.
TOGETHER = """
import importlib._bootstrap as bootstrap, sys, threading, time, warnings
warnings.simplefilter("ignore")

listener_is_inside = threading.Event()

def hold(frame, event, _argument):
    if event == "call" and frame.f_globals.get("__name__") == "uvicorn.config":
        sys.setprofile(None)
        listener_is_inside.set()
        deadline = time.monotonic() + 20
        while client.is_alive() and client.ident not in bootstrap._blocking_on and time.monotonic() < deadline:
            time.sleep(0.01)

def listen():
    sys.setprofile(hold)
    try:
        import pizzabot_builtin_plugins.http_server.server
    except ImportError as error:
        failed.append(f"listener: {error}")

def connect():
    from pizzabot_builtin_plugins.mcp_client.client import _load
    listener_is_inside.wait(20)
    try:
        _load()
    except ImportError as error:
        failed.append(f"client: {error}")

failed = []
listener = threading.Thread(target=listen, name="listener")
client = threading.Thread(target=connect, name="client")
client.start(), listener.start()
listener.join(), client.join()
assert listener_is_inside.is_set()
print(failed)
"""


def test_the_listener_loads_while_the_first_mcp_server_is_connected() -> None:
    ended = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout.strip(), ended.stderr) == ("[]", "")
