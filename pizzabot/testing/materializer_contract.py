"""`MaterializerContract`: what every materializer keeps to, as tests to subclass.

    class TestNotes(MaterializerContract):
        def materializer(self) -> Notes:
            return Notes()

        def sources(self, folder: Path) -> list[Path]:
            (folder / "a.md").write_text("…")
            return [folder]

Each test makes its own materializer, sources and folders, enters the materializer if it is an async context manager,
and runs in a loop of its own. What it made is read by the host's own reader.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pizzabot.host.materializing import output
from pizzabot.host.materializing.snapshots import write_files
from pizzabot_hookspecs.bundles import Bundle
from pizzabot_hookspecs.materializers import Materializer, MaterializeReason, MaterializeRequest

RUN_SECONDS = 30.0
CANCEL_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Made:
    """One run: `returned` as it came, `files` all of the bundle, `bundle` as the host reads it."""

    returned: Mapping[str, bytes]
    files: Mapping[str, bytes]
    bundle: Bundle


class MaterializerContract:
    """Subclass it with a name that starts with `Test`.

    `bundle` is the name that a generated bundle has to have, `entrypoint` what the manifest would name.
    """

    bundle: ClassVar[str] = "contract"
    entrypoint: ClassVar[str] = ""

    def materializer(self) -> Materializer:
        """One that works. It may be an async context manager."""
        raise TypeError(f"{type(self).__name__} has to define materializer(self)")

    def sources(self, folder: Path) -> Sequence[Path]:  # noqa: ARG002 - a subclass's
        """Make good sources in the empty folder, and return what is handed to it."""
        raise TypeError(f"{type(self).__name__} has to define sources(self, folder)")

    def root(self, folder: Path) -> None:
        """Fill the empty folder that is the bundle which asks; nothing is needed where it is not looked at."""

    def test_what_it_makes_is_a_bundle_that_the_host_takes(self) -> None:
        async def check(run: Run) -> None:
            made = await run.made()
            output.check_bundle(made.bundle, self.bundle)
            assert made.bundle.skills or made.bundle.servers, "it made a bundle with neither skills nor servers"

        self._run(check)

    def test_what_it_returns_are_bytes_under_relative_paths(self) -> None:
        async def check(run: Run) -> None:
            returned = await run.materialize()
            assert isinstance(returned, Mapping), f"materialize returned {type(returned).__name__}, not a mapping"
            for path, content in returned.items():
                assert isinstance(path, str) and path and not path.startswith("/"), f"{path!r} is no relative path"
                assert not {"", ".", ".."} & set(path.split("/")), f"{path!r} is no path inside a bundle"
                assert isinstance(content, bytes), f"{path} is {type(content).__name__}, not bytes"

        self._run(check)

    def test_the_same_sources_make_the_same_bundle(self) -> None:
        async def check(run: Run) -> None:
            first, second = (await run.made()).files, (await run.made()).files
            other = sorted(path for path in first.keys() | second.keys() if first.get(path) != second.get(path))
            assert not other, f"a second run of the same sources made other files: {', '.join(other[:5])}"

        self._run(check)

    def test_it_runs_for_every_reason(self) -> None:
        async def check(run: Run) -> None:
            for reason in MaterializeReason:
                output.check_bundle((await run.made(reason=reason)).bundle, self.bundle)

        self._run(check)

    def test_sources_and_the_bundles_own_folder_stay_as_they_are(self) -> None:
        async def check(run: Run) -> None:
            before = _contents(run.folder)
            await run.made()
            changed = sorted(set(before.items()) ^ set(_contents(run.folder).items()))
            assert not changed, f"a run changed {changed[0][0]}, which is a source or the bundle that asks"

        self._run(check)

    def test_several_at_once_do_not_disturb_each_other(self) -> None:
        async def check(run: Run) -> None:
            alone = (await run.made()).files
            for made in await asyncio.gather(*(run.made() for _ in range(3))):
                assert made.files == alone, "runs at the same time made other files than one alone"

        self._run(check)

    def test_one_that_is_cancelled_ends_soon(self) -> None:
        async def check(run: Run) -> None:
            task = asyncio.create_task(run.materialize())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_SECONDS)
            assert task.done(), f"it went on for {CANCEL_SECONDS:g} s after it was cancelled"

        self._run(check)

    def test_a_source_that_is_gone_is_an_error_with_a_reason_or_makes_a_bundle_without_it(self) -> None:
        async def check(run: Run) -> None:
            try:
                made = await run.made(sources=[run.folder / "gone"])
            except Exception as error:  # noqa: BLE001 - whichever it is, a person reads its text
                assert str(error).strip(), f"{type(error).__name__} has no text: it has to name the source"
            else:
                output.check_bundle(made.bundle, self.bundle)

        self._run(check)

    def _run(self, check: Callable[[Run], Awaitable[None]]) -> None:
        async def main() -> None:
            async with AsyncExitStack() as stack:
                materializer: Any = self.materializer()
                if hasattr(materializer, "__aenter__"):
                    materializer = await stack.enter_async_context(materializer)
                with _folders(self) as (folder, sources):
                    await check(Run(self, materializer, folder, sources))

        asyncio.run(main())


class Run:
    """A materializer with its sources and the folder of the bundle that asks, both below `folder`."""

    def __init__(
        self, contract: MaterializerContract, materializer: Materializer, folder: Path, sources: Sequence[Path]
    ) -> None:
        self.folder = folder
        self._contract = contract
        self._materializer = materializer
        self._sources = sources

    async def materialize(
        self,
        into: Path | None = None,
        *,
        reason: MaterializeReason = MaterializeReason.MANUAL,
        sources: Sequence[Path] | None = None,
    ) -> Mapping[str, bytes]:
        with tempfile.TemporaryDirectory(prefix="pizzabot-") as other:
            request = MaterializeRequest(
                sources=self._sources if sources is None else sources,
                reason=reason.value,
                bundle=self._contract.bundle,
                root=self.folder / "root",
                output=into or Path(other),
                entrypoint=self._contract.entrypoint,
                seconds=RUN_SECONDS,
            )
            async with asyncio.timeout(RUN_SECONDS):
                return await self._materializer.materialize(request)

    async def made(
        self, *, reason: MaterializeReason = MaterializeReason.MANUAL, sources: Sequence[Path] | None = None
    ) -> Made:
        """One whole run, as the host does it."""
        from pizzabot import __version__
        from pizzabot_builtin_plugins.bundles.source import Loaded

        with tempfile.TemporaryDirectory(prefix="pizzabot-") as name:
            into = Path(name)
            returned = await self.materialize(into, reason=reason, sources=sources)
            write_files(into, returned)
            output.settle(into)
            bundle = await Loaded().read(into, __version__)
            return Made(returned=returned, files=_contents(into), bundle=bundle)


@contextmanager
def _folders(contract: MaterializerContract) -> Iterator[tuple[Path, Sequence[Path]]]:
    with tempfile.TemporaryDirectory(prefix="pizzabot-") as name:
        folder = Path(name)
        for inner in ("root", "sources"):
            (folder / inner).mkdir()
        contract.root(folder / "root")
        yield folder, list(contract.sources(folder / "sources"))


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
