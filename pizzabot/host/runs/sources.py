"""What a tool's result says it was taken from: the sources that an answer can cite (spec/12 §1.1).

Sources come from results of tools alone, never from what a model wrote. Four shapes are read:

    {"type": "sources", "sources": [{"title", "url"?, "excerpt"?}, …]}     a typed artifact, or the result itself
    {"type": "resource_link", "uri", "name", "title"?, "description"?}      a link to an MCP resource, in the content
    {"type": "resource", "resource": {"uri", "name"?, "title"?, "text"?}}   an MCP resource that came with it
    [{"title", "url", …}, …] or {"query", "results": [{"title", …}, …]}     a list of results, also as JSON text

A tool that has a typed artifact has said all: the rest of its result is not looked at. A bad entry is passed over and
hides no neighbour. An answer cites `[label](#source-<id>)`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard
from urllib.parse import urlsplit

import orjson

from pizzabot_hookspecs.wire import Namespace

SOURCES = "pizzabot.sources"
MAX_SOURCES = 50
"""Of one call."""
MAX_EXCERPT = 2_000
MAX_TITLE = 300
MAX_URL = 2_048
"""A longer one is left out, not cut: it would lead elsewhere."""
MAX_ENTRIES = 100
"""Entries of one result that are looked at, good and bad."""
MAX_JSON_TEXT = 200_000
"""Characters of JSON text that are parsed of one result, on the event loop; a longer text has no sources."""

_TITLES = ("title", "name")
_RESOURCE_TITLES = (*_TITLES, "uri")
_URLS = ("url", "link", "href", "uri")
_EXCERPTS = ("excerpt", "snippet", "description", "text", "content", "summary")
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]+")
"""Control characters, and surrogates: parsing has joined the pairs, so these are alone."""
_NOT_IN_A_URL = re.compile("[\\s\x00-\x20\x7f-\x9f\ud800-\udfff]")


def sources_of(output: object, *, now_ms: int) -> list[dict[str, Any]]:
    """The sources in the `output` of a `tool-finished` frame: a tool message, a Command with some, or a plain value.

    `{id, title, url?, excerpt, retrievedAt}`, at most `MAX_SOURCES`, each once; `excerpt` may be empty, `retrievedAt`
    is `now_ms`. None come from a result that is an error. Never raises, whatever JSON it is given.
    """
    reader = _Reader()
    found: dict[str, dict[str, Any]] = {}
    for title, url, excerpt in reader.read(output):
        source_id = source_id_of(title=title, url=url, excerpt=excerpt)
        if source_id not in found:
            found[source_id] = {"id": source_id, "title": title, **({} if url is None else {"url": url})}
            found[source_id] |= {"excerpt": excerpt, "retrievedAt": now_ms}
        if len(found) == MAX_SOURCES:
            break
    return list(found.values())


def source_id_of(*, title: str, url: str | None, excerpt: str) -> str:
    """`s` and 16 hexadecimal digits, made of the address, or of what it says where it has none.

    The same source has the same id wherever it turns up, two sources never share one (call ids do: some models number
    them anew in each message), and the tool that wants to be cited can tell the model the id in its result.
    """
    told = url if url is not None else f"{title}\n{excerpt}"
    return "s" + hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:16]


def sources_fact(call_id: str, namespace: Namespace, sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The payload of the fact `pizzabot.sources`, a root event; `namespace` is that of the graph that made the call."""
    return {"v": 1, "call_id": call_id, "namespace": list(namespace), "sources": [dict(source) for source in sources]}


def sources_fact_of(namespace: Namespace, data: Mapping[str, Any], *, now_ms: int) -> dict[str, Any] | None:
    """The payload that belongs behind a `tools` frame with this namespace and data; None where it has no sources."""
    call_id = data.get("tool_call_id")
    if data.get("event") != "tool-finished" or not isinstance(call_id, str) or not namespace:
        return None
    found = sources_of(data.get("output"), now_ms=now_ms)
    return sources_fact(call_id, namespace[:-1], found) if found else None


_Found = tuple[str, str | None, str]
"""Title, address, excerpt."""


