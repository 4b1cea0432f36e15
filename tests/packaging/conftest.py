"""What the tests of packaging share, made once: the built distributions, and environments they are installed in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from environments import EXAMPLES, REPOSITORY, Environment, run


@dataclass(frozen=True)
class Built:
    sdist: Path
    wheel: Path
    wheel_from_sdist: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """`python -m build` makes an sdist and a wheel from it, with `--wheel` one from the checkout."""
    folder = tmp_path_factory.mktemp("built")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir")
    run(*build, folder / "sdist", REPOSITORY)
    run(*build, folder / "checkout", "--wheel", REPOSITORY)
    [sdist] = (folder / "sdist").glob("*.tar.gz")
    [wheel_from_sdist] = (folder / "sdist").glob("*.whl")
    [wheel] = (folder / "checkout").glob("*.whl")
    return Built(sdist=sdist, wheel=wheel, wheel_from_sdist=wheel_from_sdist)


@pytest.fixture(scope="session")
def plain(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel, and nothing of anybody else's."""
    environment = Environment.make(tmp_path_factory.mktemp("plain"))
    environment.install(built.wheel)
    return environment


@pytest.fixture(scope="session")
def with_examples(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel and every example, as the README of each says: `pip install ./examples/…`."""
    environment = Environment.make(tmp_path_factory.mktemp("examples"))
    environment.install(built.wheel, *(REPOSITORY / "examples" / name for name in EXAMPLES))
    return environment


@pytest.fixture(scope="session")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The checkout, installed with `pip install -e`."""
    environment = Environment.make(tmp_path_factory.mktemp("editable"))
    environment.install("--editable", REPOSITORY)
    return environment
