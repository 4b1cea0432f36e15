"""Shapes that public bundles have, written after the documented format: each loads, or is listed with the reason."""

import json
from dataclasses import dataclass, field

import pytest

from pizzabot.testing.bundle_files import write_bundle
from pizzabot_hookspecs.bundles import MANIFEST, BundleStatus
from pizzabot_hookspecs.skill_sources import Origin

SKILL = "---\ndescription: reviews code\n---\nLook at the diff.\n"
SERVER = {"command": "npx", "args": ["-y", "some-server"]}
LOADED, FAILED, INCOMPATIBLE = BundleStatus.LOADED, BundleStatus.FAILED, BundleStatus.INCOMPATIBLE


@dataclass
class Shape:
    """`raw` is the manifest's bytes where no JSON of a dict will do."""

    manifest: dict = field(default_factory=lambda: {"name": "tools"})
    files: dict = field(default_factory=dict)
    raw: bytes | None = None
    status: BundleStatus = LOADED
    skills: tuple = ()
    servers: tuple = ()
    detail: str = ""


SHAPES = {
    "skills in the usual folder": Shape(files={"skills/review/SKILL.md": SKILL}, skills=("review",)),
    "a skill with references and a picture": Shape(
        files={
            "skills/review/SKILL.md": SKILL,
            "skills/review/references/a.md": "a",
            "skills/review/b.png": b"\x89PNG",
        },
        skills=("review",),
    ),
    "skills as single files": Shape(
        manifest={"name": "tools", "skills": "./prompts"},
        files={"prompts/review.md": SKILL, "prompts/plan.md": SKILL, "prompts/README.md": "# Prompts"},
        skills=("plan", "review"),
    ),
    "a list of skills, folders and files": Shape(
        manifest={"name": "tools", "skills": ["./one/review", "two.md"]},
        files={"one/review/SKILL.md": SKILL, "two.md": SKILL},
        skills=("review", "two"),
    ),
    "the whole bundle is one skill": Shape(
        manifest={"name": "tools", "skills": "./"}, files={"SKILL.md": SKILL}, skills=("tools",)
    ),
    "a named folder beside the usual one": Shape(
        manifest={"name": "tools", "skills": ["./more/"]},
        files={"skills/review/SKILL.md": SKILL, "more/plan/SKILL.md": SKILL},
        skills=("plan", "review"),
    ),
    "the usual folder named once more": Shape(
        manifest={"name": "tools", "skills": ["./skills/", "./skills/review"]},
        files={"skills/review/SKILL.md": SKILL},
        skills=("review",),
    ),
    "servers in the usual file": Shape(
        files={".mcp.json": json.dumps({"mcpServers": {"db": SERVER}})}, servers=("db",)
    ),
    "servers in the usual file, without the key around them": Shape(
        files={".mcp.json": json.dumps({"db": SERVER})}, servers=("db",)
    ),
    "servers in a named file": Shape(
        manifest={"name": "tools", "mcpServers": "./config/servers.json"},
        files={"config/servers.json": json.dumps({"mcpServers": {"db": SERVER}})},
        servers=("db",),
    ),
    "servers in the manifest": Shape(
        manifest={"name": "tools", "mcpServers": {"db": SERVER, "web": {"type": "http", "url": "https://example.org"}}},
        servers=("db", "web"),
    ),
    "servers in the manifest and in the usual file": Shape(
        manifest={"name": "tools", "mcpServers": {"db": SERVER}},
        files={".mcp.json": json.dumps({"mcpServers": {"web": {"url": "https://example.org"}}})},
        servers=("db", "web"),
    ),
    "a file of servers that is missing": Shape(
        manifest={"name": "tools", "mcpServers": "./gone.json"},
        status=FAILED,
        detail="plugin.json line 3: there is no './gone.json' in the bundle",
    ),
    "a folder of skills that is missing": Shape(
        manifest={"name": "tools", "skills": "./gone"},
        files={"skills/review/SKILL.md": SKILL},
        status=FAILED,
        detail="plugin.json line 3: there is no './gone' in the bundle",
    ),
    "commands, agents and hooks beside a skill": Shape(
        manifest={"name": "tools", "commands": ["./c.md"], "agents": "./agents", "hooks": {"PostToolUse": []}},
        files={"skills/review/SKILL.md": SKILL, "commands/c.md": "c", "agents/a.md": "a"},
        skills=("review",),
        detail="left out, since there is nothing for it here: commands, agents, hooks",
    ),
    "commands alone, in their usual folders": Shape(
        files={"commands/c.md": "c", "hooks/hooks.json": "{}"},
        detail="left out, since there is nothing for it here: commands/, hooks/",
    ),
    "fields that nobody knows": Shape(
        manifest={"name": "tools", "zeta": {"a": [1, None]}, "extensions": {"com.example.x": {"deep": True}}}
    ),
    "everything there is to tell": Shape(
        manifest={
            "name": "tools",
            "version": "1.2.3-beta",
            "displayName": "Tools",
            "description": "d",
            "license": "MIT",
            "author": {"name": "Somebody", "email": "a@example.org", "url": "https://example.org"},
            "homepage": "https://example.org",
            "repository": {"type": "git", "url": "https://example.org/r"},
            "keywords": ["a", "b"],
        },
    ),
    "an author who is a text, and keywords that are none": Shape(
        manifest={"name": "tools", "author": "Somebody", "keywords": "a b"},
        detail="left out, since there is nothing for it here: keywords",
    ),
    "a marketplace file beside the manifest": Shape(
        files={".claude-plugin/marketplace.json": json.dumps({"name": "m", "plugins": [{"name": "tools"}]})}
    ),
    "a BOM and CRLF": Shape(
        raw=b'\xef\xbb\xbf{\r\n  "name": "tools",\r\n  "version": "1"\r\n}\r\n',
        files={"skills/review/SKILL.md": SKILL.replace("\n", "\r\n")},
        skills=("review",),
    ),
    "a bundle inside the bundle": Shape(
        files={"vendor/other/.claude-plugin/plugin.json": '{"name": "other"}', "skills/review/SKILL.md": SKILL},
        skills=("review",),
    ),
    "a name with capitals": Shape(
        manifest={"name": "My Tools"}, status=FAILED, detail="plugin.json line 2: `name` has to be 1 to 64 of a-z 0-9 -"
    ),
    "no name": Shape(manifest={"version": "1"}, status=FAILED, detail="`name` has to be"),
    "JSON with a comment": Shape(
        raw=b'{\n  "name": "tools",\n  // a comment\n}', status=FAILED, detail="plugin.json line 3: it is not JSON"
    ),
    "a list": Shape(raw=b"[]", status=FAILED, detail="it has to be an object"),
    "nothing at all": Shape(raw=b"", status=FAILED, detail="plugin.json line 1: it is not JSON"),
    "Latin-1": Shape(raw=b'{\n"name": "\xe9"}', status=FAILED, detail="plugin.json line 2: it is not UTF-8"),
    "a key that is there twice": Shape(
        raw=b'{\n"name": "tools",\n"mcpServers": {},\n"mcpServers": {}}',
        status=FAILED,
        detail="plugin.json line 4: the key 'mcpServers' stands in it twice",
    ),
    "nested without end": Shape(raw=b'{"a":' * 100_000, status=FAILED, detail="it cannot be read"),
    "another apiVersion, and nothing else right": Shape(
        manifest={"apiVersion": "pizza-bot/v9", "name": 7, "skills": 3},
        status=INCOMPATIBLE,
        detail="plugin.json line 2: `apiVersion` 'pizza-bot/v9' is not known here",
    ),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_shape_loads_or_is_listed_with_the_reason(tmp_path, load, shape):
    folder = write_bundle(tmp_path / "plugins" / "the-folder", shape.manifest, shape.files)
    if shape.raw is not None:
        (folder / MANIFEST).write_bytes(shape.raw)
    write_bundle(tmp_path / "plugins" / "well", {"name": "well"}, {"skills/fine/SKILL.md": SKILL})

    found, beside = load()

    assert (found.status, found.root) == (shape.status, folder)
    assert shape.detail in found.detail if shape.detail else not found.detail
    assert tuple(sorted(skill.id for skill in found.skills)) == shape.skills
    assert tuple(sorted(server.id for server in found.servers)) == shape.servers
    assert all(skill.origin is Origin.PLUGIN and skill.plugin == "tools" for skill in found.skills)
    assert all(server.plugin == "tools" and server.root == folder for server in found.servers)
    assert (beside.status, [skill.id for skill in beside.skills]) == (LOADED, ["fine"])


def test_what_a_manifest_tells_is_told(tmp_path, load):
    write_bundle(tmp_path / "plugins" / "tools", SHAPES["everything there is to tell"].manifest)
    [bundle] = load()
    assert bundle.about == {
        "version": "1.2.3-beta", "displayName": "Tools", "description": "d", "license": "MIT", "author": "Somebody",
        "homepage": "https://example.org", "repository": "https://example.org/r", "keywords": ["a", "b"],
    }  # fmt: skip
    assert bundle.api_version == "pizza-bot/v1"


def test_a_report_has_the_manifests_name_where_it_is_one_and_the_folders_otherwise(tmp_path, load):
    write_bundle(tmp_path / "plugins" / "a", {"name": "tools", "apiVersion": "x"})
    write_bundle(tmp_path / "plugins" / "b", {"name": "../tools", "apiVersion": "x"})
    write_bundle(tmp_path / "plugins" / "c", {"name": "tools", "version": ""})
    (tmp_path / "plugins" / "d" / ".claude-plugin").mkdir(parents=True)
    (tmp_path / "plugins" / "d" / MANIFEST).write_text("{")
    assert [(bundle.name, bundle.api_version) for bundle in load()] == [
        ("tools", "x"), ("b", "x"), ("tools", "pizza-bot/v1"), ("d", "unknown"),
    ]  # fmt: skip


def test_folders_without_a_manifest_hidden_ones_and_missing_places_are_passed_over(tmp_path, load):
    (tmp_path / "plugins" / "empty").mkdir(parents=True)
    (tmp_path / "plugins" / "file").write_text("")
    write_bundle(tmp_path / "plugins" / ".new-1", {"name": "half"})
    marketplace = tmp_path / "plugins" / "market" / ".claude-plugin" / "marketplace.json"
    marketplace.parent.mkdir(parents=True)
    marketplace.write_text("{}")
    assert load() == []
    assert load(tmp_path / "gone") == []


def test_a_place_that_cannot_be_read_is_told(tmp_path, load):
    (tmp_path / "plugins").write_text("a file")
    [told] = load()
    assert (told.status, "cannot be read" in told.detail) == (FAILED, True)
