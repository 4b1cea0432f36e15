"""No secret leaves its place: canaries go in by every door, errors are provoked, and all that came out is searched."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from commands import clean_environment, pizzabot
from servers import Server, running_server
from talking import HttpConversation, ask

from pizzabot.testing.plugins import install_plugin

DOORS = ("PIZZABOT_API_TOKEN", "OPENAI_API_KEY", "WORK", "LEAKY")
"""Variables that hold a canary. The last two have harmless names: only a reference makes them secrets."""


class Parrot(BaseHTTPRequestHandler):
    """A provider that refuses every key and repeats it, in its headers, its message and its list of models."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        given = self.headers.get("authorization", "")
        said = f"Incorrect API key {given}; Authorization: {given}; x-api-key={given.removeprefix('Bearer ')}"
        body = json.dumps({"error": {"message": said, "code": "invalid_api_key", "param": given}}).encode()
        self.send_response(401)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-your-key", given)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None: ...


LEAKY = '''
from pizzabot_hookspecs import Offer, Unavailable, hookimpl

class Leaky:
    """A provider that puts its key into everything that it says."""

    def __init__(self, context, settings):
        self.key = settings["api_key"]
        context.logger.warning("made", note=f"with {self.key}", key=self.key, nested={"deep": [self.key]})

    async def models(self):
        raise Unavailable("network", f"the endpoint does not like {self.key}")

    async def build(self, model):
        if model == "late":
            return late(self.key)
        raise RuntimeError(f"cannot be built with {self.key}")

def late(key):
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessageChunk
    from langchain_core.outputs import ChatGenerationChunk

    class Late(BaseChatModel):
        @property
        def _llm_type(self):
            return "late"

        def _generate(self, *_, **__):
            raise RuntimeError(f"broken by {key}")

        async def _astream(self, *_, **__):
            yield ChatGenerationChunk(message=AIMessageChunk(content="half"))
            raise RuntimeError(f"broken by {key}")

    return Late()

def create(context, settings):
    return Leaky(context, settings)

@hookimpl
def pizzabot_model_providers():
    return [Offer(name="leaky", summary="for a test", create=create)]
'''


@pytest.fixture
def canaries() -> dict[str, str]:
    return {door: f"canary-{secrets.token_hex(16)}" for door in DOORS}


@pytest.fixture
def parrot() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Parrot) as provider:
        threading.Thread(target=provider.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{provider.server_port}/v1"
        provider.shutdown()


def configuration(parrot: str) -> str:
    return (
        f'[models.work]\nuse = "openai"\nbase_url = "{parrot}"\napi_key = {{env = "WORK"}}\nmax_retries = 0\n'
        '[models.leaky]\napi_key = {env = "LEAKY"}\n'
    )


def environment(folder: Path, canaries: dict[str, str], parrot: str) -> dict[str, str]:
    install_plugin(folder / "plugins", "acme_leaky", LEAKY)
    return clean_environment(folder, {**canaries, "OPENAI_BASE_URL": parrot, "PYTHONPATH": str(folder / "plugins")})


def everything_said(server: Server, token: str, models: list[str]) -> dict[str, str]:
    """What the server answers: a turn with each model, its state, and the routes that tell of models and plugins."""
    said: dict[str, str] = {}
    bearer = {"authorization": f"Bearer {token}"}

    async def turns() -> None:
        async with asyncio.timeout(100), HttpConversation(server.http) as talk:
            talk._client.headers.update(bearer)
            for number, model in enumerate(models):
                frames = await ask(talk, f"t{number}", "hello", config={"configurable": {"model": model}})
                said[f"events of {model}"] = json.dumps(frames)
                said[f"state of {model}"] = json.dumps(await talk.state(f"t{number}"))

    asyncio.run(turns())
    with httpx.Client(base_url=server.http, headers=bearer, timeout=60, trust_env=False) as http:
        for path in ("/", "/status", "/models?refresh=1", "/plugins", "/schema", "/threads/t0", "/threads/none/state"):
            answer = http.get(path)
            said[path] = answer.text + str(answer.headers)
    return said


def stored(root: Path) -> dict[str, str]:
    return {str(path): path.read_bytes().decode("latin-1") for path in root.rglob("*") if path.is_file()}


def leaks(said: dict[str, str], canaries: dict[str, str]) -> list[tuple[str, str]]:
    """Where a canary shows, as it is or in base64: (place, door)."""
    found = []
    for door, canary in canaries.items():
        forms = (canary, base64.b64encode(canary.encode()).decode().rstrip("=")[:-1])
        found += [(place, door) for place, text in said.items() if any(form in text for form in forms)]
    return found


def test_no_secret_is_in_any_answer_event_log_or_database_though_everything_fails(tmp_path, canaries, parrot):
    environ = environment(tmp_path, canaries, parrot)
    with running_server(tmp_path, model="leaky:early", config=configuration(parrot), environ=environ) as server:
        said = everything_said(
            server, canaries["PIZZABOT_API_TOKEN"], ["work:m", "openai:m", "leaky:early", "echo:echo"]
        )
        assert server.stop() == 0
    assert "HTTP 401" in said["events of work:m"]
    assert "<redacted>" in said["events of leaky:early"]
    said |= {"stdout": server.printed, "stderr": server.errors(), **stored(server.data_root)}
    assert leaks(said, canaries) == []


def test_no_command_prints_a_secret(tmp_path, canaries, parrot):
    environ = environment(tmp_path, canaries, parrot)
    (tmp_path / "pizzabot.toml").write_text(configuration(parrot))
    said = {}
    for words in (
        "config show", "config show --json", "config check", "plugins", "plugins --json", "plugins show openai",
        "plugins show acme-leaky", "plugins show http-server --json", "secrets list", "models list", "help",
    ):  # fmt: skip
        ended = pizzabot(tmp_path, *words.split(), environ=environ)
        said[words] = ended.stdout + ended.stderr
    with running_server(tmp_path, config=configuration(parrot), environ=environ) as server:
        for model in ("work:m", "leaky:early", "leaky:late"):
            ended = pizzabot(tmp_path, "chat", "--url", server.http, "--model", model, "hello", environ=environ)
            assert ended.code == 1
            said[f"chat {model}"] = ended.stdout + ended.stderr
    assert leaks(said, canaries) == []


def test_what_a_model_of_others_raises_in_the_middle_of_an_answer_is_stored_without_the_key(tmp_path, canaries, parrot):
    """LangGraph keeps the error of a failed step in the checkpoint, in the words of whoever raised it."""
    environ = environment(tmp_path, canaries, parrot)
    with running_server(tmp_path, config=configuration(parrot), environ=environ) as server:
        said = everything_said(server, canaries["PIZZABOT_API_TOKEN"], ["leaky:late"])
        assert server.stop() == 0
    assert "broken by <redacted>" in said["events of leaky:late"]
    assert leaks(said | {"stderr": server.errors()}, canaries) == []
    assert leaks(stored(server.data_root), canaries) == []
