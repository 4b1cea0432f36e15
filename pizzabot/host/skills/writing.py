"""Skills that are written through the API: the body checked as a whole, and the SKILL.md that is made of it.

Nothing is on disk before everything is checked (spec/01 §7). `compose` and `read_frontmatter` are inverse: what was
read and is composed again is the same file.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pizzabot.host.skills.bundle_paths import clash, path_fault
from pizzabot.host.skills.frontmatter import MAX_SKILL_FILE_BYTES
from pizzabot.host.skills.media_types import is_binary_type
from pizzabot.host.skills.permissions import (
    ALLOWED_KEY,
    INTERRUPT_KEY,
    MAX_REFS,
    DecisionError,
    check_gate,
    meant_as_gate,
    read_decisions,
)
from pizzabot.host.skills.refs import InvalidRefError, parse_ref
from pizzabot.host.skills.skill import MAX_DESCRIPTION, MAX_NAME
from pizzabot.host.skills.yaml_values import quoted
from pizzabot.host.text import clean_text
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.skill_sources import SKILL_FILE
from pizzabot_hookspecs.wire import JsonValue

MAX_FILES = 256
MAX_BUNDLE_BYTES = 50 * 1024 * 1024

_TOOLS_KEY = "declaredTools"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A skill to write. `gates` are the values of `interruptOn` as JSON: true, false or `{allowedDecisions}`."""

    name: str
    description: str
    body: str
    tools: tuple[str, ...] = ()
    gates: Mapping[str, JsonValue] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


def bundle_of(skill_id: str, draft: Draft) -> dict[str, bytes]:
    """Every file of the bundle. Raises `InvalidRequest` `invalid` where it is larger than a bundle may be."""
    skill_file = compose(skill_id, draft).encode()
    if len(skill_file) > MAX_SKILL_FILE_BYTES:
        raise _invalid("body", f"makes {SKILL_FILE} larger than {MAX_SKILL_FILE_BYTES} bytes")
    return {SKILL_FILE: skill_file, **draft.files}


def compose(skill_id: str, draft: Draft) -> str:
    """SKILL.md, its keys in the order of spec/04 §1.4."""
    lines = ["---", f"name: {quoted(skill_id)}", f"description: {quoted(draft.description)}"]
    if draft.name != skill_id:
        lines += ["metadata:", f"  display-name: {quoted(draft.name)}"]
    if draft.tools:
        lines += ["tools:", *(f"  - {quoted(ref)}" for ref in draft.tools)]
    if draft.gates:
        lines += ["interruptOn:", *(line for ref, config in draft.gates.items() for line in _gate(ref, config))]
    lines.append("---")
    text = "\n".join(lines) + "\n"
    body = draft.body.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n").rstrip()
    return f"{text}\n{body}\n" if body else text


def _gate(ref: str, config: JsonValue) -> list[str]:
    if isinstance(config, Mapping):
        allowed = config[ALLOWED_KEY]
        words = allowed if isinstance(allowed, list) else []
        return [f"  {quoted(ref)}:", f"    {ALLOWED_KEY}:", *(f"      - {word}" for word in words)]
    return [f"  {quoted(ref)}: {'true' if config else 'false'}"]


def read_draft(body: Mapping[str, JsonValue]) -> Draft:
    """Raises `InvalidRequest` `invalid`, whose fields name what is wrong."""
    _refuse_misspelt(body)
    tools = _tools(body.get("declaredTools"))
    return Draft(
        name=_line(body, "name", MAX_NAME),
        description=_line(body, "description", MAX_DESCRIPTION),
        body=clean_text(_text(body, "body")),
        tools=tools,
        gates=_gates(body.get("interruptOn"), tools),
        files=_files(body.get("files")),
    )


def _refuse_misspelt(body: Mapping[str, JsonValue]) -> None:
    """What was meant to restrict is never passed over: `interrupton` would be no approval."""
    for key in body:
        if meant_as_gate(key):
            raise _invalid(key[:80], f"has to be written {INTERRUPT_KEY!r}")
        if key != _TOOLS_KEY and re.sub("[^a-z]", "", key.lower()) == _TOOLS_KEY.lower():
            raise _invalid(key[:80], f"has to be written {_TOOLS_KEY!r}")


