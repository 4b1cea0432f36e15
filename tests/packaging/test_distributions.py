"""What is built holds exactly the right files, under the right names, whichever way it is built."""

from __future__ import annotations

import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from environments import EXAMPLES, REPOSITORY

from pizzabot import __version__

PACKAGES = {
    "pizzabot": REPOSITORY / "pizzabot",
    "pizzabot_hookspecs": REPOSITORY / "hookspecs" / "pizzabot_hookspecs",
    "pizzabot_builtin_plugins": REPOSITORY / "builtin_plugins" / "pizzabot_builtin_plugins",
    "pizzabot/skills": REPOSITORY / "skills",
}
IN_SDIST = ("pizzabot", "hookspecs", "builtin_plugins", "skills", "examples", "tests", "docs", "bench", "changes")
BESIDE = {
    ".ci/run", "README.md", "CONTRIBUTING.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", ".gitignore", "PKG-INFO",
}  # fmt: skip
INFO = f"pizzabot_host-{__version__}.dist-info"


def files_in(folder: Path) -> set[str]:
    """Every file below the folder that somebody wrote."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if not any(_is_made(part) for part in path.parts)}


MADE = ("results", "node_modules")
OF_BUNDLES = (".claude-plugin", ".mcp.json")
"""Names of the format that begin with a dot, and are written by people."""


def _is_made(part: str) -> bool:
    hidden = part.startswith(".") and part not in OF_BUNDLES
    return part == "__pycache__" or hidden or part.endswith(".pyc") or part in MADE


def in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names)), "a file is in it twice"
    return {name for name in names if not name.endswith("/")}


def metadata_of(wheel: Path) -> dict[str, list[str]]:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        headers = HeaderParser().parsestr(archive.read(name).decode())
    return {name: headers.get_all(name, []) for name in headers}


def test_the_wheel_holds_the_three_packages_the_skills_and_nothing_else(built):
    expected = {f"{package}/{name}" for package, folder in PACKAGES.items() for name in files_in(folder)}
    info = {f"{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    assert in_wheel(built.wheel) == expected | info


def test_the_wheel_takes_three_names_in_site_packages_and_each_is_typed(built):
    names = in_wheel(built.wheel)
    packages = {"pizzabot", "pizzabot_hookspecs", "pizzabot_builtin_plugins"}
    assert {name.split("/")[0] for name in names} == packages | {INFO}
    assert {name for name in names if name.endswith("py.typed")} == {f"{package}/py.typed" for package in packages}


def test_a_wheel_from_the_sdist_is_the_same_as_one_from_the_checkout(built):
    def contents(wheel: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(wheel) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    assert contents(built.wheel_from_sdist) == contents(built.wheel)


def test_the_sdist_holds_everything_that_somebody_wrote_and_nothing_that_was_made(built):
    top = f"pizzabot_host-{__version__}/"
    with tarfile.open(built.sdist) as archive:
        names = {member.name.removeprefix(top) for member in archive.getmembers() if member.isfile()}
    written = {f"{folder}/{name}" for folder in IN_SDIST for name in files_in(REPOSITORY / folder)}
    assert names == written | BESIDE


def test_the_distribution_is_pizzabot_host_in_the_version_of_the_package(built):
    metadata = metadata_of(built.wheel)
    assert (metadata["Name"], metadata["Version"]) == (["pizzabot-host"], [__version__])
    assert built.wheel.name == f"pizzabot_host-{__version__}-py3-none-any.whl"
    assert built.sdist.name == f"pizzabot_host-{__version__}.tar.gz"
    assert {"all", "dev", "local", "ollama", "openai"} <= set(metadata["Provides-Extra"])


def test_nothing_requires_the_other_distribution_that_is_called_pizzabot(built):
    for requirement in metadata_of(built.wheel)["Requires-Dist"]:
        assert not requirement.startswith("pizzabot") or requirement.startswith("pizzabot-host["), requirement


def test_the_command_is_pizzabot_and_the_fixtures_are_found_by_pytest(built):
    with zipfile.ZipFile(built.wheel) as archive:
        entry_points = archive.read(f"{INFO}/entry_points.txt").decode()
    assert "[console_scripts]\npizzabot = pizzabot.cli:main\n" in entry_points
    assert "[pytest11]\npizzabot = pizzabot.testing.pytest_plugin\n" in entry_points
    # Built-ins come from a table: stale metadata of an editable install must not disable the product.
    assert "[pizzabot]" not in entry_points


@pytest.mark.parametrize(("folder", "package"), EXAMPLES.items())
def test_an_example_installs_its_package_and_nothing_else(folder, package, with_examples):
    source = REPOSITORY / "examples" / folder
    assert files_in(source / package) == {
        path.relative_to(with_examples.packages / package).as_posix()
        for path in (with_examples.packages / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    for generic in ("tests", "making.py", "serving.py", "README.md"):
        assert not (with_examples.packages / generic).exists()
