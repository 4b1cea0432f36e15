"""Granted folders on a real host with real storage: granting, taking back, browsing, and what the agent reads."""

import asyncio
import os
import resource
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pizzabot.host.folders import browsing, use_case
from pizzabot.host.folders.browsing import browse
from pizzabot.testing import host
from pizzabot_hookspecs import LOCAL, Caller, PizzabotError

OTHER = Caller(owner="other")


@asynccontextmanager
async def opened(tmp_path, *, use="memory", environ=None, **folders):
    """A host that lets folders be granted, and a place with two folders beside its data root."""
    place = tmp_path.resolve() / "place"
    for name in ("Docs/inner", "Notes"):
        (place / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "data").mkdir(exist_ok=True)
    told = {"configure": True, **folders}
    async with host(
        settings={"storage": {"use": use}, "folders": told}, data_root=tmp_path / "data", environ=environ
    ) as running:
        yield running, place


def on_host(tmp_path, test, **options):
    async def main():
        async with opened(tmp_path, **options) as (running, place):
            await test(running, place)

    asyncio.run(main())


async def refused(call, code):
    with pytest.raises(PizzabotError) as caught:
        await call
    assert caught.value.code == code, caught.value
    return caught.value


@pytest.mark.parametrize("use", ["memory", "sqlite"])
def test_a_granted_folder_is_there_until_it_is_taken_back(tmp_path, use):
    async def test(running, place):
        made = await running.folders.grant(str(place / "Docs"), caller=LOCAL)
        assert made == {
            "id": "docs", "label": "Docs", "path": str(place / "Docs"), "virtualPath": "/local/docs", "readOnly": True,
            "createdAt": made["createdAt"], "managedByFile": False,
        }  # fmt: skip
        assert made["createdAt"].endswith("+00:00")
        second = await running.folders.grant(str(place / "Notes"), read_only=False, caller=LOCAL)
        listing = await running.folders.listing(caller=LOCAL)
        assert listing == {"folders": [made, second], "configurable": True, "browseAvailable": False}
        assert (await running.folders.listing(caller=OTHER))["folders"] == []
        assert not await running.folders.revoke("docs", caller=OTHER)
        assert await running.folders.revoke("docs", caller=LOCAL)
        assert not await running.folders.revoke("docs", caller=LOCAL)
        assert (await running.folders.listing(caller=LOCAL))["folders"] == [second]

    on_host(tmp_path, test, use=use)


def test_a_grant_outlives_the_host(tmp_path):
    async def main():
        async with opened(tmp_path, use="sqlite") as (running, place):
            made = await running.folders.grant(str(place / "Docs"), caller=LOCAL)
        async with opened(tmp_path, use="sqlite") as (running, _):
            assert (await running.folders.listing(caller=LOCAL))["folders"] == [made]

    asyncio.run(main())


def test_what_cannot_be_granted_is_refused_with_its_reason(tmp_path, monkeypatch):
    async def test(running, place):
        grant = running.folders.grant
        (place / "file").touch()
        missing, file = str(place / "none"), str(place / "file")
        for path in ("", "  ", "Docs", "~/Docs", "/" + "x" * 5000, missing, file, "/a\0b", "/a\ud800"):
            await refused(grant(path, caller=LOCAL), "invalid_path")
        await grant(str(place / "Docs"), caller=LOCAL)
        (place / "link").symlink_to(place / "Docs")
        for same in (place / "Docs", place / "link", place / "Notes/../Docs"):
            await refused(grant(str(same), read_only=False, caller=LOCAL), "already_exists")
        await refused(grant(str(place / "Docs/inner"), caller=LOCAL), "overlapping_grant")
        await refused(grant(str(place), read_only=False, caller=LOCAL), "overlapping_grant")
        await refused(grant(str(place), caller=LOCAL), "overlapping_grant")
        inner = await grant(str(place / "Docs/inner"), read_only=False, caller=LOCAL)
        assert inner["id"] == "inner"
        for wrong in ("", "a/b", "..", "a b", "x" * 65):
            await refused(running.folders.revoke(wrong, caller=LOCAL), "invalid_id")
        monkeypatch.setattr(use_case, "MAX_GRANTS", 2)
        await refused(grant(str(place / "Notes"), caller=LOCAL), "too_many_folders")

    on_host(tmp_path, test)