def _text(body: Mapping[str, JsonValue], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise _invalid(key, "has to be text")
    return value


def _line(body: Mapping[str, JsonValue], key: str, most: int) -> str:
    text = clean_text(_text(body, key)).strip()
    if not text:
        raise _invalid(key, "must not be empty")
    if len(text) > most:
        raise _invalid(key, f"has {len(text)} characters; at most {most} are allowed")
    if any(ord(one) < 32 and one not in "\n\t" for one in text):
        raise _invalid(key, "has control characters")
    return text


def _tools(value: JsonValue) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_REFS:
        raise _invalid("declaredTools", f"has to be a list of at most {MAX_REFS} tool references")
    tools: dict[str, None] = {}
    for place, ref in enumerate(value):
        if not isinstance(ref, str):
            raise _invalid(f"declaredTools.{place}", "has to be text")
        try:
            parse_ref(ref.strip())
        except InvalidRefError as error:
            raise _invalid(f"declaredTools.{place}", str(error)) from error
        tools[ref.strip()] = None
    return tuple(tools)


def _gates(value: JsonValue, tools: Sequence[str]) -> dict[str, JsonValue]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > MAX_REFS:
        raise _invalid("interruptOn", f"has to be an object of at most {MAX_REFS} tool references")
    for ref, config in value.items():
        try:
            check_gate(ref, tools)
            read_decisions(config)
        except (InvalidRefError, DecisionError) as error:
            raise _invalid("interruptOn", f"{ref[:80]}: {error}") from error
    return dict(value)


def _files(value: JsonValue) -> dict[str, bytes]:
    if value is None:
        return {}
    if not isinstance(value, list) or len(value) >= MAX_FILES:
        raise _invalid("files", f"has to be a list of fewer than {MAX_FILES} files")
    files: dict[str, bytes] = {}
    total = 0
    for place, item in enumerate(value):
        where = f"files.{place}"
        if not isinstance(item, Mapping):
            raise _invalid(where, "has to be an object with `path` and `content`")
        path, content = _file(item, where)
        if path in files:
            raise _invalid(f"{where}.path", f"{path!r} is there twice")
        total += len(content)
        if total > MAX_BUNDLE_BYTES:
            raise _invalid("files", f"are more than {MAX_BUNDLE_BYTES} bytes together")
        files[path] = content
    clashing = clash(files)
    if clashing is not None:
        raise _invalid("files", f"{clashing!r} and another file cannot be in one folder")
    return files


def _file(item: Mapping[str, JsonValue], where: str) -> tuple[str, bytes]:
    path, content, encoding = item.get("path"), item.get("content"), item.get("encoding")
    kind = item.get("mimeType")
    if not isinstance(path, str) or (fault := path_fault(path)) is not None:
        raise _invalid(f"{where}.path", fault if isinstance(path, str) else "has to be text")
    if not isinstance(content, str):
        raise _invalid(f"{where}.content", "has to be text")
    if encoding not in (None, "base64"):
        raise _invalid(f"{where}.encoding", "can only be `base64`")
    if kind is not None and not isinstance(kind, str):
        raise _invalid(f"{where}.mimeType", "has to be text")
    if encoding is None and not (kind and is_binary_type(kind)):
        return path, clean_text(content).encode()
    return path, _from_base64(content, f"{where}.content")


def _from_base64(content: str, where: str) -> bytes:
    packed = "".join(content.split())
    try:
        found = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid(where, f"is not base64: {error}") from error
    if base64.b64encode(found).decode() != packed:
        raise _invalid(where, "is not canonical base64")
    return found


def _invalid(name: str, problem: str | None) -> InvalidRequest:
    return InvalidRequest("invalid", f"`{name}` {problem}", fields={name: problem or ""})
