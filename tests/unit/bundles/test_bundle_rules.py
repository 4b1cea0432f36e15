"""Rules of spec/04 §6: who may load what, paths that lead out, placeholders, and which of two that collide stays."""

import asyncio
import json
import os

import pytest

from pizzabot.testing.bundle_files import write_bundle
from pizzabot_builtin_plugins.bundles.engines import MAX_RANGE, engine_fault
from pizzabot_builtin_plugins.bundles.json_files import MAX_JSON_BYTES
from pizzabot_builtin_plugins.bundles.loading import MAX_BUNDLES
from pizzabot_builtin_plugins.bundles.manifest import MAX_NAME, MAX_PATHS
from pizzabot_builtin_plugins.bundles.materializer_entry import MAX_SOURCE_ROOTS, MAX_TIMEOUT_MS
from pizzabot_builtin_plugins.bundles.servers import MAX_SERVERS
from pizzabot_builtin_plugins.bundles.skills import MAX_SKILL_FILE_BYTES, MAX_SKILLS
from pizzabot_builtin_plugins.bundles.source import Loaded
from pizzabot_hookspecs.bundles import BundleStatus, MaterializerEntry
from pizzabot_hookspecs.materializers import MaterializeReason

SKILL = "---\ndescription: d\n---\nb\n"
LOADED, FAILED, INCOMPATIBLE, DISABLED = (
    BundleStatus.LOADED, BundleStatus.FAILED, BundleStatus.INCOMPATIBLE, BundleStatus.DISABLED,
)  # fmt: skip


@pytest.fixture
def one(tmp_path, load):
    """The bundle of a manifest and files."""

    def read(manifest, files=None, **more):
        write_bundle(tmp_path / "plugins" / "one", {"name": "one", **manifest}, files or {})
        [bundle] = load(**more)
        return bundle

    return read


@pytest.mark.parametrize(
    ("written", "version", "fits"),
    [
        ("^1.2.0", "1.3.0", True), ("^1.2.0", "2.0.0", False), ("1.x", "1.9.9", True), (">=0.1 <2", "0.1.0.dev3", True),
        (">=1.2.0", "1.2.0rc1", True), ("*", "0.0.1", True), ("", "3.0", True), ("~1.2.3 || 3", "3.1.0", True),
        ("latest", "1.2.0", False), (">= banana", "1.2.0", False), ("1" * (MAX_RANGE + 1), "1.2.0", False),
    ],
)  # fmt: skip
def test_a_range_of_versions_is_npms(written, version, fits):
    assert (engine_fault(written, version) is None) is fits


def test_a_bundle_for_other_hosts_is_incompatible_and_contributes_nothing(one):
    files = {"skills/a/SKILL.md": SKILL}
    other = one({"engines": {"pizzaBot": ">=2"}}, files)
    assert (other.status, other.skills, other.about["engine"]) == (INCOMPATIBLE, (), ">=2")
    assert other.detail == "plugin.json line 4: `engines.pizzaBot`: it is for pizzabot >=2, and this is 1.2.0".replace(
        "plugin.json", ".claude-plugin/plugin.json"
    )
    assert one({"engines": {"pizzaBot": 2}}, files).status is INCOMPATIBLE
    assert one({"engines": {"node": ">=20"}}, files).status is LOADED


def test_required_capabilities_gate_and_optional_ones_never_do(one):
    known = {"required": ["skills/v1", "mcp-servers/v1", "materializer/v1"], "optional": ["telepathy/v3"]}
    bundle = one({"capabilities": known})
    assert (bundle.status, bundle.about["capabilities"]) == (LOADED, known)
    missing = one({"capabilities": {"required": ["skills/v1", "telepathy/v3"]}})
    assert (missing.status, "it needs telepathy/v3" in missing.detail) == (INCOMPATIBLE, True)
    for wrong in ("skills", "skills/v0", "Skills/v1", 3):
        assert one({"capabilities": {"optional": [wrong]}}).status is FAILED


def test_a_disabled_bundle_contributes_nothing(one):
    bundle = one({"enabled": False}, {"skills/a/SKILL.md": SKILL})
    assert (bundle.status, bundle.skills) == (DISABLED, ())
    assert one({"enabled": "no"}).status is FAILED


def test_a_materializer_is_read_with_its_defaults_and_bounds(one):
    def entry(**values):
        return one({"extensions": {"dev.pizzabot.materializer": values}})

    assert entry(entrypoint="m.py").materializer == MaterializerEntry(entrypoint="m.py")
    full = entry(entrypoint="m.py", sourceRoots=["~/a"], sync=["manual"], timeoutMs=MAX_TIMEOUT_MS, use="acme")
    assert full.materializer == MaterializerEntry(
        entrypoint="m.py",
        use="acme",
        sources=("~/a",),
        sync=frozenset({MaterializeReason.MANUAL}),
        timeout_ms=MAX_TIMEOUT_MS,
    )
    for wrong in (
        {}, {"entrypoint": ""}, {"entrypoint": "m", "sync": []}, {"entrypoint": "m", "sync": ["daily"]},
        {"entrypoint": "m", "timeoutMs": 0}, {"entrypoint": "m", "timeoutMs": MAX_TIMEOUT_MS + 1},
        {"entrypoint": "m", "timeoutMs": True}, {"entrypoint": "m", "sourceRoots": "a"},
        {"entrypoint": "m", "sourceRoots": ["a"] * (MAX_SOURCE_ROOTS + 1)},
    ):  # fmt: skip
        assert entry(**wrong).status is FAILED, wrong


