"""Whatever stands in plugin.json, `.mcp.json` or an archive: no crash, nothing outside, nothing that is not told."""

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.host.bundles.archives import files_of_archive
from pizzabot.host.bundles.installing import InstallFolder
from pizzabot.testing.bundle_files import write_bundle, zip_of
from pizzabot_builtin_plugins.bundles.reading import Reader
from pizzabot_builtin_plugins.bundles.skills import SkillFolders
from pizzabot_hookspecs import PizzabotError
from pizzabot_hookspecs.bundles import MANIFEST, BundleStatus

SKILL = "---\ndescription: d\n---\nb\n"
KEYS = st.sampled_from(
    ["name", "version", "skills", "mcpServers", "engines", "capabilities", "extensions", "enabled", "apiVersion",
     "author", "keywords", "commands", "required", "pizzaBot", "dev.pizzabot.materializer", "entrypoint", "cwd"]
) | st.text(max_size=8)  # fmt: skip
PATHS = st.sampled_from(["./skills", "..", "../..", "/", "/etc", "./", "a", "${PLUGIN_ROOT}/../x", "skills/a", "~", ""])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | PATHS
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5))
SEGMENT = st.sampled_from(
    ["a", "..", ".", "", "skills", ".claude-plugin", "plugin.json", "SKILL.md", "a\\b", "C:", "ä"]
)
MEMBER = (
    st.lists(SEGMENT, min_size=1, max_size=4).map("/".join).filter(bool) | st.just(MANIFEST) | st.just(f"x/{MANIFEST}")
)


def read(folder):
    return Reader(host_version="1.0.0", folders=SkillFolders(), generated={}).read(folder)


def check(folder, bundle):
    assert bundle.status is BundleStatus.LOADED or bundle.detail
    assert bundle.status is BundleStatus.LOADED or not (bundle.skills or bundle.servers)
    assert len(bundle.detail) < 1_000
    json.dumps(dict(bundle.about), ensure_ascii=False).encode()
    for server in bundle.servers:
        assert Path(os.path.realpath(server.root)).is_relative_to(folder)


@settings(max_examples=150, deadline=None)
@given(JSON, JSON)
def test_any_manifest_and_any_file_of_servers_are_read_or_reported(manifest, servers):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name)) / "one"
        write_bundle(folder, {}, {"skills/a/SKILL.md": SKILL})
        told = {"name": "one", **manifest} if isinstance(manifest, dict) else manifest
        (folder / MANIFEST).write_bytes(json.dumps(told).encode())
        (folder / ".mcp.json").write_bytes(json.dumps(servers).encode())
        check(folder, read(folder))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=60))
def test_any_bytes_are_reported(raw, tail):
    with tempfile.TemporaryDirectory() as name:
        folder = write_bundle(Path(os.path.realpath(name)) / "one", {})
        for content in (raw, b'{"name": "one"' + tail, b'{"name": "one", "skills": ' + tail + b"}"):
            (folder / MANIFEST).write_bytes(content)
            check(folder, read(folder))


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(MEMBER, st.binary(max_size=20), max_size=6), st.binary(max_size=40))
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_any_archive_is_installed_inside_its_folder_or_refused(members, noise):
    with tempfile.TemporaryDirectory() as name:
        plugins = InstallFolder(Path(name) / "data" / "plugins")
        plugins.prepare()
        for archive in (zip_of(members), zip_of({MANIFEST: b'{"name": "one"}', **members}) + noise, noise):
            try:
                files = files_of_archive(archive)
                staged = plugins.stage(files)
            except PizzabotError:
                continue
            written = {str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file()}
            assert written == set(files)
            plugins.erase(staged)
        assert [str(path.relative_to(name)) for path in Path(name).rglob("*")] == ["data", "data/plugins"]
