"""The author's kit: plugins without pip that an installer would have written the same, and what an import costs."""

from __future__ import annotations

import csv
import hashlib
import importlib
import sys
from base64 import urlsafe_b64decode
from importlib.metadata import distribution

import pytest

from pizzabot.kernel import Plugins
from pizzabot.testing.plugins import imported_by, install_plugin, plugin_folder

HEAVY = {
    "anthropic", "boto3", "deepagents", "google", "httpx", "keyring", "langchain", "langchain_core", "langgraph",
    "litestar", "mcp", "ollama", "openai", "pydantic", "rich", "sqlite3", "structlog", "uvicorn", "xllamacpp",
}  # fmt: skip


def test_an_installed_plugin_is_a_distribution_with_true_metadata(folder):
    install_plugin(
        folder, "acme_store", "X = 1", requires=["pizzabot-host>=0.1", "pluggy"], version="2.1", plugin_name="acme"
    )

    found = distribution("acme-store")
    assert (found.version, found.requires) == ("2.1", ["pizzabot-host>=0.1", "pluggy"])
    (entry,) = found.entry_points
    assert (entry.group, entry.name, entry.value) == ("pizzabot", "acme", "acme_store")
    assert entry.load().X == 1


def test_the_record_has_the_hash_and_size_of_each_file(folder):
    info = install_plugin(folder, "acme", "X = 1", files={"acme_data/notes.txt": "ä"})

    rows = {row[0]: row[1:] for row in csv.reader((info / "RECORD").read_text().splitlines())}
    assert rows.pop(f"{info.name}/RECORD") == ["", ""]
    assert {"acme.py", "acme_data/notes.txt"} < set(rows)
    for relative, (digest, size) in rows.items():
        content = (folder / relative).read_bytes()
        assert urlsafe_b64decode(digest.removeprefix("sha256=") + "=") == hashlib.sha256(content).digest()
        assert int(size) == len(content)


def test_the_folder_leaves_nothing_behind(tmp_path, offering):
    with plugin_folder(tmp_path / "site") as folder:
        install_plugin(folder, "acme", offering("acme"))
        assert Plugins(builtins={}).load().report()
        assert "acme" in sys.modules

    assert "acme" not in sys.modules
    assert str(folder) not in sys.path
    assert "acme" not in [report.name for report in Plugins(builtins={}).load().report()]


def test_a_second_version_of_a_module_is_not_taken_for_the_first(tmp_path):
    for number in (1, 2):
        with plugin_folder(tmp_path) as folder:
            install_plugin(folder, "acme", f"X = {number}")
            assert number == importlib.import_module("acme").X


def test_a_module_that_cannot_be_imported_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'acme-store' cannot be imported"):
        install_plugin(tmp_path, "acme-store", "")


def test_what_an_import_brings_in_is_listed_also_when_it_prints(folder):
    install_plugin(folder, "acme", "import colorsys; print('hello json')")

    brought = imported_by("acme")
    assert {"acme", "colorsys"} <= brought
    assert {"hello", "json"}.isdisjoint(brought)


def test_an_import_that_fails_says_why(folder):
    install_plugin(folder, "acme", "import no_such_driver")

    with pytest.raises(ImportError, match="No module named 'no_such_driver'"):
        imported_by("acme")


@pytest.mark.parametrize("module", ["pizzabot.kernel", "pizzabot.cli.plugins", "pizzabot.testing.plugins"])
def test_the_kernel_its_command_and_the_kit_are_light(module):
    brought = {name.partition(".")[0] for name in imported_by(module)}
    assert HEAVY.isdisjoint(brought)