@pytest.mark.parametrize(
    "path", ["../outside", "/etc", "${PLUGIN_ROOT}/../outside", "link", "deep/../../outside", "\0"]
)
def test_a_path_that_leads_out_fails_the_bundle_whole(tmp_path, one, path):
    write_bundle(tmp_path / "plugins" / "one", {"name": "one"}, {"deep/a.md": SKILL})
    (tmp_path / "plugins" / "outside").mkdir()
    (tmp_path / "plugins" / "outside" / "a.md").write_text(SKILL)
    (tmp_path / "plugins" / "one" / "link").symlink_to(tmp_path / "plugins" / "outside")
    bundle = one({"skills": ["./deep", path]}, {"skills/fine/SKILL.md": SKILL})
    assert (bundle.status, bundle.skills) == (FAILED, ())
    assert ".claude-plugin/plugin.json line" in bundle.detail


def test_a_link_out_of_the_bundle_is_no_manifest_no_servers_and_no_skills(tmp_path, load):
    outside = tmp_path / "outside"
    write_bundle(outside, {"name": "one"}, {".mcp.json": "{}", "skills/a/SKILL.md": SKILL})
    for number, name in enumerate([".mcp.json", "skills", ".claude-plugin"]):
        folder = write_bundle(tmp_path / "plugins" / str(number), {"name": f"b{number}"})
        if name == ".claude-plugin":
            (folder / ".claude-plugin" / "plugin.json").unlink()
            (folder / ".claude-plugin").rmdir()
        (folder / name).symlink_to(outside / name)
    for bundle in load():
        assert (bundle.status, "link" in bundle.detail, bundle.skills) == (FAILED, True, ())


def test_a_link_inside_a_skill_is_not_followed(tmp_path, load):
    (tmp_path / "secret").write_text("secret")
    folder = write_bundle(tmp_path / "plugins" / "one", {"name": "one"}, {"skills/a/SKILL.md": SKILL})
    (folder / "skills" / "a" / "b.md").symlink_to(tmp_path / "secret")
    [bundle] = load()
    assert "link" in bundle.skills[0].fault


def test_a_folder_of_bundles_behind_a_link_and_an_absolute_path_inside_are_fine(tmp_path, load):
    real = write_bundle(tmp_path / "real" / "one", {"name": "one"}, {"more/a/SKILL.md": SKILL})
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    write_bundle(real, {"name": "one", "skills": str(tmp_path / "linked" / "one" / "more")})
    [bundle] = load(tmp_path / "linked")
    assert ([skill.id for skill in bundle.skills], bundle.root) == (["a"], real)


def test_root_placeholders_are_filled_in_everywhere_and_names_stay_references(tmp_path, one):
    entry = {
        "command": "${CLAUDE_PLUGIN_ROOT}/bin/run",
        "args": ["--root=${PLUGIN_ROOT}", "${TOKEN}"],
        "env": {"A": "x${PLUGIN_ROOT}y", "T": "${TOKEN}"},
        "cwd": "${PLUGIN_ROOT}/data",
    }
    bundle = one({"mcpServers": {"db": entry}}, {"data/a": ""})
    root = str(tmp_path / "plugins" / "one")
    assert bundle.servers[0].entry == {
        "command": f"{root}/bin/run",
        "args": [f"--root={root}", "${TOKEN}"],
        "env": {"A": f"x{root}y", "T": "${TOKEN}"},
        "cwd": f"{root}/data",
    }


@pytest.mark.parametrize("cwd", ["..", "/", "file", "gone"])
def test_a_servers_cwd_is_a_folder_of_the_bundle(one, cwd):
    bundle = one({"mcpServers": {"db": {"command": "x", "cwd": cwd}}}, {"file": ""})
    assert (bundle.status, bundle.servers) == (FAILED, ())


def test_a_server_that_is_no_object_fails_the_bundle_with_its_line(one):
    bundle = one({}, {".mcp.json": '{"mcpServers": {\n"fine": {"command": "x"},\n"db": "npx"}}'})
    assert (bundle.status, bundle.servers) == (FAILED, ())
    assert bundle.detail == ".mcp.json line 3: the MCP server 'db' has to be an object"


def test_two_skills_or_servers_of_one_id_in_a_bundle_fail_it(one):
    bundle = one({"skills": ["./x/a", "./y/a"]}, {"x/a/SKILL.md": SKILL, "y/a/SKILL.md": SKILL})
    assert (bundle.status, "'a'" in bundle.detail) == (FAILED, True)
    servers = {"db": {"command": "x"}}
    files = {"x/a/SKILL.md": SKILL, ".mcp.json": json.dumps({"db": {"command": "y"}})}
    assert one({"skills": [], "mcpServers": servers}, files).status is FAILED


