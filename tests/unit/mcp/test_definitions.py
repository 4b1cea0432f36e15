"""An entry of `.mcp.json` (spec/04 §7), and what it becomes when its server is connected."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot.host.mcp.definitions import check_id, read_entry
from pizzabot.host.mcp.endpoints import endpoint_of, secrets_of
from pizzabot_hookspecs import InvalidRequest, Unavailable
from pizzabot_hookspecs.mcp_clients import McpTransport


class Secrets:
    def resolve(self, reference, /):
        known = {"${TOKEN}": "hunter2hunter2", "${URL}": "https://example.org/mcp", "${BAD}": "ftp://x"}
        if reference not in known:
            raise InvalidRequest("unset_secret", f"secret {reference} is not set")
        return known[reference]


def endpoint(entry, root=None, path=(), environ=None):
    environ = {"PATH": "/bin:/usr/bin"} if environ is None else environ
    return endpoint_of("s", read_entry(entry), root=root, secrets=Secrets(), path=path, environ=environ)


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "x"}, McpTransport.STDIO),
        ({"type": "stdio", "command": "x"}, McpTransport.STDIO),
        ({"url": "https://example.org"}, McpTransport.HTTP),
        ({"type": "http", "url": "https://example.org"}, McpTransport.HTTP),
        ({"type": "streamable-http", "url": "https://example.org"}, McpTransport.HTTP),
        ({"transport": "sse", "url": "https://example.org"}, McpTransport.SSE),
        ({"command": "x", "unknown": 1, "env": None}, McpTransport.STDIO),
    ],
)
def test_the_transport_is_the_types_or_what_the_fields_say(entry, transport):
    assert read_entry(entry).transport is transport


def test_all_that_is_wrong_is_told_at_once_by_field():
    with pytest.raises(InvalidRequest) as wrong:
        read_entry({"command": "", "args": [1], "env": {"A=B": "x", "C": 2}, "enabled": 1, "hide": "x"})
    assert set(wrong.value.fields) == {"command", "args", "env.A=B", "env.C", "enabled", "hide"}


def test_references_stand_alone_or_within_a_text_and_may_have_a_default():
    made = endpoint(
        {
            "url": "${URL}",
            "headers": {"Authorization": "Bearer ${TOKEN}", "X": "${NOT:-other}", "Y": "${TOKEN:-no}", "Z": "$TOKEN"},
        }
    )
    assert made.url == "https://example.org/mcp"
    assert made.headers == {
        "Authorization": "Bearer hunter2hunter2",
        "X": "other",
        "Y": "hunter2hunter2",
        "Z": "$TOKEN",
    }
    assert "hunter2hunter2" in secrets_of(made)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"command": "sh", "env": {"A": "${UNSET}"}}, r"\$\{UNSET\} is not set"),
        ({"command": "sh", "args": ["x${A-B}"]}, r"\$\{A-B\} is no reference"),
        ({"url": "${BAD}"}, "http or https"),
        ({"command": "sh", "cwd": "relative"}, "must be absolute"),
        ({"command": "sh", "cwd": "/no/such/folder"}, "is no folder"),
        ({"command": "./sh"}, "must be absolute, or the name of a program"),
    ],
)
def test_what_cannot_be_resolved_is_an_error_that_names_it(entry, told):
    with pytest.raises(InvalidRequest, match=told):
        endpoint(entry)


def test_programs_are_found_in_the_path_and_python_always():
    assert endpoint({"command": "sh"}).command.endswith("/sh")
    assert endpoint({"command": "/anywhere"}).command == "/anywhere"
    assert endpoint({"command": "python"}, environ={"PATH": "/nowhere"}).command == sys.executable
    with pytest.raises(Unavailable, match=r"'npx' could not be resolved: install Node\.js"):
        endpoint({"command": "npx"}, environ={"PATH": "/nowhere"})


def test_folders_of_programs_come_before_the_path_for_the_server_too(tmp_path):
    program = tmp_path / "npx"
    program.touch(mode=0o755)
    made = endpoint({"command": "npx"}, path=(str(tmp_path),), environ={"PATH": "/bin"})
    assert made.command == str(program)
    assert made.env["PATH"] == f"{tmp_path}:/bin"
    assert "PATH" not in endpoint({"command": "sh"}).env


def test_a_plugins_program_and_folder_stay_in_its_root(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "out").symlink_to("/usr")
    made = endpoint({"command": "./bin/server", "args": ["${CLAUDE_PLUGIN_ROOT}/x"], "cwd": "bin"}, root=tmp_path)
    assert made.command == str(tmp_path / "bin" / "server")
    assert made.args == (f"{tmp_path}/x",)
    assert made.cwd == tmp_path / "bin"
    assert endpoint({"command": "sh"}, root=tmp_path).cwd == tmp_path
    assert endpoint({"command": "sh", "cwd": "."}, root=tmp_path).cwd == tmp_path
    assert endpoint({"command": "sh", "cwd": "${CLAUDE_PLUGIN_ROOT}/bin"}, root=tmp_path).cwd == tmp_path / "bin"
    for cwd in ("..", "bin/../..", "/tmp", "out"):
        with pytest.raises(InvalidRequest, match="leads out of its plugin's folder"):
            endpoint({"command": "sh", "cwd": cwd}, root=tmp_path)
    with pytest.raises(InvalidRequest, match="leads out of its plugin's folder"):
        endpoint({"command": "../evil"}, root=tmp_path)


def test_ids_are_plain_names():
    for good in ("a", "A.b-c_9", "x" * 64):
        assert check_id(good) == good
    for bad in ("", ".a", "a b", "a:b", "a/b", "x" * 65, "ä", None):
        with pytest.raises(InvalidRequest, match="an MCP server's id"):
            check_id(bad)


def test_hidden_tools_are_told_by_patterns():
    entry = read_entry({"command": "x", "hide": ["internal_*", "delete"]})
    assert entry.hides("internal_x")
    assert entry.hides("delete")
    assert not entry.hides("delete_all")


FIELDS = ["type", "command", "args", "env", "cwd", "url", "headers", "enabled", "hide"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["http", "sse", "http://[", "http://a:b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6) | VALUES)
def test_any_entry_is_read_or_refused_with_its_fields(entry):
    try:
        read_entry(entry)
    except InvalidRequest as error:
        assert (error.code, bool(error.fields)) == ("invalid", True)  # noqa: PT017 - either will do
