"""The arrangements that the conversation tests run on: the default bundle, and each example in its place.

Every test of this folder is the same for each of them, and knows of none.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from servers import Server, running_server
from talking import conversation

EXAMPLES = Path(__file__).parents[2] / "examples"
ARRANGEMENTS = {
    "default": "",
    "audit": "",
    "replay": '[runtime]\nuse = "replay"\n',
    "lines": '[transports]\nuse = ["lines"]\n',
}
EXAMPLE_OF = {"audit": "storage-audit", "replay": "runtime-replay", "lines": "transport-lines"}


@pytest.fixture(scope="session")
def python_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The interpreter of an environment in which one example is installed by pip, on top of this one's packages."""
    made: dict[str, str] = {}

    def interpreter(example: str) -> str:
        if example not in made:
            folder = tmp_path_factory.mktemp(example)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
            python = folder / "bin" / "python"
            packages = next((folder / "lib").glob("python*/site-packages"))
            (packages / "host.pth").write_text(
                "\n".join(f"import site; site.addsitedir({path!r})" for path in _sites())
            )
            subprocess.run(
                [
                    sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps",
                    "--no-build-isolation", "--target", str(packages), str(EXAMPLES / example),
                ],
                check=True,
            )  # fmt: skip
            made[example] = str(python)
        return made[example]

    return interpreter


def _sites() -> list[str]:
    import site

    return [path for path in site.getsitepackages() if Path(path).is_dir()]


@pytest.fixture(params=list(ARRANGEMENTS))
def server(request: pytest.FixtureRequest, tmp_path: Path, python_with: Callable[[str], str]) -> Any:
    example = EXAMPLE_OF.get(request.param)
    python = sys.executable if example is None else python_with(example)
    with running_server(tmp_path / "server", python=python, config=ARRANGEMENTS[request.param]) as started:
        yield started


Scene = Callable[..., Coroutine[Any, Any, Any]]


@pytest.fixture
def play(server: Server) -> Callable[[Scene], Any]:
    """Run a scene with a conversation over the server's transport; again after a restart, with a new one."""

    def played(scene: Scene) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(60), conversation(server.addresses) as talk:
                return await scene(talk)

        return asyncio.run(bounded())

    return played
