"""What is written: checked as a whole first, composed so that reading it again gives the same."""

import base64

import pytest

from pizzabot.host.skills.exchange import draft_of
from pizzabot.host.skills.skill import parse_skill
from pizzabot.host.skills.writing import MAX_FILES, Draft, bundle_of, compose, read_draft
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.skill_sources import Origin, RawSkill

BODY = {"name": "n", "description": "d", "body": "b"}
TOOLS = ["mcp:a:send", "mcp:a:read*", "builtin:eval"]


def reread(skill_id, draft):
    return parse_skill(RawSkill(id=skill_id, files=bundle_of(skill_id, draft), origin=Origin.USER), "test")


def refused(**changes):
    with pytest.raises(InvalidRequest) as caught:
        read_draft({**BODY, **changes})
    assert caught.value.code == "invalid"
    (name,) = caught.value.fields
    return name


def file(path, content="x", **more):
    return {"path": path, "content": content, **more}


@pytest.mark.parametrize(
    "name", ["n", 'with "quotes"', "yes", "a: b", "# no comment", "x\u2028y\x85z", "🍕", "- a", "\\n", "'"]
)
@pytest.mark.parametrize("body", ["", "b", "\r\nb\r\nc\r\n\r\n", "---\nx\n---", "\n\n  b", "a\n\n"])
def test_composing_what_was_composed_and_read_gives_the_same(name, body):
    draft = read_draft({
        "name": name, "description": f"{name}: {name}", "body": body, "declaredTools": TOOLS,
        "interruptOn": {"mcp:a:send": True, "mcp:a:read*": {"allowedDecisions": ["reject", "approve"]}},
    })  # fmt: skip
    text = compose("n", draft)
    skill = reread("n", draft)
    assert skill.fault is None
    assert (skill.name, skill.description, skill.tools) == (name, f"{name}: {name}", tuple(TOOLS))
    again = compose("n", draft_of(skill))
    assert compose("n", draft_of(reread("n", draft_of(skill)))) == again
    assert again.replace("approve\n      - reject", "") == text.replace("reject\n      - approve", "")


def test_the_keys_come_in_their_order_and_only_those_that_are_needed():
    assert compose("a", Draft(name="a", description="d", body="")) == '---\nname: "a"\ndescription: "d"\n---\n'
    full = Draft(name="A", description="d", body="\n\nx \n\n", tools=("mcp:a:b",), gates={"mcp:a:b": False})
    assert compose("a", full) == (
        '---\nname: "a"\ndescription: "d"\nmetadata:\n  display-name: "A"\ntools:\n  - "mcp:a:b"\n'
        'interruptOn:\n  "mcp:a:b": false\n---\n\nx\n'
    )


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"name": "  "}, "name"),
        ({"name": 1}, "name"),
        ({"name": "n" * 201}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"description": ""}, "description"),
        ({"description": "d" * 1025}, "description"),
        ({"body": None}, "body"),
        ({"declaredTools": "mcp:a:b"}, "declaredTools"),
        ({"declaredTools": ["mcp:a"]}, "declaredTools.0"),
        ({"declaredTools": [1]}, "declaredTools.0"),
        ({"declaredTools": ["mcp:a:b"] * 257}, "declaredTools"),
        ({"interruptOn": []}, "interruptOn"),
        ({"interruptOn": {"mcp:a:b": True}}, "interruptOn"),
        ({"declaredTools": ["mcp:a:b"], "interruptOn": {"mcp:a:b": "true"}}, "interruptOn"),
        ({"declaredTools": ["mcp:a:b"], "interruptOn": {"mcp:a:b": {"allowedDecisions": []}}}, "interruptOn"),
        ({"declaredTools": ["mcp:a:b"], "interruptOn": {"mcp:a:b": {"allowedDecisions": ["aprove"]}}}, "interruptOn"),
        ({"declaredTools": ["builtin:eval"], "interruptOn": {"builtin:eval": True}}, "interruptOn"),
        ({"files": {}}, "files"),
        ({"files": ["a"]}, "files.0"),
        ({"files": [file("x")] * MAX_FILES}, "files"),
        ({"files": [file("a.md"), file("a.md")]}, "files.1.path"),
        ({"files": [file("a.md"), file("A.md")]}, "files"),
        ({"files": [file("a"), file("a/b")]}, "files"),
        ({"files": [file("a.md", 1)]}, "files.0.content"),
        ({"files": [file("a.md", encoding="hex")]}, "files.0.encoding"),
        ({"files": [file("a.md", mimeType=1)]}, "files.0.mimeType"),
        ({"files": [file("a.png", "not base64!", encoding="base64")]}, "files.0.content"),
        ({"files": [file("a.png", "YWI", encoding="base64")]}, "files.0.content"),
        ({"files": [file("a.png", "YWJ=", encoding="base64")]}, "files.0.content"),
        ({"files": [file("a.png", "x", mimeType="image/png")]}, "files.0.content"),
    ],
)  # fmt: skip
def test_a_body_that_is_wrong_names_what_is(changes, name):
    assert refused(**changes) == name


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "../a",
        "a/../b",
        ".",
        "a/.",
        ".hidden",
        "a\\b",
        "SKILL.md",
        "skill.MD",
        "a b",
        "ä",
        "a\x00",
        "C:a",
        "a/" * 200 + "a",
    ],
)
def test_paths_that_lead_anywhere_else_are_refused(path):
    assert refused(files=[file(path)]) == "files.0.path"


def test_files_are_text_or_base64_whose_white_space_does_not_count():
    packed = base64.b64encode(b"\x00\xff\x01").decode()
    draft = read_draft({**BODY, "files": [
        file("a/b.md", "ü"), file("c.bin", f" {packed[:2]}\n{packed[2:]} ", encoding="base64"),
        file("d.png", packed, mimeType="image/png"),
    ]})  # fmt: skip
    assert draft.files == {"a/b.md": "ü".encode(), "c.bin": b"\x00\xff\x01", "d.png": b"\x00\xff\x01"}


def test_a_bundle_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("pizzabot.host.skills.writing.MAX_BUNDLE_BYTES", 10)
    assert refused(files=[file("a", "x" * 6), file("b", "x" * 6)]) == "files"
    with pytest.raises(InvalidRequest, match="larger"):
        bundle_of("a", Draft(name="a", description="d", body="x" * 1024 * 1024))
