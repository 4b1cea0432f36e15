"""The subprocess materializer keeps the contract; each faulty one here has one fault, and the check for it fails."""

import asyncio
import itertools

import pytest

from pizzabot.testing.bundle_files import bundle_files
from pizzabot.testing.materializer_contract import MaterializerContract
from pizzabot_builtin_plugins.subprocess_materializer.materializer import SubprocessMaterializer
from pizzabot_builtin_plugins.subprocess_materializer.settings import SubprocessSettings

SKILL = "---\ndescription: {}\n---\nb\n"
SCRIPT = """
import json, os, pathlib, sys
out = pathlib.Path(os.environ["PIZZABOT_MATERIALIZER_OUTPUT_DIR"])
(out / ".claude-plugin").mkdir()
(out / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": os.environ["PIZZA_MATERIALIZER_PLUGIN_NAME"]}))
for source in map(pathlib.Path, sys.argv[1:]):
    for note in sorted(source.iterdir()):
        (out / "skills" / note.stem).mkdir(parents=True)
        (out / "skills" / note.stem / "SKILL.md").write_text(f"---\\ndescription: {note.read_text()}\\n---\\nb\\n")
"""


class SilentLog:
    def __getattr__(self, _name):
        return lambda *_args, **_facts: None


class Notes(MaterializerContract):
    def sources(self, folder):
        for name in ("olives", "capers"):
            (folder / f"{name}.txt").write_text(f"all about {name}")
        return [folder]


class TestSubprocess(Notes):
    entrypoint = "make.py"

    def root(self, folder):
        (folder / "make.py").write_text(SCRIPT)

    def materializer(self):
        return SubprocessMaterializer(SubprocessSettings(), SilentLog())


class Good:
    """Without a fault, in Python."""

    async def materialize(self, request, /):
        await asyncio.sleep(0)
        notes = [note for source in request.sources for note in sorted(source.iterdir())]
        skills = {f"skills/{note.stem}/SKILL.md": SKILL.format(note.read_text()) for note in notes}
        return bundle_files({"name": request.bundle}, skills)


class TestGood(Notes):
    def materializer(self):
        return Good()


class OtherName(Good):
    async def materialize(self, request, /):
        return {**await super().materialize(request), **bundle_files({"name": "other"})}


class NoSkill(Good):
    async def materialize(self, request, /):
        return bundle_files({"name": request.bundle})


class Unusable(Good):
    async def materialize(self, request, /):
        return {**await super().materialize(request), "skills/a/SKILL.md": b"no frontmatter"}


class Outside(Good):
    async def materialize(self, request, /):
        return {**await super().materialize(request), "../a": b""}


class Text(Good):
    async def materialize(self, request, /):
        return {path: content.decode() for path, content in (await super().materialize(request)).items()}


class Fickle(Good):
    numbers = itertools.count()

    async def materialize(self, request, /):
        return {**await super().materialize(request), "stamp": str(next(self.numbers)).encode()}


class Eats(Good):
    async def materialize(self, request, /):
        made = await super().materialize(request)
        next(request.sources[0].iterdir()).write_text("eaten")
        return made


class Litters(Good):
    async def materialize(self, request, /):
        (request.root / "cache").write_text("")
        return await super().materialize(request)


class Shares(Good):
    """Runs at the same time write into one place."""

    def __init__(self):
        self.files = {}

    async def materialize(self, request, /):
        self.files[f"run-{len(self.files)}"] = b""
        await asyncio.sleep(0.01)
        made = {**await super().materialize(request), **self.files}
        self.files.clear()
        return made


class InstallOnly(Good):
    async def materialize(self, request, /):
        if request.reason != "install":
            raise ValueError("not now")
        return await super().materialize(request)


class Speechless(Good):
    async def materialize(self, request, /):
        if not request.sources[0].exists():
            raise LookupError
        return await super().materialize(request)


FAULTS = [
    (OtherName, "test_what_it_makes_is_a_bundle_that_the_host_takes"),
    (NoSkill, "test_what_it_makes_is_a_bundle_that_the_host_takes"),
    (Unusable, "test_what_it_makes_is_a_bundle_that_the_host_takes"),
    (Outside, "test_what_it_returns_are_bytes_under_relative_paths"),
    (Text, "test_what_it_returns_are_bytes_under_relative_paths"),
    (Fickle, "test_the_same_sources_make_the_same_bundle"),
    (Eats, "test_sources_and_the_bundles_own_folder_stay_as_they_are"),
    (Litters, "test_sources_and_the_bundles_own_folder_stay_as_they_are"),
    (Shares, "test_several_at_once_do_not_disturb_each_other"),
    (InstallOnly, "test_it_runs_for_every_reason"),
    (Speechless, "test_a_source_that_is_gone_is_an_error_with_a_reason_or_makes_a_bundle_without_it"),
]


@pytest.mark.parametrize(("faulty", "check"), FAULTS, ids=[faulty.__name__ for faulty, _ in FAULTS])
def test_a_fault_is_found(faulty, check):
    class Suite(Notes):
        def materializer(self):
            return faulty()

    with pytest.raises(Exception):  # noqa: B017 - whichever error the fault shows itself by
        getattr(Suite(), check)()


def test_one_that_does_not_hear_a_cancellation_is_found(monkeypatch):
    monkeypatch.setattr("pizzabot.testing.materializer_contract.CANCEL_SECONDS", 0.05)
    made = []

    class Suite(Notes):
        def materializer(self):
            made.append(Patient())
            return made[0]

    class Patient(Good):
        async def materialize(self, request, /):
            while not getattr(self, "over", False):
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    self.over = hasattr(self, "heard")
                    self.heard = True

    with pytest.raises(AssertionError, match="went on"):
        Suite().test_one_that_is_cancelled_ends_soon()
    assert made[0].heard
