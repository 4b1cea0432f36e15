"""The real small model behind the whole server: a plain conversation works, whatever specialists and folders there are.

The weights are those of the user's cache, fetched once as `tests/contract/local/test_real_model.py` does.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from servers import running_server
from sessions import Session, sdk, spoken

from pizzabot_builtin_plugins.local.settings import default_folder

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(600)]

MODEL = "local:smollm2-135m"
SKILL = "---\nname: Clerk\ndescription: counts\ntools: [builtin:eval]\n---\nYou are the clerk.\n"


def test_a_conversation_with_the_small_model_is_answered_kept_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "skills" / "clerk").mkdir(parents=True)
    (tmp_path / "data" / "skills" / "clerk" / "SKILL.md").write_text(SKILL)
    config = f'[folders]\ngrants = [{{ path = "{tmp_path}/recipes" }}]\n[models.local]\nmax_output_tokens = 60\n'
    environ = {"PIZZABOT_MODELS_DIR": str(default_folder())}
    scripts: dict[str, str] = {}

    async def before(url: str) -> list[tuple[str, str]]:
        async with sdk(url) as client:
            await client.http.put("/settings", json={"enableMemories": True})
            session = Session(client, "t", scripts)
            first = await session.turn("Tell me about pizza in two sentences.")
            assert (first.event, first.code) == ("completed", None)
            assert "pizza" in first.text.lower()
            second = await session.turn("And about pasta?")
            assert second.event == "completed"
            assert second.text.strip()
            told = spoken(await session.state())
            assert [(kind, text) for kind, text in told if kind == "ai"] == [("ai", first.text), ("ai", second.text)]
            assert await session.transcript() == {"m1": ["done", first.text], "m2": ["done", second.text]}
            return told

    async def after(url: str, told: list[tuple[str, str]]) -> None:
        async with sdk(url) as client:
            session = Session(client, "t", scripts)
            assert spoken(await session.state()) == told
            third = await session.turn("Thank you.")
            assert (third.event, bool(third.text.strip())) == ("completed", True)
            assert spoken(await session.state())[:-2] == told

    with running_server(tmp_path, model=MODEL, config=config, environ=environ) as server:
        told = asyncio.run(asyncio.wait_for(before(server.http), 250))
        server.restart()
        asyncio.run(asyncio.wait_for(after(server.http, told), 250))
