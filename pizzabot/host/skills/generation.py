"""A skill drafted by the model from what a person asks for (spec/04 §4). Never stored: the editor is filled with it.

One JSON object is asked for in plain text, because not every provider has structured output. Approvals are ours, not
the model's: every wildcard, and every tool whose name says that it changes something.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pizzabot.host.skills.refs import BUILTINS, McpRef, parse_ref
from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot.host.skills.skill import MAX_DESCRIPTION, MAX_NAME
from pizzabot.host.text import clean_text
from pizzabot_hookspecs.wire import JsonValue

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

MAX_PROMPT = 20_000
"""Characters of what a person asks for."""
MAX_ANSWER = 400_000
"""Characters of a model's answer that are looked at."""
MAX_OFFERED = 500
"""Tool references that the model is told of."""
MAX_BRACES = 200
"""Places in a chatty answer where the object is tried to be read."""
DEFAULT_NAME = "New Skill"
ASKED = ("approve", "edit", "reject")

_VERBS = """
accept add append apply approve archive assign ban block book buy call cancel change clear close commit
copy create deactivate decline delete deploy detach disable drop edit enable erase exec execute fill
forward grant import insert install invite kill lock make merge modify move mute notify order overwrite
patch pay pin post publish purchase purge push put reassign rebase reject release remove rename replace
reply reset resolve restart restore revert revoke run save schedule send set share sign start stop
submit subscribe swap terminate transfer trash trigger truncate type unassign uninstall unlock unpublish
unsubscribe update upload upsert vote wipe write
"""
SIDE_EFFECT_VERBS = frozenset(_VERBS.split())

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FENCE = re.compile(r"```[A-Za-z]*\s*\n(.*?)```", re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)

_INSTRUCTIONS = """You write skills for an assistant. A skill is a specialist to whom the assistant hands over a task.

Answer with one JSON object and nothing else:
{"name": "a short title", "description": "when to use it, in one or two sentences; the assistant chooses by it",
"body": "the specialist's instructions in Markdown", "tools": ["references of the tools that it needs"]}

Use only tools of this list, by their reference, and as few as the task needs. Without need, use none:
"""


class GenerationError(Exception):
    """The model's answer holds no skill."""


async def generate(chat: BaseChatModel, prompt: str, states: Mapping[str, ServerState]) -> Mapping[str, Any]:
    """A draft as `POST /skills` takes it, without an id. Raises `GenerationError`, and whatever the model raises."""
    offered = offered_tools(states)
    answer = await chat.ainvoke([("system", instructions(offered)), ("human", prompt)])
    return read_answer(str(answer.text), offered)


def offered_tools(states: Mapping[str, ServerState]) -> dict[str, str]:
    """References and what they are; of connected servers."""
    offered = {
        "builtin:eval": "runs JavaScript in a sandbox: calculations, reshaping data",
        "builtin:ask_user": "asks the person a question and waits for the answer",
    }
    for server, state in sorted(states.items()):
        if state.status is ServerStatus.CONNECTED and state.tools:
            offered[f"mcp:{server}:*"] = f"every tool of the server {server}"
            for name, tool in state.tools.items():
                offered[f"mcp:{server}:{name}"] = " ".join(tool.description.split())[:200]
    return dict(list(offered.items())[:MAX_OFFERED])


def instructions(offered: Mapping[str, str]) -> str:
    return _INSTRUCTIONS + "\n".join(f"- {ref}: {what}" for ref, what in offered.items())


def read_answer(text: str, offered: Iterable[str]) -> Mapping[str, Any]:
    """Tolerates fences and talk around the object; unknown tools are dropped."""
    found = _object(clean_text(text[:MAX_ANSWER]))
    name = _line(found.get("name"))[:MAX_NAME].strip() or DEFAULT_NAME
    description = _line(found.get("description"))[:MAX_DESCRIPTION].strip() or name
    body = found.get("body")
    asked, known = found.get("tools"), frozenset(offered)
    tools = [ref for ref in asked if isinstance(ref, str) and ref in known] if isinstance(asked, list) else []
    declared = list(dict.fromkeys(tools))
    return {
        "name": name,
        "description": description,
        "body": body.strip() if isinstance(body, str) else "",
        "declaredTools": declared,
        "interruptOn": approvals(declared),
    }


def approvals(tools: Iterable[str]) -> dict[str, JsonValue]:
    """Which of the references a person is to be asked about."""
    asked: dict[str, JsonValue] = {}
    for text in tools:
        ref = None if text in BUILTINS else parse_ref(text)
        if isinstance(ref, McpRef) and (ref.wildcard or has_side_effects(ref.tool)):
            asked[text] = {"allowedDecisions": list(ASKED)}
    return asked


def has_side_effects(tool: str) -> bool:
    """By the words of its name, `sendMail` and `send_mail` alike."""
    return any(word.lower() in SIDE_EFFECT_VERBS for word in _WORD.findall(tool))


def _object(text: str) -> Mapping[str, Any]:
    for candidate in (text, *(found[1] for found in _FENCE.finditer(text[:MAX_ANSWER]))):
        if (found := _decoded(candidate.strip())) is not None:
            return found
    place = -1
    for _ in range(MAX_BRACES):
        place = text.find("{", place + 1)
        if place < 0:
            break
        if (found := _decoded(text[place:])) is not None and {"name", "description", "body"} & found.keys():
            return found
    raise GenerationError("the model's answer has no JSON object of a skill in it; try again, or another model")


def _decoded(text: str) -> Mapping[str, Any] | None:
    try:
        found, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _line(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