def test_two_folders_of_one_name_have_ids_of_their_own(tmp_path):
    async def test(running, place):
        ids = []
        for parent in ("a", "b", "c"):
            (place / parent / "My Notes").mkdir(parents=True)
            ids.append((await running.folders.grant(str(place / parent / "My Notes"), caller=LOCAL))["id"])
        assert ids == ["my-notes", "my-notes-2", "my-notes-3"]

    on_host(tmp_path, test)


def test_of_two_grants_at_once_that_overlap_one_is_refused(tmp_path):
    async def test(running, place):
        paths = [str(place / "Docs"), str(place / "Docs/inner"), str(place)]
        results = await asyncio.gather(
            *(running.folders.grant(path, caller=LOCAL) for path in paths), return_exceptions=True
        )
        assert sorted(getattr(result, "code", "done") for result in results) == ["done", *["overlapping_grant"] * 2]

    on_host(tmp_path, test)


def test_the_data_root_is_granted_only_to_who_says_so(tmp_path):
    async def test(running, place):
        data = tmp_path / "data"
        (data / "sub").mkdir()
        for path in (data, data / "sub", data.parent, Path("/")):
            await refused(running.folders.grant(str(path), caller=LOCAL), "data_root_access_requires_confirmation")
        made = await running.folders.grant(str(data.parent), acknowledge_data_root=True, caller=LOCAL)
        assert made["readOnly"] is True

    on_host(tmp_path, test)


def test_a_server_that_does_not_allow_it_changes_and_browses_nothing(tmp_path):
    async def test(running, place):
        await refused(running.folders.grant(str(place / "Docs"), caller=LOCAL), "configuration_disabled")
        await refused(running.folders.revoke("docs", caller=LOCAL), "configuration_disabled")
        await refused(running.folders.browse(caller=LOCAL), "browsing_disabled")
        assert await running.folders.listing(caller=LOCAL) == {
            "folders": [], "configurable": False, "browseAvailable": False
        }  # fmt: skip

    on_host(tmp_path, test, configure=False, browse_roots=[str(tmp_path)])


def test_browsing_shows_folders_beneath_the_roots_and_nothing_else(tmp_path):
    roots = [str(Path(os.path.realpath(tmp_path)) / "place" / name) for name in ("Docs", "Notes")]
    for root in roots:
        Path(root).mkdir(parents=True)

    async def test(running, place):
        docs = place / "Docs"
        for name in ("b", "A", "c d", "é"):
            (docs / name).mkdir()
        (docs / "file.txt").touch()
        (docs / "link").symlink_to(place / "Notes")
        (docs / os.fsdecode(b"\xff")).mkdir()
        look = running.folders.browse
        top = await look(caller=LOCAL)
        assert top == {
            "currentPath": None,
            "parentPath": None,
            "directories": [{"name": "Docs", "path": roots[0]}, {"name": "Notes", "path": roots[1]}],
        }
        inside = await look(str(docs), caller=LOCAL)
        assert (inside["currentPath"], inside["parentPath"]) == (str(docs), None)
        assert [row["name"] for row in inside["directories"]] == ["A", "b", "c d", "inner", "é"]
        assert inside["directories"][0]["path"] == str(docs / "A")
        deeper = await look(f"{docs}/A/", caller=LOCAL)
        assert (deeper["currentPath"], deeper["parentPath"], deeper["directories"]) == (str(docs / "A"), str(docs), [])
        for path in (str(place), "/", "/etc", f"{docs}/../..", f"{docs}x", str(docs / "link"), f"{docs}/link/x"):
            await refused(look(path, caller=LOCAL), "path_not_browsable")
        for path in ("", "Docs", str(docs / "none"), str(docs / "file.txt"), f"{docs}/a\\b", "x" * 5000):
            await refused(look(path, caller=LOCAL), "invalid_path")

    on_host(tmp_path, test, browse_roots=roots)


