"""`pizzabot serve`: the server, from the command line to a listener and back down again.

Order: arguments and settings, the ground (data root and lock, log, plugins, secrets), the host, its transports.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pizzabot.host.app import PizzabotHost
    from pizzabot.host.ground import Ground
    from pizzabot.host.readiness import Background
    from pizzabot.settings import Settings

OPEN_FILES = 16_384
"""What a server asks the system for at its start; the hard limit counts where it is lower."""

MODEL_SECONDS = 1.0
"""What the start waits for the model before it says that it is being loaded."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="H", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=_port, help="port to listen on, 0 for any (default 8080)")
    parser.add_argument("--data-root", metavar="DIR", type=_folder, help="folder of this installation's data")
    parser.add_argument("--config", metavar="FILE", type=Path, help="the pizzabot.toml to use")
    parser.add_argument(
        "--model", metavar="USE:MODEL", type=_model, help="the default model, such as local:smollm2-135m"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP; 0 after an orderly stop. Raises `PizzabotError` when it cannot start."""
    from pizzabot.host.models.registry import split_model_id
    from pizzabot.settings import load_settings

    _allow_many_files()
    settings = load_settings(config=args.config, environ=os.environ, cwd=Path.cwd(), overrides=_overrides(args))
    if settings.models.default is not None:
        split_model_id(settings.models.default)  # said now, while somebody is looking
    return _ended(lambda left: _run(args, settings, left), debug=bool(getattr(args, "debug", False)))


def _run(args: argparse.Namespace, settings: Settings, left: list[str]) -> None:
    from pizzabot.cli.loop import run_to_the_end
    from pizzabot.cli.redaction import process_redactor
    from pizzabot.host.ground import open_ground

    discover = not getattr(args, "no_plugins", False)
    with open_ground(
        settings, process="server", terminal=sys.stderr.isatty(), discover=discover, redactor=process_redactor()
    ) as ground:

        def tell(what: list[str]) -> None:
            left.extend(what)
            _say_what_is_left(ground, what)

        run_to_the_end(_serve(ground), left=tell)


def _ended(serving: Callable[[list[str]], None], *, debug: bool) -> int:
    """0, or what `serving` raises. Where something was left behind, the process ends here, with the same exit code."""
    from pizzabot.cli.failures import guarded
    from pizzabot.cli.loop import end_now

    left: list[str] = []

    def failed(error: BaseException) -> int:
        raise error

    try:
        serving(left)
    except BaseException as error:
        if left:
            end_now(guarded(partial(failed, error), debug=debug))
        raise
    if left:
        end_now(0)
    return 0


def _say_what_is_left(ground: Ground, what: list[str]) -> None:
    """The runs they belong to are kept: the next start goes on with them, or asks."""
    from pizzabot.cli.loop import LEFT_SECONDS, MAX_NAMED

    told = [ground.redact(line) for line in what[:MAX_NAMED]]
    ground.logger("serve").warning("server.left_behind", number=len(what), left=told, after_seconds=LEFT_SECONDS)
    with suppress(OSError):
        print(f"pizzabot: left behind what did not end: {', '.join(told)}", file=sys.stderr, flush=True)


def _allow_many_files() -> None:
    """Each connection is an open file: with the usual 1,024 some idle ones would leave none for the database."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # the system has a lower limit of its own: then it stays as it was
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _port(text: str) -> int:
    if text.isdecimal() and 0 <= int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")


def _model(text: str) -> str:
    if text.strip():
        return text
    raise argparse.ArgumentTypeError("it is empty: name a model as USE:MODEL, or leave the option out")


def _folder(text: str) -> Path:
    if text.strip():
        return Path(text)
    # `--data-root "$UNSET"` would make the working folder one, and take it from everybody else.
    raise argparse.ArgumentTypeError("it is empty: name a folder, or leave the option out")


def _overrides(args: argparse.Namespace) -> Mapping[str, Any]:
    given = {
        "transports.http.host": args.host,
        "transports.http.port": args.port,
        "models.default": args.model,
        "data_root": None if args.data_root is None else str(args.data_root),
    }
    return {key: value for key, value in given.items() if value is not None}


async def _serve(ground: Ground) -> None:
    from pizzabot.host.app import open_host
    from pizzabot.host.serving import bind_transports, serve_until

    stop = asyncio.Event()
    _stop_on_signals(stop)
    async with open_host(ground) as host:
        bound = await bind_transports(host, ground.settings.transports.use)
        host.observers.started()
        addresses = [item.transport.address for item in bound]
        _say_hello(host, addresses)
        saying = asyncio.create_task(_say_how_the_model_is(host, addresses), name="say how the model is")
        try:
            await serve_until(stop, bound)
        finally:
            saying.cancel()
        with suppress(OSError):  # after SIGHUP there may be no terminal left
            print("pizzabot: stopping", file=sys.stderr)


def _stop_on_signals(stop: asyncio.Event) -> None:
    """The first signal stops in order, a second one of a person's at once.

    SIGHUP says that the terminal is gone, and may come together with others; under `nohup` it stays ignored.
    """

    def asked() -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stop.set)


def _chat_command(addresses: list[str]) -> str:
    """What to type in another terminal; `chat` finds the usual address by itself."""
    http = next((address for address in addresses if address.startswith("http")), None)
    return "pizzabot chat" if http in (None, "http://127.0.0.1:8080") else f"pizzabot chat --url {http}"


def _say_hello(host: PizzabotHost, addresses: list[str]) -> None:
    """The first lines that a person sees, and the line that a program waits for."""
    print(f"pizzabot is listening on {', '.join(addresses)}", flush=True)
    if (file := host.ground.settings.file) is not None:
        print(f"  configuration {file}", flush=True)  # it may be one that happened to lie in the working folder
    broken = [report for report in host.ground.plugins.report() if report.state.broken]
    for report in broken:
        print(f"  plugin {report.name} is {report.state.value}: {host.ground.redact(report.reason or '')}", flush=True)


async def _say_how_the_model_is(host: PizzabotHost, addresses: list[str]) -> None:
    """Whether one can talk to it now, and for a model that takes its time what became of it."""
    from pizzabot.host.models.advice import ways

    default = host.registry.default
    if default is None:
        _tell("no model is configured yet; ways to get one:")
        for number, way in enumerate(ways(), start=1):
            _tell(f"{number}. {way.title}\n       {way.command}")
        return
    problem = host.model_problem()
    if problem is None:
        usable = f"; talk to it: {_chat_command(addresses)}"
        try:
            async with asyncio.timeout(MODEL_SECONDS):
                await _settled(host.model_loading)
        except TimeoutError:
            _tell(f"model {default} is being loaded{usable}")
            await _settled(host.model_loading)
            usable = " is loaded"
        problem = _why_not(host)
    if problem is None:
        _tell(f"model {default}{usable}")
    elif (stand_in := host.registry.answering) is not None:
        _tell(f"model {default} cannot be used: {problem}; {stand_in} answers: {_chat_command(addresses)}")
    else:
        _tell(f"model {default} cannot be used: {problem}")


async def _settled(loading: Background) -> None:
    from pizzabot_hookspecs import PizzabotError

    with suppress(PizzabotError):
        await loading.ready()


def _why_not(host: PizzabotHost) -> str | None:
    error = host.model_loading.error or host.registry.passed_over
    return None if error is None else host.ground.redact(error.detail)


def _tell(line: str) -> None:
    """A line of the start; one that comes late must not end a server that nobody listens to any more."""
    with suppress(OSError):
        print(f"  {line}", flush=True)
