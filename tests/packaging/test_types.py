"""mypy and pyright see the types of all three packages from an editable install, in a folder that is somewhere else."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from environments import EXAMPLES, REPOSITORY, Environment, attempt, run

GOOD = '''"""A third party's plugin, typed against the contract."""

from __future__ import annotations

from typing import assert_type

from pizzabot.kernel import OfferRecord, Plugins
from pizzabot.testing.provider_contract import ModelProviderContract
from pizzabot_builtin_plugins.echo.provider import EchoProvider, EchoSettings
from pizzabot_hookspecs import Context, Offer, hookimpl
from pizzabot_hookspecs.host import Host
from pizzabot_hookspecs.model_providers import ModelProvider


def create(context: Context, settings: EchoSettings) -> EchoProvider:
    assert_type(context.name, str)
    assert_type(context.host, Host | None)
    assert_type(settings.pace, float)
    return EchoProvider(settings)


@hookimpl
def pizzabot_model_providers() -> list[Offer[ModelProvider]]:
    return [Offer(name="mine", summary="mine", create=create, settings=EchoSettings)]


def chosen() -> OfferRecord:
    return Plugins().load().choose("model_providers", "mine")


class TestMine(ModelProviderContract):
    model = "echo"
'''

BAD = '''"""Mistakes that a type checker finds only where it knows the types."""

from __future__ import annotations

from pizzabot.kernel import Plugins
from pizzabot_builtin_plugins.echo.provider import EchoProvider
from pizzabot_hookspecs import Offer
from pizzabot_hookspecs.model_providers import ModelProvider


class NoProvider:
    async def models(self) -> int:
        return 1


def offers() -> list[Offer[ModelProvider]]:
    return [Offer(name="mine", summary="mine", create=lambda context, settings: NoProvider())]  # mistake


count: int = Plugins().load().choose("model_providers", "mine")  # mistake
provider = EchoProvider("fast")  # mistake
'''

MISTAKES = {number for number, line in enumerate(BAD.splitlines(), start=1) if line.endswith("# mistake")}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    return tmp_path


def mypy(environment: Environment, folder: Path, *files: str | Path) -> tuple[int, str]:
    options = ("--strict", "--config-file=", "--cache-dir", folder / "cache", "--python-executable", environment.python)
    done = attempt(sys.executable, "-m", "mypy", *options, *files, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def lines_of(file: str, told: str) -> set[int]:
    """The numbers of the lines that a checker complains of."""
    return {int(number) for number in re.findall(rf"{file}:(\d+)[:\d]* -? ?error", told)}


def test_mypy_knows_the_contract_and_the_examples_keep_it(editable, elsewhere):
    packages = [REPOSITORY / "examples" / folder / package for folder, package in EXAMPLES.items()]
    code, told = mypy(editable, elsewhere, "good.py", "bad.py", *packages)
    assert code == 1
    assert lines_of("bad.py", told) == MISTAKES, told
    assert all(line.startswith("bad.py:") for line in told.splitlines() if "error:" in line), told


def test_pyright_knows_the_contract(editable, elsewhere):
    pyright = (sys.executable, "-m", "pyright", "--pythonpath", editable.python)
    done = attempt(*pyright, "good.py", "bad.py", cwd=elsewhere)
    assert lines_of("bad.py", done.stdout) == MISTAKES, done.stdout + done.stderr
    assert f"{len(MISTAKES)} errors, 0 warnings" in done.stdout


def test_an_editable_install_needs_no_build_hook_and_finds_the_folders_of_the_checkout(editable, tmp_path):
    [link] = [path for path in editable.packages.glob("*.pth") if path.name != "below.pth"]
    roots = {Path(line) for line in link.read_text().split()}
    assert roots == {REPOSITORY, REPOSITORY / "hookspecs", REPOSITORY / "builtin_plugins"}
    assert run(editable.python, "-P", "-m", "pizzabot", "--version", cwd=tmp_path).startswith("pizzabot ")


def test_the_examples_pass_the_houses_checks():
    examples = REPOSITORY / "examples"
    run(sys.executable, "-m", "ruff", "check", "--no-cache", examples, cwd=REPOSITORY)
    run(sys.executable, "-m", "ruff", "format", "--check", "--no-cache", examples, cwd=REPOSITORY)
