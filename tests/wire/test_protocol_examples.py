"""The examples of docs/use/protocol.md, word for word, against a real server: plain turns, approvals, restarts."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from places import Place
from sdk import AsyncTalk, until
from talking import HttpConversation, frame_with
from turns import paused

sys.path.insert(0, str(Path(__file__).parent / "js"))

from js_nodes import checked_node, install_packages

PAGE = Path(__file__).parents[2] / "docs" / "use" / "protocol.md"
ADDRESS = "http://127.0.0.1:8080"
SECONDS = 40.0


def mail(to: str) -> str:
    return f'[[tool mail {{"to": "{to}"}}]]'


TURNS = {
    "none": ("pizza it is", ["pizza it is"]),
    "one": (f"I ask. {mail('ada')} [[then]] mailed", ["I ask.", "mailed"]),
    "two at once": (f"{mail('ada')} {mail('bob')} [[then]] mailed", ["mailed"]),
    "two, then one": (
        f"both. {mail('ada')} {mail('bob')} [[then]] one more. {mail('cyd')} [[then]] mailed",
        ["both.", "one more.", "mailed"],
    ),
}
"""What is said, and the texts of the answer in their order: the last is the turn's answer."""


def example(language: str, words: str, address: str = ADDRESS) -> str:
    """The one block of the page in `language` that has `words`, led to `address`."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [text] = [block for block in found if words in block]
    return str(text).replace(ADDRESS, address)


def functions(*texts: str) -> dict[str, Any]:
    """What the examples define; their last line, which runs them, is left out."""
    made: dict[str, Any] = {}
    for text in texts:
        exec(compile(text.replace("\nasyncio.run(main())\n", "\n"), str(PAGE), "exec"), made)
    return made


EVENTS, PROJECTIONS = "thread.events", "thread.messages"


def played(place: Place, scene: Any) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(SECONDS), get_client(url=place.http, api_key=None) as client:
            return await scene(client)

    return asyncio.run(bounded())


def in_order(shown: str, texts: list[str]) -> bool:
    return re.search(".*".join(map(re.escape, texts)), shown, re.DOTALL) is not None


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_of_the_python_example_is_shown_and_answered_whatever_it_asks(
    shared_place: Place, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    turn = functions(example("python", EVENTS))["turn"]
    said, texts = TURNS[name]

    async def scene(client: Any) -> None:
        thread_id, answer = await turn(client, None, said)
        assert answer == texts[-1]
        assert in_order(capsys.readouterr().out, texts)
        assert await turn(client, thread_id, "and on") == (thread_id, "and on")

    played(shared_place, scene)


def test_the_python_example_raises_what_a_run_failed_with(shared_place: Place) -> None:
    turn = functions(example("python", EVENTS))["turn"]

    async def scene(client: Any) -> None:
        with pytest.raises(RuntimeError, match="slow down"):
            await turn(client, None, "[[error RATE_LIMIT slow down]]")

    played(shared_place, scene)


@pytest.mark.parametrize("words", [EVENTS, "from pizzabot.client"])
def test_the_python_examples_run_as_they_stand(shared_place: Place, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example("python", words, shared_place.http)],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Tell me about pizza")


LONG = " ".join(f"w{number}" for number in range(40))
SLOW = f"[[pace 0.1]]{LONG}"


async def restarted_in_the_middle(place: Place, client: Any, turn: Any) -> Any:
    """What the turn gives whose server is killed, and started again, once some of its answer was said."""
    thread = await client.threads.create()
    saying = asyncio.create_task(turn(client, thread["thread_id"], SLOW))
    async with HttpConversation(place.server.http) as observer:
        await frame_with(observer, thread["thread_id"], "w5")
    await asyncio.to_thread(place.die_and_return)
    return await saying


@pytest.mark.parametrize("name", ["turn", "plain_turn"])
def test_the_python_examples_show_that_the_server_was_restarted_and_then_the_whole_answer(
    place: Place, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    turn = functions(example("python", EVENTS), example("python", PROJECTIONS))[name]

    async def scene(client: Any) -> None:
        result = await restarted_in_the_middle(place, client, turn)
        assert (result if isinstance(result, str) else result[1]) == LONG

    played(place, scene)
    begun, _, anew = capsys.readouterr().out.partition(" [the server was restarted]\n")
    assert begun.startswith("w0 w1 w2")
    assert anew == LONG


def test_the_short_python_example_answers_and_says_where_it_waits(
    shared_place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = functions(example("python", EVENTS), example("python", PROJECTIONS))["plain_turn"]

    async def scene(client: Any) -> None:
        assert await turn(client, None, "pizza it is") == "pizza it is"
        assert capsys.readouterr().out == "pizza it is"
        opened: list[Any] = []
        opens = client.threads.stream
        client.threads.stream = lambda *args, **more: opened.append(opens(*args, **more)) or opened[-1]
        with shared_place.proxy.news_kept():
            saying = asyncio.create_task(turn(client, None, TURNS["two at once"][0]))
            await until(lambda: opened)
            with pytest.raises(RuntimeError, match="waits for a person"):
                await paused(AsyncTalk(client, opened[0]), shared_place, saying)

    played(shared_place, scene)


@pytest.fixture(scope="session")
def node() -> str:
    found = checked_node()
    install_packages()
    return found


def run_in_node(node: str, text: str) -> str:
    command = [node, "--input-type=module", "-"]
    folder = Path(__file__).parent / "js"
    done = subprocess.run(command, input=text, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", TURNS)
def test_a_turn_of_the_javascript_example_is_answered_whatever_it_asks(
    shared_place: Place, node: str, name: str
) -> None:
    said, texts = TURNS[name]
    text = example("js", "threads.stream", shared_place.http)
    ours = text.replace('"Tell me about pizza"', repr(said)).replace("await turn(", "console.log(await turn(", 1)
    ours = ours.replace(f"turn(id, {said!r});", f"turn(id, {said!r}));")
    assert ours != text
    shown = run_in_node(node, ours)
    assert texts[-1] in shown
    assert in_order(shown, [texts[0], "And about pasta"])


@pytest.mark.timeout(400)
def test_the_javascript_example_runs_as_it_stands(shared_place: Place, node: str) -> None:
    shown = run_in_node(node, example("js", "threads.stream", shared_place.http))
    assert shown == "Tell me about pizzaAnd about pasta"
