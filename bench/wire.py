"""The wire: requests beside eight live threads on one socket, what a token costs, the first event with 50 runs going.

    python bench/wire.py [--quick] [--only beside|cost|first|token]

A real server process with the echo model; its client is a process of its own. `cost` compares the socket with event
streams. For `token` the server has a stub runtime, so that LangGraph's own cost is left out, and the normaliser is
measured by itself (`bench/normaliser.py`). CPU is that of all threads of the server. A full run takes 2 minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from peer.figures import end, figure, machine, spread
from serve import get, post, until
from websockets.asyncio.client import connect

THREADS = 8
PACE_SECONDS = 0.005
GOING = 50
GOING_PACE_SECONDS = 0.05
CHANNELS = ["lifecycle", "messages", "tools", "values", "input"]


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    """Address and process of `pizzabot serve`, ready for a turn."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pizzabot", "serve", "--port", "0", "--data-root", folder, "--model"]
        process = subprocess.Popen(
            [*command, "echo:echo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            until(lambda: get(url, "/status")["runtime"]["state"] == "ready")
            yield url, process.pid
        finally:
            process.terminate()
            process.wait()


@contextmanager
def client(role: str, url: str, prefix: str, words: int, pace: float, threads: int) -> Iterator[subprocess.Popen[str]]:
    """A process that starts runs and reads them; a line when all are going, another when all have ended."""
    given = [role, url, prefix, str(words), str(pace), str(threads)]
    process = subprocess.Popen([sys.executable, __file__, "--client", *given], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()


def beside(words: int) -> None:
    with served() as (url, _):
        turn = {"id": 1, "method": "run.start", "params": {"input": {"prompt": "hello"}}}
        post(url, "/threads/quiet/commands", turn)
        until(lambda: get(url, "/threads/quiet")["status"] == "idle")
        print(f"{THREADS} live threads on one socket, a token every {PACE_SECONDS * 1e3:.0f} ms in each:")
        for path in ("/ping", "/threads/quiet/state"):
            print(f"       nothing else going, {path}: {spread(list(asked(url, path, seconds=1)))}")
            with client("socket", url, path.strip("/").replace("/", "-"), words, PACE_SECONDS, THREADS) as reader:
                took = list(asked(url, path, seconds=words * PACE_SECONDS * 0.9, while_=reader))
                assert reader.poll() in (None, 0), "the runs did not end well"
            p50, p99 = statistics.median(took) * 1e3, statistics.quantiles(took, n=100)[98] * 1e3
            figure(f"GET {path} beside them, p99, ms", p99, at_most=40, more=f"p50 {p50:.1f} ms, n={len(took)}")


def asked(url: str, path: str, *, seconds: float, while_: subprocess.Popen[str] | None = None) -> Iterator[float]:
    """How long each answer took, on one connection, a request every 10 ms."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    over = time.perf_counter() + seconds
    while time.perf_counter() < over and (while_ is None or while_.poll() is None):
        began = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        yield time.perf_counter() - began
        time.sleep(0.01)
    connection.close()


def cost(words: int) -> None:
    """A turn is read by nobody, over the socket, over event streams; the difference is the wire's."""
    spent: dict[str, list[float]] = {"nobody": [], "socket": [], "streams": []}
    with served() as (url, pid):
        for number in range(4):
            for role, costs in spent.items():
                before = cpu(pid)
                with client(role, url, f"{role}{number}", words, PACE_SECONDS, THREADS) as reader:
                    assert reader.stdout is not None
                    reader.stdout.readline()
                costs.append((cpu(pid) - before) / (words * THREADS))
    nobody, socket, streams = (statistics.median(costs[1:]) * 1e3 for costs in spent.values())
    more = f"turns alone {nobody:.3f}, with the socket {socket:.3f}, with event streams {streams:.3f}"
    figure("CPU per token that one socket adds, ms", socket - nobody, more=more)
    figure("CPU per token that event streams add, ms", streams - nobody)


def cpu(pid: int) -> float:
    """Seconds that a process has used, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first(rounds: int) -> None:
    with served() as (url, _), client("socket", url, "going", 100_000, GOING_PACE_SECONDS, GOING):
        asyncio.run(first_events(url, 25))  # the runs that are going have just begun as well
        took = asyncio.run(first_events(url, rounds))
        active = get(url, "/status")["runs"]["active"]
        assert active >= GOING, active
    for name, times in took.items():
        p50, p99 = statistics.median(times) * 1e3, statistics.quantiles(times, n=100)[98] * 1e3
        title = f"first event after {name} with {GOING} runs going"
        figure(f"{title}, p50, ms", p50, at_most=50)
        figure(f"{title}, p99, ms", p99, at_most=50, more=f"n={len(times)}")


async def first_events(url: str, rounds: int) -> dict[str, list[float]]:
    """From before the command is sent to the first event of its run, read on a socket that has subscribed before."""
    took: dict[str, list[float]] = {"the POST": [], "a command on the socket": []}
    async with socket(url) as (send, messages):
        for number in range(rounds * 2):
            name = list(took)[number % 2]
            thread = f"first-{rounds}-{number}"
            await send(type="subscribe", sub=number, thread=thread, channels=CHANNELS)
            await the(messages, "subscribed", number)
            command = start(thread, "hello")
            began = time.perf_counter()
            if name == "the POST":
                del command["thread"]
                posted = asyncio.create_task(asyncio.to_thread(post, url, f"/threads/{thread}/commands", command))
            else:
                posted = asyncio.create_task(send(type="command", **command))
            await the(messages, "events", number)
            took[name].append(time.perf_counter() - began)
            await posted
            await send(type="unsubscribe", sub=number)
            await the(messages, "closed", number)
    return took


async def the(messages: AsyncIterator[dict[str, Any]], kind: str, sub: int) -> None:
    async for message in messages:
        if message["type"] == kind and message["sub"] == sub:
            return


def token(words: int) -> None:
    """Through the engine, the log and one observer on the wire, and the normaliser beside."""
    from normaliser import measure

    for pace, name in ((0, "as fast as the log takes them"), (1, "one every 2 ms")):
        wire = asyncio.run(stub_costs(words if not pace else 1000, pace=pace)) * 1e3
        _, ours, _ = asyncio.run(measure())
        normaliser = statistics.median(ours) / 1e3
        more = f"normaliser {normaliser:.3f}, log and wire {wire:.3f}"
        title = f"CPU per token through normaliser, log and one observer on the wire, {name}, ms"
        figure(title, normaliser + wire, at_most=0.15, more=more)


async def stub_costs(words: int, *, pace: int) -> float:
    """Seconds a token, of the server alone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--stub", str(words), str(pace),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    url, costs = (await process.stdout.readline()).decode().strip(), []
    try:
        async with socket(url) as (send, messages):
            for number in range(4):
                await send(type="subscribe", sub=number, thread=f"t{number}", channels=CHANNELS)
                await the(messages, "subscribed", number)
                process.stdin.write(b"t%d\n" % number)
                await read_to_end(messages, {number})
                process.stdin.write(b"read\n")
                costs.append(float(await process.stdout.readline()))
    finally:
        process.stdin.close()
        await process.wait()
    return statistics.median(costs[1:])


async def stub_server(words: int, pace: int) -> None:
    """A server whose runtime is a stub. It runs a turn on each thread that it is told and says what a token took."""
    from runs import PacedRuntime, assembled, cpu_of, stub_alone

    from pizzabot.testing import ScriptedRuntime
    from pizzabot_builtin_plugins.http_server.settings import HttpSettings
    from pizzabot_builtin_plugins.http_server.transport import HttpTransport
    from pizzabot_hookspecs import Context

    runtime = (PacedRuntime if pace else ScriptedRuntime)(words=words)
    with tempfile.TemporaryDirectory() as folder:
        async with assembled(Path(folder), runtime) as parts:
            context = Context(
                name="http", data_root=Path(folder), logger=Quiet(), secrets=None, clock=time.time, redact=str,
                host=StubHost(parts.runs),
            )  # fmt: skip
            async with HttpTransport(context, HttpSettings(port=0)) as transport:
                await transport.bind()
                serving = asyncio.create_task(transport.serve())
                print(transport.address, flush=True)
                while thread := (await asyncio.to_thread(sys.stdin.readline)).strip():
                    alone = await cpu_of(lambda: stub_alone(runtime))
                    began = time.process_time()
                    await parts.run(thread)
                    await asyncio.to_thread(sys.stdin.readline)
                    print((time.process_time() - began - alone) / words, flush=True)
                serving.cancel()
                with suppress(asyncio.CancelledError):
                    await serving


class StubHost:
    """What the socket and `GET /` ask of a host."""

    def __init__(self, runs: Any) -> None:
        self.runs = runs
        self.threads = None

    def identity(self) -> dict[str, Any]:
        return {"service": "stub", "protocolVersion": 1, "apiVersion": "1", "version": "0"}

    async def http_routes(self) -> tuple[()]:
        return ()


class Quiet:
    def __getattr__(self, _: str) -> Any:
        return lambda *_given, **_named: None


def start(thread: str, text: str) -> dict[str, Any]:
    return {"thread": thread, "id": 1, "method": "run.start", "params": {"input": {"prompt": text}}}


@asynccontextmanager
async def socket(url: str) -> AsyncIterator[tuple[Any, AsyncIterator[dict[str, Any]]]]:
    async with connect(
        f"ws{url.removeprefix('http')}/ws", compression=None, max_size=2**26, ping_interval=None, proxy=None
    ) as connection:

        async def send(**message: Any) -> None:
            await connection.send(json.dumps(message))

        async def messages() -> AsyncIterator[dict[str, Any]]:
            async for text in connection:
                message = json.loads(text)
                if message["type"] == "ping":
                    await send(type="pong")
                yield message

        await send(type="hello")
        incoming = messages()
        assert (await anext(incoming))["type"] == "ready"
        yield send, incoming


async def read_to_end(messages: AsyncIterator[dict[str, Any]], subs: set[int]) -> int:
    """Read until each of the subscriptions has seen the end of a run; how many events came."""
    seen = 0
    async for message in messages:
        for event in message.get("events", ()):
            seen += 1
            data = event["params"]["data"]
            if event["method"] == "lifecycle" and not event["params"]["namespace"] and data["event"] != "running":
                assert data["event"] == "completed", data
                subs.discard(message["sub"])
        if not subs:
            return seen
    raise SystemExit("the socket ended before the runs did")


async def run_client(role: str, url: str, prefix: str, words: int, pace: float, threads: int) -> None:
    """Start a run on each thread; read them over the socket, over event streams, or wait for their ends only."""
    names = [f"{prefix}-{number}" for number in range(threads)]
    said = f"[[pace {pace}]] [[repeat {words}]] word"
    async with socket(url) as (send, messages):
        channels = CHANNELS if role == "socket" else ["lifecycle"]
        for sub, name in enumerate(names):
            await send(type="subscribe", sub=sub, thread=name, channels=channels)
            await the(messages, "subscribed", sub)
        streams = [asyncio.create_task(read_stream(url, name)) for name in names] if role == "streams" else []
        for name in names:
            await send(type="command", **start(name, said))
        begun: set[int] = set()
        while len(begun) < threads:
            message = await anext(messages)
            begun |= {message["sub"]} if message["type"] == "events" else set()
        print("going", flush=True)
        await read_to_end(messages, set(range(threads)))
        await asyncio.gather(*streams)
        print("ended", flush=True)


async def read_stream(url: str, thread: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"channels": CHANNELS, "since": 0}).encode()
    writer.write(
        b"POST /threads/%s/stream/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s"
        % (thread.encode(), len(body), body)
    )
    while b'"completed"' not in await reader.readline():
        pass
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less of everything, in less than a minute")
    parser.add_argument("--only", choices=["beside", "cost", "first", "token"], action="append", help="this part")
    parser.add_argument("--client", nargs=6, help=argparse.SUPPRESS)
    parser.add_argument("--stub", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        role, url, prefix, words, pace, threads = arguments.client
        asyncio.run(run_client(role, url, prefix, int(words), float(pace), int(threads)))
        return
    if arguments.stub:
        sys.setswitchinterval(0.001)  # as the server does (architecture §6)
        asyncio.run(stub_server(*arguments.stub))
        return
    only, quick = arguments.only or ["beside", "cost", "first", "token"], arguments.quick
    print(machine())
    if "beside" in only:
        beside(words=600 if quick else 2000)
    if "cost" in only:
        cost(words=200 if quick else 600)
    if "first" in only:
        first(rounds=50 if quick else 200)
    if "token" in only:
        token(words=5000 if quick else 20_000)
    print(end())


if __name__ == "__main__":
    main()
