"""The client over streamable HTTP and SSE, on loopback."""

import asyncio

import pytest
from mcp_kit import Remote, appears, by_name, call, refusing

from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.mcp_clients import McpEndpoint, McpTransport


@pytest.fixture(params=["http", "sse"])
def remote(request):
    with Remote(request.param) as server:
        yield server


def test_a_remote_server_answers_calls_and_pings_and_ends_cleanly(connected, remote):
    async def main():
        async with connected(remote.endpoint(headers={"X-Mine": "1"})) as connection:
            assert (await call(by_name(connection.tools)["add"], a=1, b=2)).content[0]["text"] == "3"
            assert (await call(by_name(connection.tools)["fail"])).status == "error"
            await connection.ping()

    asyncio.run(main())


def test_concurrent_remote_calls_share_the_session_and_a_cancel_disturbs_none(connected, remote, tmp_path):
    async def main():
        async with connected(remote.endpoint()) as connection:
            tools = by_name(connection.tools)
            waiting = asyncio.create_task(call(tools["wait_for"], path=str(tmp_path / "one")))
            cancelled = asyncio.create_task(call(tools["wait_for"], path=str(tmp_path / "two")))
            await appears(tmp_path / "one.begun")
            await appears(tmp_path / "two.begun")
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            (tmp_path / "one").touch()
            assert (await waiting).content[0]["text"] == "seen"
            assert (await call(tools["add"], a=1, b=1)).content[0]["text"] == "2"

    asyncio.run(main())


def test_a_server_that_is_killed_in_a_call_fails_the_call_at_once(connected, remote, tmp_path):
    async def main():
        async with connected(remote.endpoint()) as connection:
            waiting = asyncio.create_task(call(by_name(connection.tools)["wait_for"], path=str(tmp_path / "never")))
            await appears(tmp_path / "never.begun")
            remote.kill()
            remote.start()  # on the same socket: somebody answers, and knows nothing of the session
            with pytest.raises(Unavailable) as failed:
                async with asyncio.timeout(20):
                    await waiting
            assert failed.value.code == "mcp_failed"
            assert await connection.closed()

    asyncio.run(main())


def test_a_restarted_http_server_is_noticed_by_a_ping(connected):
    async def main():
        with Remote("http") as remote:
            async with connected(remote.endpoint()) as connection:
                remote.kill()
                remote.start()
                with pytest.raises(Unavailable, match=r"restarted|closed|failed"):
                    await connection.ping()
                assert await connection.closed()

    asyncio.run(main())


def test_messages_over_http_are_read_the_quick_way(connected, monkeypatch):
    from pizzabot_builtin_plugins.mcp_client import remote as module

    read = []
    quick = module._QuickMessage.model_validate_json
    monkeypatch.setattr(
        module._QuickMessage, "model_validate_json", lambda raw, **more: read.append(raw) or quick(raw, **more)
    )

    async def main():
        with Remote("http") as remote:
            async with connected(remote.endpoint()):
                assert len(read) >= 2  # the package's transport still takes this way

    asyncio.run(main())


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_server_that_wants_a_sign_in_says_so(connected, transport):
    async def main():
        with refusing(401, **{"www-authenticate": 'Bearer resource_metadata="x"'}) as url:
            asked = McpEndpoint(id="remote", transport=McpTransport(transport), url=url)
            with pytest.raises(Unavailable, match="OAuth is not supported yet") as refused:
                async with connected(asked):
                    pass
            assert refused.value.code == "mcp_auth_needed"
            with_token = McpEndpoint(
                id="remote", transport=McpTransport(transport), url=url, headers={"Authorization": "Bearer old"}
            )
            with pytest.raises(Unavailable, match="check that token") as refused:
                async with connected(with_token):
                    pass
            assert "old" not in refused.value.detail

    asyncio.run(main())


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_status_that_is_an_error_is_told(connected, transport):
    async def main():
        with refusing(503) as url, pytest.raises(Unavailable, match="HTTP 503"):
            async with connected(McpEndpoint(id="remote", transport=McpTransport(transport), url=url)):
                pass

    asyncio.run(main())


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_nobody_there_is_told_without_what_may_be_secret_in_the_address(connected, transport):
    async def main():
        url = "http://person:hunter2@127.0.0.1:1/mcp?token=hunter2"
        with pytest.raises(Unavailable, match=r"cannot be reached at http://127\.0\.0\.1:1") as refused:
            async with connected(McpEndpoint(id="remote", transport=McpTransport(transport), url=url)):
                pass
        assert "hunter2" not in refused.value.detail

    asyncio.run(main())


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_compressed_body_is_refused(connected, transport):
    async def main():
        with refusing(200, **{"content-encoding": "gzip"}) as url, pytest.raises(Unavailable, match="compressed"):
            async with connected(McpEndpoint(id="remote", transport=McpTransport(transport), url=url)):
                pass

    asyncio.run(main())


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_another_content_is_no_mcp_server(connected, transport):
    async def main():
        with refusing(200, **{"content-type": "text/html"}) as url, pytest.raises((Unavailable, TimeoutError)):
            async with asyncio.timeout(2), connected(McpEndpoint(id="r", transport=McpTransport(transport), url=url)):
                pass

    asyncio.run(main())
