"""`Supervisor`: one server's life. It connects, tries again, watches the session and comes back after a crash.

    loading ─▶ connected ─▶ crashed ─▶ connected        the first connecting: at most `ATTEMPTS`, then `error`
        └▶ retrying ─▶ error ─▶ connected               later ones go on behind `error` and `crashed`, ever more rarely

A generation is a connecting or its session. What an older one still says is nobody's business any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pizzabot.host.mcp.call_rules import CallRules, CallWatch
from pizzabot.host.mcp.limits import (
    ATTEMPT_PAUSE_SECONDS,
    ATTEMPTS,
    DETAIL_CHARACTERS,
    FIRST_RETRY_SECONDS,
    MAX_RECONNECT_SECONDS,
    PING_ANSWER_SECONDS,
    RECONNECT_SECONDS,
    STABLE_SECONDS,
)
from pizzabot.host.mcp.retiring import Retiring, closed
from pizzabot.host.mcp.slots import Slots
from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot_hookspecs import Logger, PizzabotError, Unavailable
from pizzabot_hookspecs.mcp_clients import McpClient, McpConnection, McpEndpoint, McpTool, TellsToolChanges

LASTING = frozenset(
    {"invalid", "invalid_reference", "mcp_auth_needed", "mcp_too_many_tools", "mcp_unresolved", "unset_secret"}
)
"""Codes of what does not mend itself: nobody tries again until a person asks for it or changes the entry."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """What the supervisors of a host share."""

    client: Callable[[], Awaitable[McpClient]]
    slots: Slots
    retiring: Retiring
    connect_seconds: float
    call_seconds: float
    ping_seconds: float
    max_tools: int
    redact: Callable[[str], str]
    conceal: Callable[[str], str]
    logger: Logger
    clock: Callable[[], float]


@dataclass
class Health:
    """What a row tells beside the state. `stderr` is redacted."""

    crashed_at: float | None = None
    stderr: list[str] = field(default_factory=list)


class Supervisor:
    """Owned by the board, used from its loop. `endpoint` resolves references anew for each connecting."""

    def __init__(
        self,
        server_id: str,
        services: Services,
        *,
        endpoint: Callable[[], Awaitable[McpEndpoint]],
        hides: Callable[[str], bool],
        changed: Callable[[], None],
    ) -> None:
        self.server_id = server_id
        self.state = ServerState(status=ServerStatus.LOADING, detail="not connected yet")
        self.health = Health()
        self._services = services
        self._endpoint = endpoint
        self._hides = hides
        self._changed = changed
        self._generation = 0
        self._connection: McpConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._watch = CallWatch()
        self._guarded: dict[str, tuple[McpTool, McpTool]] = {}
        self._attempted: asyncio.Future[None] | None = None
        self._wish = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._live(), name=f"mcp server {self.server_id}")

    async def stop(self, *, retire: bool) -> None:
        """End it; its session at once, or with `retire` when the runs of now have ended."""
        self._generation += 1
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._attempted is not None and not self._attempted.done():
            self._attempted.set_result(None)
        connection, self._connection = self._connection, None
        if connection is not None:
            if retire:
                self._services.retiring.retire(connection)
            else:
                await closed(connection, self._services.logger)

    async def reconnect(self) -> None:
        """One attempt now, for a server in error or crashed; when it returns, the attempt is over."""
        if self._attempted is None or self._attempted.done():
            self._attempted = asyncio.get_running_loop().create_future()
        self._wish.set()
        await asyncio.shield(self._attempted)

    async def _live(self) -> None:
        pause = await self._first_connecting()
        while True:
            if self._connection is None:
                await self._wait_for_another_try(pause)
                tried = await self._attempt()
                if self._attempted is not None and not self._attempted.done():
                    self._attempted.set_result(None)
                pause = self._after(tried, pause)
                continue
            began = asyncio.get_running_loop().time()
            await self._crashed(await self._until_it_ends(self._connection))
            lasted = asyncio.get_running_loop().time() - began
            if pause is None or lasted >= STABLE_SECONDS:
                pause = RECONNECT_SECONDS
            else:
                pause = min(pause * 2, MAX_RECONNECT_SECONDS)

    async def _first_connecting(self) -> float | None:
        """Up to `ATTEMPTS`; the pause before the next try, None where there is none to come."""
        error: PizzabotError | None = None
        for attempt in range(ATTEMPTS):
            if attempt:
                self._set(ServerStatus.RETRYING, f"trying again: {self._told(error)}")
                await asyncio.sleep(ATTEMPT_PAUSE_SECONDS * attempt)
            error = await self._attempt()
            if error is None or error.code in LASTING:
                break
        return self._after(error, None)

    def _after(self, error: PizzabotError | None, pause: float | None) -> float | None:
        """What the state is after a try, and how long to wait for the next one."""
        if error is None:
            return pause
        self._set(ServerStatus.ERROR, self._told(error))
        self._services.logger.warning(
            "mcp.connect_failed", server=self.server_id, code=error.code, detail=self.state.detail
        )
        if error.code in LASTING:
            return None
        return FIRST_RETRY_SECONDS if pause is None else min(pause * 2, MAX_RECONNECT_SECONDS)

    async def _wait_for_another_try(self, pause: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._wish.wait()
        self._wish.clear()

    async def _attempt(self) -> PizzabotError | None:
        """Connect once: the state is `connected` afterwards, or why it is not is returned."""
        self._generation += 1
        seconds = self._services.connect_seconds
        try:
            async with self._services.slots.hold(), asyncio.timeout(seconds):
                await self._connect()
        except TimeoutError:
            return Unavailable("mcp_timeout", f"it did not answer within {seconds:g} s ([mcp] connect_seconds)")
        except PizzabotError as error:
            self._keep_stderr(error.fields.get("stderr", "").splitlines())
            return error
        except Exception as error:  # noqa: BLE001 - a plugin's error is data: told as the server's state
            return Unavailable("mcp_failed", f"{type(error).__name__}: {error}")
        return None

    async def _connect(self) -> None:
        services = self._services
        endpoint = await self._endpoint()
        client = await services.client()
        connection = await client.connect(endpoint, max_tools=services.max_tools)
        self._watch, self._guarded = CallWatch(), {}
        try:
            tools = await self._guard(connection)
        except BaseException:
            await closed(connection, services.logger)
            raise
        self._connection = connection
        self.health = Health()
        self.state = ServerState(status=ServerStatus.CONNECTED, tools=tools)
        services.logger.info("mcp.connected", server=self.server_id, tools=len(tools))
        self._changed()

    async def _guard(self, connection: McpConnection) -> Mapping[str, McpTool]:
        """The tools that are shown, under the rules of calls; one that was there before is the same object."""
        services = self._services
        rules = CallRules(
            server_id=self.server_id,
            seconds=services.call_seconds,
            logger=services.logger,
            redact=services.redact,
            conceal=services.conceal,
            watch=self._watch,
        )
        shown = [tool for tool in connection.tools if not self._hides(tool.name)]
        new = [tool for tool in shown if self._guarded.get(tool.name, (None,))[0] is not tool]
        made = {tool.name: tool for tool in await asyncio.to_thread(_guarded, new, rules)} if new else {}
        before = self._guarded
        self._guarded = {
            tool.name: (tool, made[tool.name]) if tool.name in made else before[tool.name] for tool in shown
        }
        return {name: guarded for name, (_, guarded) in self._guarded.items()}

    async def _follow_tools(self, connection: McpConnection) -> str:
        """Never ends by itself: the session does."""
        while isinstance(connection, TellsToolChanges):
            await connection.tools_changed()
            tools = await self._guard(connection)
            self.state = ServerState(status=ServerStatus.CONNECTED, tools=tools)
            self._services.logger.info("mcp.tools_changed", server=self.server_id, tools=len(tools))
            self._changed()
        return await connection.closed()

    async def _until_it_ends(self, connection: McpConnection) -> str:
        """Why the session is over: the client says so, or a ping is not answered."""
        waits = [connection.closed(), self._ping(connection), self._follow_tools(connection)]
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            try:
                return next(task for task in tasks if task.done()).result()
            except Exception as error:  # noqa: BLE001 - a plugin's error is data
                return f"{type(error).__name__}: {error}"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ping(self, connection: McpConnection) -> str:
        """Asks now and then, and at once when a call was not answered; never a server that works on one.

        Many servers do one thing at a time and hear nothing meanwhile.
        """
        watch = self._watch
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._services.ping_seconds):
                    await watch.doubt.wait()
            doubted = watch.doubt.is_set()
            watch.doubt.clear()
            if watch.going_on and not doubted:
                continue
            try:
                async with asyncio.timeout(PING_ANSWER_SECONDS):
                    await connection.ping()
            except TimeoutError:
                if doubted or not watch.going_on:
                    return "it does not answer any more"
            except PizzabotError as error:
                return error.detail

    async def _crashed(self, why: str) -> None:
        """Its tools are gone at once; then what is left of it is cleared away."""
        connection, self._connection = self._connection, None
        self._generation += 1
        detail = self._told(why)
        self.health = Health(crashed_at=self._services.clock())
        if connection is not None:
            self._keep_stderr(list(connection.stderr()))
        self._set(ServerStatus.CRASHED, detail)
        self._services.logger.warning("mcp.crashed", server=self.server_id, detail=detail)
        if connection is not None:
            await closed(connection, self._services.logger)

    def _keep_stderr(self, lines: list[str]) -> None:
        self.health.stderr = [self._services.redact(line) for line in lines[-50:]]

    def _told(self, why: PizzabotError | str | None) -> str:
        text = why.detail if isinstance(why, PizzabotError) else str(why)
        return self._services.redact(" ".join(text.split()))[:DETAIL_CHARACTERS]

    def _set(self, status: ServerStatus, detail: str) -> None:
        self.state = ServerState(status=status, detail=detail)
        self._changed()


def _guarded(tools: Sequence[McpTool], rules: CallRules) -> tuple[McpTool, ...]:
    """In a thread: what it needs of LangChain may not be loaded yet."""
    from pizzabot.host.mcp.calls import guarded

    return guarded(tools, rules)
