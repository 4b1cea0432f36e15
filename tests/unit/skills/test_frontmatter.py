"""One parser: lenient where the meaning is plain, a reported fault with its line where it is not (R8, 42, 43)."""

import contextlib
import time

import pytest

from pizzabot.host.skills.faults import FrontmatterError
from pizzabot.host.skills.frontmatter import MAX_FRONTMATTER_CHARACTERS, MAX_SKILL_FILE_BYTES, read_frontmatter
from pizzabot.host.skills.skill import parse_skill
from pizzabot_hookspecs.skill_sources import Origin, RawSkill


def parsed(text, *, origin=Origin.USER, skill_id="s"):
    content = text if isinstance(text, bytes) else text.encode()
    return parse_skill(RawSkill(id=skill_id, files={"SKILL.md": content}, origin=origin), "test")


def fault_of(text, **more):
    skill = parsed(text, **more)
    assert skill.fault is not None
    return skill.fault


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff---\ndescription: reads mail\n---\nbody\n",
        "\n\n  \n---\ndescription: reads mail\n---\nbody\n",
        "---\r\ndescription: reads mail\r\n---\r\nbody\r\n",
        "---\rdescription: reads mail\r---\rbody",
        "---  \ndescription: reads mail\n---\t\nbody",
        '---\ndescription: "reads mail"\n---\nbody',
        "---\ndescription: >-\n  reads\n  mail\n---\nbody",
    ],
)
def test_a_mark_blank_lines_line_ends_and_spaces_do_not_matter(text):
    skill = parsed(text)
    assert (skill.fault, skill.description, skill.body.strip()) == (None, "reads mail", "body")


def test_nothing_after_the_closing_fence_is_an_empty_body():
    skill = parsed("---\ndescription: reads mail\n---")
    assert (skill.fault, skill.description, skill.body) == (None, "reads mail", "")


@pytest.mark.parametrize(
    "value",
    [
        "Use when: somebody asks",
        "reviews on two axes: Standards and Style",
        "`code` comes first",
        "@mentions are answered: always",
        "[beta] sorts mail",
        "*important* mail",
        "100%: all of it",
        "a: b: c",
    ],
)
def test_a_description_without_the_quotes_that_yaml_wants_is_read_as_it_stands(value):
    skill = parsed(f"---\nname: x\ndescription: {value}\n---\nbody")
    assert (skill.fault, skill.description) == (None, value)


def test_lines_that_go_on_with_such_a_description_belong_to_it():
    skill = parsed("---\ndescription: Use when: a\n  or when b\ntools: mcp:a:b\n---\n")
    assert (skill.fault, skill.description, skill.tools) == (None, "Use when: a or when b", ("mcp:a:b",))


def test_a_key_that_was_indented_by_mistake_is_never_taken_for_text():
    fault = fault_of("---\ndescription: Use when: a\n  interruptOn:\n    mcp:a:b: true\ntools: mcp:a:b\n---\n")
    assert fault.line == 2


@pytest.mark.parametrize(
    ("written", "name"), [("yes", "yes"), ("123", "123"), ("1.50", "1.50"), ("on", "on"), ("'x'", "x")]
)
def test_a_name_is_the_text_that_was_written(written, name):
    assert parsed(f"---\nname: {written}\ndescription: d\n---\n").name == name


@pytest.mark.parametrize(
    ("frontmatter", "line", "says"),
    [
        ("name: x", 1, "no `description`"),
        ("description:", 2, "empty"),
        ("description: null", 2, "empty"),
        ("description: ~", 2, "empty"),
        ("description: '  '", 2, "empty"),
        ("name: x\ndescription: [a, b]", 3, "a list"),
        ("description:\n  a: b", 2, "a mapping"),
        ("description: d\ndescription: e", 3, "twice"),
        ("description: d\ntools: [mcp:a:b", 3, "not YAML"),
        ("description: d\ninterruptOn: {mcp:a:b: true", 3, "not YAML"),
        ("description: d\nx: &a 1", 3, "anchor"),
        ("description: d\nx: !!python/object:os.system 1", 3, "tag"),
        ("description: d\nx: {? [a] : b}", 3, "keys are text"),
        ("- a\n- b", 2, "not a mapping"),
        ("just text", 2, "not a mapping"),
        ("description: d\nx: [[[[[[[[[1]]]]]]]]]", 3, "nested"),
        ('description: "d\nname: x', None, "not YAML"),
    ],
)
def test_what_is_not_plain_is_a_fault_with_its_line(frontmatter, line, says):
    fault = fault_of(f"---\n{frontmatter}\n---\nbody")
    assert says in fault.reason
    assert line is None or fault.line == line


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no frontmatter"),
        (b"# Title\n", "no frontmatter"),
        (b"---\ndescription: d\n", "does not end"),
        (b"---\ndescription: \xff\n---\n", "not UTF-8"),
        (b"---\ndescription: d\n---\n" + b"x" * MAX_SKILL_FILE_BYTES, "at most"),
        (b"---\ndescription: d\n" + b"# \n" * MAX_FRONTMATTER_CHARACTERS + b"---\n", "longer than"),
        (b"---\ndescription: a\x00b\n---\n", "not YAML"),
    ],
)
def test_a_file_that_is_no_skill_says_why(content, says):
    assert says in fault_of(content).reason