class _Reader:
    """Reads one result, with an end to how much of it."""

    def __init__(self) -> None:
        self._entries = MAX_ENTRIES
        self._characters = MAX_JSON_TEXT

    def read(self, output: object) -> Iterator[_Found]:
        for message in self._each(_messages(output)):
            if not isinstance(message, dict) or message.get("type") != "tool":
                yield from self._value(message)
            elif message.get("status") != "error":
                artifact = message.get("artifact")
                yield from self._value(artifact if _is_typed(artifact) else message.get("content"))

    def _value(self, value: object, *, parsed: bool = False) -> Iterator[_Found]:
        if isinstance(value, str):
            if not parsed:  # JSON in a text in JSON is a text
                yield from self._value(self._parsed(value), parsed=True)
        elif _is_typed(value):
            yield from self._listed(value["sources"], needs_address=False)
        elif isinstance(value, dict):
            if isinstance(value.get("query"), str) and isinstance(value.get("results"), list):
                yield from self._listed(value["results"], needs_address=False)
        elif isinstance(value, list):
            yield from self._mixed(value, parsed=parsed)

    def _mixed(self, value: list[Any], *, parsed: bool) -> Iterator[_Found]:
        """A list of blocks, or of results."""
        for entry in self._each(value):
            kind = entry.get("type") if isinstance(entry, dict) else None
            if kind == "text" and not parsed and "url" not in entry:
                yield from self._value(entry.get("text"))
            elif kind == "resource" and isinstance(entry.get("resource"), dict):
                yield from _entry({**entry, **entry["resource"]}, needs_address=True, titles=_RESOURCE_TITLES)
            elif kind == "resource_link":
                yield from _entry(entry, needs_address=True, titles=_RESOURCE_TITLES)
            else:
                yield from _entry(entry, needs_address=True)

    def _listed(self, entries: list[Any], *, needs_address: bool) -> Iterator[_Found]:
        for entry in self._each(entries):
            yield from _entry(entry, needs_address=needs_address)

    def _each(self, values: Sequence[Any]) -> Iterator[Any]:
        for value in values:
            if self._entries <= 0:
                return
            self._entries -= 1
            yield value

    def _parsed(self, text: str) -> object:
        """The list or object that a text is; None for any other, and for one that is too long to look into here."""
        if len(text) > self._characters or not text.lstrip().startswith(("[", "{")):
            return None
        self._characters -= len(text)
        try:
            return orjson.loads(text)
        except ValueError:
            pass
        try:  # unpaired surrogates, which orjson refuses
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def _messages(output: object) -> Sequence[Any]:
    if isinstance(output, dict) and output.get("lg_name") == "Command":
        update = output.get("update")
        told = update.get("messages") if isinstance(update, dict) else None
        told = told if isinstance(told, list) else ()
        return [
            message for message in told[:MAX_ENTRIES] if isinstance(message, dict) and message.get("type") == "tool"
        ]
    return (output,)


def _is_typed(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and value.get("type") == "sources" and isinstance(value.get("sources"), list)


def _entry(entry: object, *, needs_address: bool, titles: Sequence[str] = _TITLES) -> Iterator[_Found]:
    """The source that an entry is, if it is one. `needs_address`: not everything with a name is a source."""
    if not isinstance(entry, dict):
        return
    given = _first(entry, _URLS)
    if needs_address and not given:
        return
    url = _address(given)
    title = _line(_first(entry, titles)) or url
    if title:
        excerpt = _bounded(_first(entry, _EXCERPTS), MAX_EXCERPT)
        yield title[:MAX_TITLE], url, excerpt


def _first(entry: Mapping[str, Any], keys: Sequence[str]) -> str:
    found = (entry.get(key) for key in keys)
    return next((value for value in found if isinstance(value, str) and value), "")


def _line(text: str) -> str:
    return " ".join(_bounded(text, 2 * MAX_TITLE).split())[:MAX_TITLE].rstrip()


def _bounded(text: str, limit: int) -> str:
    """The beginning of a text, some blanks before it aside."""
    return _NOT_TEXT.sub(" ", text[: limit + limit // 4]).strip()[:limit].rstrip()


def _address(text: str) -> str | None:
    """An http or https address, as it was given; None for every other."""
    url = text[: MAX_URL + 1].strip()
    if len(url) > MAX_URL or _NOT_IN_A_URL.search(url):
        return None
    try:
        parts = urlsplit(url)
        return url if parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None
