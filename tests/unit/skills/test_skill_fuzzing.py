# ruff: noqa: E501, PT017 - tables of odd pieces; the property is about the error
"""Anything as SKILL.md and anything in a ZIP: no crash, nothing outside, no permission that nobody wrote."""

import io
import tempfile
import zipfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pizzabot.host.skills.archives import SKILL_CAPS, read_archive
from pizzabot.host.skills.catalogue import SkillParser, merge
from pizzabot.host.skills.exchange import bundle_of_archive, draft_of
from pizzabot.host.skills.skill import parse_skill
from pizzabot.host.skills.writing import bundle_of
from pizzabot_builtin_plugins.user_skills import bundles
from pizzabot_hookspecs import PizzabotError
from pizzabot_hookspecs.skill_sources import Origin, RawSkill
from pizzabot_hookspecs.support.skill_folders import SkillFolder

SLOW = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
PIECES = st.sampled_from([
    "---", "---\n", "\n", "\r\n", "\ufeff", "description: ", "Use when: x", "tools: ", "mcp:a:b", "mcp:a:*", "- ", "  ", ": ",
    "interruptOn:", "interruptOn: {", "}", "[", "]", "true", "false", "allowedDecisions", "approve", "name: ", "yes", "&a ", "*a",
    "!!python/object ", "|\n", ">-\n", "'", '"', "#", "\t", "\x00", "\u2028", "hooks: x\n", "metadata:\n", "  display-name: ", "? ", "...",
    "é", "🍕", "{}", "null", "~",
])  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=40).map("".join)
CONTENTS = TEXTS.map(lambda text: text.encode(errors="replace")) | st.binary(max_size=300)
FRAMED = TEXTS.map(lambda text: f"---\ndescription: d\n{text}\n---\nbody".encode(errors="replace"))


@SLOW
@given(CONTENTS | FRAMED, st.sampled_from(Origin))
@example(b"---\ndescription: d\ntools: mcp:a:b\n interruptOn: {mcp:a:b: true}\n---", Origin.USER)
def test_any_content_is_a_skill_or_a_fault_and_is_never_dropped(content, origin):
    raw = RawSkill(id="s", files={"SKILL.md": content}, origin=origin)
    parser = SkillParser()
    found = merge({"x": parser.parse("x", [raw])}, {})
    assert "s" in found.skills or any(problem.id == "s" for problem in found.problems)
    for problem in found.problems:
        assert problem.fault.reason
        assert "\n" not in problem.fault.reason
        lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
        assert problem.fault.line is None or 1 <= problem.fault.line <= lines + 1


@SLOW
@given(FRAMED)
def test_what_is_used_has_every_gate_that_yaml_itself_reads(content):
    skill = parse_skill(RawSkill(id="s", files={"SKILL.md": content}, origin=Origin.USER), "x")
    if skill.fault is not None:
        return
    front = content.decode().replace("\r\n", "\n").replace("\r", "\n").split("---\n", 2)
    try:
        read = yaml.safe_load(front[1])
    except (yaml.YAMLError, ValueError, IndexError, TypeError):
        return
    gates = read.get("interruptOn") if isinstance(read, dict) else None
    assert len(gates or {}) == len(skill.gates)


@SLOW
@given(FRAMED)
def test_composing_what_was_read_gives_the_same_skill(content):
    skill = parse_skill(RawSkill(id="s", files={"SKILL.md": content}, origin=Origin.USER), "x")
    if skill.fault is not None:
        return
    again = parse_skill(RawSkill(id="s", files=bundle_of("s", draft_of(skill)), origin=Origin.USER), "x")
    assert again.fault is None
    assert (again.name, again.description, again.tools) == (skill.name, skill.description, skill.tools)
    assert {(gate.ref, gate.decisions) for gate in again.gates} == {(gate.ref, gate.decisions) for gate in skill.gates}
    assert bundle_of("s", draft_of(again)) == bundle_of("s", draft_of(skill))


NAMES = st.sampled_from([
    "SKILL.md", "a.txt", "a/b.txt", "../x", "/x", "C:/x", "a\\b", "a/../../x", "./a", "a//b", "mail/SKILL.md", "mail/a", "MAIL/A", "a/",
    ".ssh/authorized_keys", "..", "__MACOSX/a", ".DS_Store", "nul\x01", "é", "a" * 300, "x/y/z", "SKILL.MD", " ", "-rf", "~",
]) | st.text(min_size=1, max_size=12)  # fmt: skip
GOOD = b"---\nname: mail\ndescription: d\n---\nbody"
ENTRIES = st.lists(
    st.tuples(
        NAMES, st.sampled_from([GOOD, b"", b"x" * 100]), st.sampled_from([0, 0o100644, 0o120777, 0o040755, 0o010644])
    ),
    max_size=6,
)
DAMAGE = st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=4)


def packed(entries, damage):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content, mode in entries:
            entry = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            entry.external_attr = mode << 16
            archive._didModify = True
            archive.writestr(entry, content)
    found = bytearray(out.getvalue())
    for place, value in damage:
        if place < len(found):
            found[place] = value
    return bytes(found)


@SLOW
@given(ENTRIES, DAMAGE)
def test_any_archive_is_files_inside_one_folder_or_an_error_with_a_code(entries, damage):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile's own, about names that are there twice
        archive = packed(entries, damage)
    try:
        read_archive(archive, SKILL_CAPS)
        skill_id, files = bundle_of_archive(archive)
    except PizzabotError as error:
        assert error.code
        return
    with tempfile.TemporaryDirectory() as outside:
        root = Path(outside) / "root"
        bundles.prepare(root)
        bundles.put(root, skill_id, files, new=True)
        written = {path.relative_to(root / skill_id).as_posix() for path in root.rglob("*") if path.is_file()}
        assert [path.name for path in Path(outside).iterdir()] == ["root"]
        assert written == set(files)
        (found,) = SkillFolder(root, origin=Origin.USER).read()
        assert (found.id, found.fault) == ("mail", None)
        assert dict(found.files) == {
            path: content for path, content in files.items() if path.split("/")[-1] != "Thumbs.db"
        }


@SLOW
@given(st.binary(max_size=400))
def test_bytes_that_are_no_archive_are_an_error_with_a_code(archive):
    try:
        read_archive(archive, SKILL_CAPS)
    except PizzabotError as error:
        assert error.code in {"empty_archive", "invalid_archive", "too_many_files"}
    else:
        raise AssertionError("random bytes were taken for an archive")