def test_of_two_bundles_that_collide_the_first_one_stays_and_the_other_adds_nothing(tmp_path, load):
    plugins = tmp_path / "plugins"
    write_bundle(plugins / "a", {"name": "a"}, {"skills/x/SKILL.md": SKILL, ".mcp.json": '{"db": {"command": "a"}}'})
    write_bundle(plugins / "b", {"name": "b"}, {"skills/x/SKILL.md": SKILL, "skills/y/SKILL.md": SKILL})
    write_bundle(plugins / "c", {"name": "c"}, {"skills/z/SKILL.md": SKILL, ".mcp.json": '{"db": {"command": "c"}}'})
    write_bundle(plugins / "d", {"name": "a"}, {"skills/w/SKILL.md": SKILL})
    write_bundle(plugins / "e", {"name": "e"}, {"skills/y/SKILL.md": SKILL})
    told = {bundle.root.name: bundle for bundle in load()}
    assert [name for name, bundle in told.items() if bundle.status is LOADED] == ["a", "e"]
    assert all(not (bundle.skills or bundle.servers) for bundle in told.values() if bundle.status is FAILED)
    assert "skill 'x'" in told["b"].detail
    assert "MCP server 'db'" in told["c"].detail
    assert "plugin 'a'" in told["d"].detail


def test_places_win_in_their_order(tmp_path, load):
    for place in ("first", "second"):
        write_bundle(tmp_path / place / "x", {"name": "x"})
    assert [bundle.status for bundle in load(tmp_path / "first", tmp_path / "second")] == [LOADED, FAILED]
    assert [bundle.root.parent.name for bundle in load(tmp_path / "second", tmp_path / "first")] == ["second", "first"]


def test_what_a_materializer_made_is_read_in_the_bundles_place(tmp_path, one):
    manifest = {"extensions": {"dev.pizzabot.materializer": {"entrypoint": "m.py"}}}
    made = write_bundle(tmp_path / "made", {"name": "one"}, {"skills/a/SKILL.md": SKILL, ".mcp.json": '{"db": {}}'})
    nothing = one(manifest, {"skills/own/SKILL.md": SKILL})
    assert (nothing.status, nothing.skills) == (LOADED, ())
    bundle = one(manifest, generated={"one": made})
    assert ([skill.id for skill in bundle.skills], bundle.servers[0].root) == (["a"], made)
    assert bundle.root == tmp_path / "plugins" / "one"
    write_bundle(made, {"name": "other"})
    assert one(manifest, generated={"one": made}).status is FAILED
    write_bundle(made, {"name": "one", **manifest})
    assert one(manifest, generated={"one": made}).status is FAILED


def test_lengths_and_numbers_are_bounded(tmp_path, one, load):
    assert one({"name": "a" * (MAX_NAME + 1)}).status is FAILED
    assert one({"skills": ["./a"] * (MAX_PATHS + 1)}).status is FAILED
    assert one({"description": "x" * MAX_JSON_BYTES}).status is FAILED
    assert one({"skills": "a.md"}, {"a.md": "x" * (MAX_SKILL_FILE_BYTES + 1)}).status is FAILED
    assert one({"mcpServers": {f"s{number}": {} for number in range(MAX_SERVERS + 1)}}).status is FAILED
    assert one({"skills": "many"}, {f"many/s{number}.md": SKILL for number in range(MAX_SKILLS + 1)}).status is FAILED
    nested = {"command": "x"}
    for _ in range(40):
        nested = {"a": nested}
    assert one({"mcpServers": {"db": nested}}).status is FAILED
    for number in range(MAX_BUNDLES + 1):
        write_bundle(tmp_path / "many" / f"b{number:04}", {"name": f"b{number}"})
    told = load(tmp_path / "many")
    assert (len(told), told[-1].status) == (MAX_BUNDLES + 1, FAILED)


def test_what_cannot_be_opened_is_told(tmp_path, load):
    folder = write_bundle(tmp_path / "plugins" / "one", {"name": "one"})
    (folder / ".mcp.json").mkdir()
    os.mkfifo(folder / "pipe.md")
    [bundle] = load()
    assert (bundle.status, ".mcp.json" in bundle.detail) == (FAILED, True)
    (folder / ".mcp.json").rmdir()
    write_bundle(folder, {"name": "one", "skills": "pipe.md"})
    [bundle] = load()
    assert (bundle.status, bundle.detail) == (FAILED, "pipe.md: it is no file")


def test_a_folder_is_read_by_itself_without_being_registered(tmp_path):
    folder = write_bundle(tmp_path / "one", {"name": "one"}, {"skills/a/SKILL.md": SKILL})

    async def main():
        loaded = Loaded()
        bundle = await loaded.read(folder, "1.0.0")
        assert ([skill.id for skill in bundle.skills], loaded.bundles) == (["a"], ())

    asyncio.run(main())