def test_browsing_shows_no_more_folders_than_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(browsing, "MAX_DIRECTORIES", 2)
    for name in "cBa":
        (tmp_path / name).mkdir()
    root = os.path.realpath(tmp_path)
    assert [row["name"] for row in browse(root, [root])["directories"]] == ["a", "B"]


def test_the_file_grants_folders_that_only_the_file_takes_back(tmp_path):
    place = tmp_path / "place"
    (place / "Docs").mkdir(parents=True)

    async def test(running, place):
        (record,) = (await running.folders.listing(caller=LOCAL))["folders"]
        assert (record["id"], record["readOnly"], record["createdAt"], record["managedByFile"]) == (
            "docs", False, None, True
        )  # fmt: skip
        await refused(running.folders.revoke("docs", caller=LOCAL), "managed_by_file")
        await refused(running.folders.grant(str(place / "Docs"), caller=LOCAL), "already_exists")
        await refused(running.folders.grant(str(place / "Docs/inner"), caller=LOCAL), "overlapping_grant")
        assert (await running.folders.listing(caller=OTHER))["folders"] == []

    on_host(tmp_path, test, grants=[{"path": str(place / "Docs"), "read_only": False}])


@pytest.mark.parametrize(
    ("folders", "says"),
    [
        ({"browse_roots": ["relative"]}, "relative"),
        ({"browse_roots": ["/does/not/exist"]}, "no such file"),
        ({"browse_roots": ["{place}/file"]}, "not a folder"),
        ({"browse_roots": ["/tmp"] * 33}, "more than 32"),
        ({"grants": [{"path": "{place}/none"}]}, "no such file"),
        ({"grants": [{"path": "~nobody-at-all/x"}]}, "somebody unknown"),
        ({"grants": [{"path": "{place}"}, {"path": "{place}/Docs"}]}, "overlaps"),
        ({"grants": [{"path": "{place}/.."}]}, "data root"),
        ({"grants": [{"path": "{place}", "readonly": True}]}, "no such setting"),
    ],
)
def test_a_configuration_that_cannot_be_is_told_before_anything_is_opened(tmp_path, folders, says):
    place = tmp_path / "place"
    (place / "Docs").mkdir(parents=True)
    (place / "file").touch()

    def filled(value):
        if isinstance(value, str):
            return value.replace("{place}", str(place))
        if isinstance(value, dict):
            return {key: filled(inner) for key, inner in value.items()}
        return [filled(inner) for inner in value] if isinstance(value, list) else value

    async def main():
        async with opened(tmp_path, use="sqlite", **filled(folders)):
            raise AssertionError("it started")

    with pytest.raises(PizzabotError) as caught:
        asyncio.run(main())
    assert caught.value.code == "invalid_settings"
    assert says in caught.value.detail
    assert "folders." in caught.value.detail
    assert not (tmp_path / "data" / "app.sqlite").exists()


@pytest.mark.parametrize(("value", "on"), [("1", True), ("true", False), ("0", False), (" 1", False), ("1 ", False)])
def test_only_the_value_1_of_the_variable_allows_granting(tmp_path, value, on):
    async def main():
        environ = {
            "PIZZABOT_ALLOW_LOCAL_FOLDER_CONFIGURATION": value,
            "PIZZABOT_LOCAL_FOLDER_BROWSE_ROOTS": os.pathsep.join([f" {tmp_path} ", str(tmp_path), ""]),
        }
        async with host(data_root=tmp_path, settings={"storage": {"use": "memory"}}, environ=environ) as running:
            listing = await running.folders.listing(caller=LOCAL)
            assert (listing["configurable"], listing["browseAvailable"]) == (on, on)
            if on:
                assert len((await running.folders.browse(caller=LOCAL))["directories"]) == 1

    asyncio.run(main())


def test_a_folder_that_the_system_will_not_open_is_told_as_unreadable(tmp_path):
    root = os.path.realpath(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(PizzabotError) as caught:
            browse(root, [root])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caught.value.code == "directory_unreadable"
    assert "too many open files" in caught.value.detail
