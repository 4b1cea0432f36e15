"""Skills that come as an archive and go as one: which bundle an archive holds, and the archive of a bundle."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from pizzabot.host.skills.archives import SKILL_CAPS, read_archive, write_archive
from pizzabot.host.skills.bundle_paths import MAX_DEPTH
from pizzabot.host.skills.faults import FrontmatterError
from pizzabot.host.skills.frontmatter import MAX_SKILL_FILE_BYTES, Frontmatter, read_frontmatter
from pizzabot.host.skills.skill import MAX_DESCRIPTION, Skill
from pizzabot.host.skills.writing import Draft, compose
from pizzabot.host.skills.yaml_values import Text
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.skill_sources import SKILL_FILE
from pizzabot_hookspecs.wire import JsonValue

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_IMPORTED_NAME = 64


def bundle_of_archive(archive: bytes) -> tuple[str, dict[str, bytes]]:
    """The id and the files of the one skill in it, as they are in it. Raises the codes of spec/04 §5."""
    files = read_archive(archive, SKILL_CAPS)
    found = [path for path in files if PurePosixPath(path).name == SKILL_FILE]
    if len(found) != 1:
        raise InvalidRequest("invalid_bundle", f"the archive has {len(found)} {SKILL_FILE}; it has to have one")
    root = str(PurePosixPath(found[0]).parent)
    prefix = "" if root == "." else f"{root}/"
    outside = next((path for path in files if not path.startswith(prefix)), None)
    if outside is not None:
        raise InvalidRequest("invalid_bundle", f"{outside[:80]!r} is outside of the skill's folder {root[:80]!r}")
    deep = next((path for path in files if path.removeprefix(prefix).count("/") >= MAX_DEPTH), None)
    if deep is not None:
        raise InvalidRequest("invalid_bundle", f"{deep[:80]!r} is nested deeper than {MAX_DEPTH} folders")
    name = checked_name(files[found[0]])
    folder = PurePosixPath(root).name
    if folder and folder != name:
        raise InvalidRequest("name_mismatch", f"the folder is named {folder[:80]!r} and the skill {name!r}")
    return name, {path.removeprefix(prefix): content for path, content in files.items()}


def checked_name(skill_file: bytes) -> str:
    """The name of a SKILL.md that may be imported; raises `InvalidRequest` `invalid_skill_md`, `invalid_skill_name`."""
    try:
        read = read_frontmatter(skill_file)
    except FrontmatterError as error:
        raise InvalidRequest("invalid_skill_md", str(error.fault)) from error
    name = read.fields.values.get("name")
    text = name.text if isinstance(name, Text) else ""
    if len(text) > MAX_IMPORTED_NAME or not _NAME.fullmatch(text):
        problem = f"has to be 1 to {MAX_IMPORTED_NAME} of a-z 0-9, with single `-` between them"
        raise InvalidRequest("invalid_skill_name", f"`name` {text[:80]!r} {problem}", fields={"name": problem})
    _check_texts(read)
    return text


def _check_texts(read: Frontmatter) -> None:
    value = read.fields.values.get("description")
    description = value.text.strip() if isinstance(value, Text) and not value.nothing else ""
    if not 1 <= len(description) <= MAX_DESCRIPTION:
        problem = f"has to be text of 1 to {MAX_DESCRIPTION} characters"
        raise InvalidRequest("invalid_skill_md", f"`description` {problem}", fields={"description": problem})
    if not read.body.strip():
        raise InvalidRequest("invalid_skill_md", f"{SKILL_FILE} has nothing after its frontmatter")


def archive_of(skill: Skill) -> bytes:
    """The bundle in a folder of its id. What could not be imported as it was written is written anew, if it can be."""
    files = {SKILL_FILE: _exported(skill), **skill.files}
    return write_archive({f"{skill.id}/{path}": content for path, content in files.items()})


def _exported(skill: Skill) -> bytes:
    if skill.fault is not None or _imports_as(skill.skill_file, skill.id):
        return skill.skill_file
    anew = compose(skill.id, draft_of(skill)).encode()
    return anew if len(anew) <= MAX_SKILL_FILE_BYTES and _imports_as(anew, skill.id) else skill.skill_file


def _imports_as(skill_file: bytes, skill_id: str) -> bool:
    try:
        return checked_name(skill_file) == skill_id
    except InvalidRequest:
        return False


def draft_of(skill: Skill) -> Draft:
    return Draft(
        name=skill.name,
        description=skill.description,
        body=skill.body,
        tools=skill.tools,
        gates=gates_of(skill),
        files=skill.files,
    )


def gates_of(skill: Skill) -> Mapping[str, JsonValue]:
    """`interruptOn` as JSON."""
    gates: dict[str, JsonValue] = {}
    for gate in skill.gates:
        if gate.whole:
            gates[gate.ref] = gate.decisions is not None
        else:
            words: list[JsonValue] = []
            words.extend(sorted(gate.decisions or ()))
            gates[gate.ref] = {"allowedDecisions": words}
    return gates