def test_frontmatter_that_cannot_be_read_is_not_used_without_its_limits():
    skill = parsed("---\ndescription: d\ntools: mcp:a:b\ninterruptOn:\n  mcp:a:b: [true\n---\nbody")
    assert skill.fault is not None
    assert skill.tools == ()


@pytest.mark.parametrize(
    "bomb",
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"b{n}: &b{n} [*a,*a,*a,*a]\n" for n in range(50)),
        "a: " + "[" * 60_000,
        "a: " + "{a: " * 15_000,
        "- " * 30_000,
        "? " * 30_000,
        "a: |\n" + " x\n" * 20_000,
        "".join(f"k{n}: v\n" for n in range(9_000))[: MAX_FRONTMATTER_CHARACTERS - 1],
        '"' * 60_000,
    ],
)
def test_a_yaml_bomb_is_refused_quickly(bomb):
    began = time.monotonic()
    skill = parsed(f"---\n{bomb}\n---\n")
    assert time.monotonic() - began < 2
    assert skill.fault is not None


def test_megabytes_of_anything_are_bounded():
    for filler in (b"-", b"\n", b"---\n", b"[", b"\xff", b"a: b\n", b" "):
        content = (filler * MAX_SKILL_FILE_BYTES)[:MAX_SKILL_FILE_BYTES]
        began = time.monotonic()
        with contextlib.suppress(FrontmatterError):
            read_frontmatter(b"---\n" + content[4:])
        assert time.monotonic() - began < 2


def test_a_description_that_is_too_long_is_told_and_used():
    skill = parsed(f"---\ndescription: {'d' * 2000}\n---\n")
    assert skill.fault is None
    assert "2000 characters" in skill.faults[0].reason


@pytest.mark.parametrize("key", ["hooks", "mcpServers", "permissionMode"])
def test_a_plugins_skill_with_a_key_that_widens_what_it_may_do_is_refused(key):
    text = f"---\ndescription: d\n{key}: x\n---\n"
    refused = parsed(text, origin=Origin.PLUGIN)
    assert refused.refused
    assert (refused.faults[0].line, key in refused.faults[0].reason) == (3, True)
    assert parsed(text, origin=Origin.USER).fault is None


def test_reserved_and_impossible_ids_are_refused():
    for skill_id in ("pizza-bot", "a b", "-a", "ä", "a" * 65, "a.b"):
        assert parsed("---\ndescription: d\n---\n", skill_id=skill_id).refused


def test_display_names_come_before_names_and_those_before_the_id():
    assert parsed("---\ndescription: d\nname: n\nmetadata: {display-name: Shown}\n---\n").name == "Shown"
    assert parsed("---\ndescription: d\nname: n\nmetadata: {display-name: ''}\n---\n").name == "n"
    assert parsed("---\ndescription: d\n---\n").name == "s"


def test_a_skill_file_in_other_letters_is_told():
    skill = parse_skill(RawSkill(id="s", files={"skill.md": b"---\ndescription: d\n---\n"}), "test")
    assert "named SKILL.md" in str(skill.fault)


def test_three_dots_end_nothing_since_what_stands_behind_them_may_restrict():
    with pytest.raises(FrontmatterError):
        read_frontmatter(b"---\ndescription: d\n...\ninterruptOn:\n  mcp:m:x: true\n---\nbody")
