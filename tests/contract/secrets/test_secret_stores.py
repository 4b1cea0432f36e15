"""The built-in secret stores, through the kernel where it matters: real files, a real keyring backend in memory."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keyring.backend
import keyring.backends.fail
import keyring.backends.null
import keyring.errors
import pytest

from pizzabot.kernel import Plugins
from pizzabot.settings import SecretResolver, load_settings, resolve_references
from pizzabot.settings.stores import open_secrets
from pizzabot.testing.plugins import imported_by
from pizzabot_builtin_plugins.secret_stores.environment import EnvironmentStore
from pizzabot_builtin_plugins.secret_stores.secrets_file import MAX_FILE_BYTES, FileStore
from pizzabot_builtin_plugins.secret_stores.system_keyring import SERVICE, KeyringStore
from pizzabot_hookspecs import Context, InvalidRequest, Offer, TooLarge, Unavailable, hookimpl
from pizzabot_hookspecs.secret_stores import WritableSecretStore
from pizzabot_hookspecs.support.redaction import REDACTED, Redactor


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A keyring as the library knows them, kept in memory."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture(params=["keyring", "file"])
def writable(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return (
        KeyringStore(backend=MemoryKeyring())
        if request.param == "keyring"
        else FileStore(tmp_path / "s" / "secrets.json")
    )


def test_a_store_that_keeps_secrets_gives_back_what_it_was_given(writable: WritableSecretStore | Any) -> None:
    assert isinstance(writable, WritableSecretStore)
    assert writable.get("A") is None
    writable.set("A", 'vä"lue\n2')
    writable.set("B", "other")
    assert writable.get("A") == 'vä"lue\n2'
    writable.set("A", "new")
    assert writable.get("A") == "new"
    assert writable.delete("A") is True
    assert writable.delete("A") is False
    assert (writable.get("A"), writable.get("B")) == (None, "other")


def test_the_environment_is_read_only_and_a_blank_variable_is_unset() -> None:
    store = EnvironmentStore({"A": " x ", "B": "  "})
    assert (store.get("A"), store.get("B"), store.get("C")) == ("x", None, None)
    assert not isinstance(store, WritableSecretStore)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_file_is_readable_by_its_owner_only_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "root" / "secrets.json"
    store = FileStore(path)
    store.set("A", "1")
    first = path.stat()
    store.set("B", "2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_ino != first.st_ino
    assert json.loads(path.read_text()) == {"A": "1", "B": "2"}
    assert store.names() == ["A", "B"]
    assert sorted(entry.name for entry in path.parent.iterdir()) == [".secrets.json.lock", "secrets.json"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_file_that_others_can_reach_is_not_used(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secrets.json"
    store = FileStore(path)
    store.set("A", "1")
    path.chmod(mode)
    for use in (lambda: store.get("A"), lambda: store.set("B", "2"), lambda: store.delete("A")):
        with pytest.raises(Unavailable) as raised:
            use()
        assert raised.value.code == "secrets_file_exposed"
        assert "chmod 600" in raised.value.detail
    assert json.loads(path.read_text()) == {"A": "1"}


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    FileStore(tmp_path / "real.json").set("A", "1")
    (tmp_path / "secrets.json").symlink_to(tmp_path / "real.json")
    with pytest.raises(Unavailable) as raised:
        FileStore(tmp_path / "secrets.json").get("A")
    assert raised.value.code == "secrets_file_exposed"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"A": 5}', "\xff", "[" * 100_000, '{"A": "' + "x" * MAX_FILE_BYTES + '"}']
)
def test_a_damaged_file_is_told_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "secrets.json"
    path.write_bytes(content.encode("latin-1"))
    path.chmod(0o600)
    for use in (lambda: FileStore(path).get("A"), lambda: FileStore(path).set("A", "1")):
        with pytest.raises(Unavailable) as raised:
            use()
        assert raised.value.code == "secrets_file_damaged"
    assert path.read_bytes() == content.encode("latin-1")


def test_a_pipe_in_place_of_the_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "secrets.json", 0o600)
    with pytest.raises(Unavailable) as raised:
        FileStore(tmp_path / "secrets.json").get("A")
    assert raised.value.code == "secrets_file_damaged"


def test_the_file_has_a_limit_and_stays_as_it_was_beyond_it(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "secrets.json")
    store.set("A", "1")
    with pytest.raises(TooLarge) as raised:
        store.set("B", "x" * MAX_FILE_BYTES)
    assert raised.value.code == "secrets_file_full"
    assert store.names() == ["A"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable) as raised:
        FileStore(tmp_path / "file" / "secrets.json").set("A", "1")
    assert raised.value.code == "secrets_file_unreadable"


def test_two_processes_that_set_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    script = (
        "import sys; from pathlib import Path;"
        "from pizzabot_builtin_plugins.secret_stores.secrets_file import FileStore;"
        "[FileStore(Path(sys.argv[1])).set(f'{sys.argv[2]}{n}', 'v') for n in range(20)]"
    )
    children = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in "abc"]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    assert len(FileStore(path).names()) == 60


# --- the keyring ------------------------------------------------------------------------------------------------------


def test_secrets_are_kept_under_the_services_name() -> None:
    backend = MemoryKeyring()
    KeyringStore(backend=backend).set("A", "1")
    assert backend.kept == {(SERVICE, "A"): "1"}


@pytest.mark.parametrize("backend", [keyring.backends.fail.Keyring(), keyring.backends.null.Keyring()])
def test_a_system_without_a_keyring_is_told_with_the_way_out(backend: Any) -> None:
    store = KeyringStore(backend=backend)
    for use in (lambda: store.get("A"), lambda: store.set("A", "1"), lambda: store.delete("A")):
        with pytest.raises(Unavailable) as raised:
            use()
        assert raised.value.code == "keyring_unavailable"
        assert "--store file" in raised.value.detail


def test_an_error_of_the_keyring_is_one_line_with_the_way_out() -> None:
    class Locked(MemoryKeyring):
        def get_password(self, service: str, username: str) -> str | None:
            raise keyring.errors.KeyringLocked("locked\nby somebody")

    with pytest.raises(Unavailable) as raised:
        KeyringStore(backend=Locked()).get("A")
    assert raised.value.code == "keyring_unavailable"
    assert "locked by somebody" in raised.value.detail


def test_a_keyring_that_hangs_is_given_up_and_one_call_waits_for_it_at_most() -> None:
    answer = threading.Event()
    calls: list[str] = []

    class Hanging(MemoryKeyring):
        def get_password(self, service: str, username: str) -> str | None:
            calls.append(username)
            answer.wait(30)
            return "late"

    store = KeyringStore(backend=Hanging(), deadline=0.05)
    try:
        for name in ("A", "B"):
            with pytest.raises(Unavailable) as raised:
                store.get(name)
            assert raised.value.code == "keyring_timeout"
        assert calls == ["A"]
    finally:
        answer.set()


def test_the_keyring_library_is_not_loaded_before_it_is_asked() -> None:
    brought = imported_by("pizzabot_builtin_plugins.secret_stores")
    assert not {"keyring", "pydantic"} & set(brought)


# --- chosen by the configuration, made by the kernel ------------------------------------------------------------------


def open_all(
    tmp_path: Path, text: str = "", *, extra: tuple[tuple[str, object], ...] = ()
) -> tuple[SecretResolver, Redactor]:
    config = tmp_path / "pizzabot.toml"
    config.write_text(f'data_root = "."\n{text}')
    settings = load_settings(config=config, environ={}, cwd=tmp_path)
    redactor = Redactor()
    plugins = Plugins(discover=False, extra=extra).load()
    return open_secrets(plugins, settings, redactor=redactor, context=context_in(tmp_path)), redactor


def context_in(data_root: Path) -> Callable[..., Context]:
    def context(use: str, inner: Callable[[], Any] | None, secrets: SecretResolver) -> Context:
        return Context(
            name=use,
            data_root=data_root,
            logger=None,
            secrets=secrets,
            clock=lambda: 0.0,
            redact=str,
            inner=inner,  # type: ignore[arg-type]
        )

    return context


def test_each_reference_asks_its_store_and_what_it_finds_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IN_ENV", "from-environment")
    FileStore(tmp_path / "secrets.json").set("IN_FILE", "from-file")
    resolver, redactor = open_all(tmp_path, '[secrets]\nuse = ["environment", "file"]\n')
    section = {"a": {"env": "IN_ENV"}, "b": [{"file": "IN_FILE"}], "c": "${IN_FILE}", "d": 1}
    assert resolve_references(section, resolver) == {
        "a": "from-environment", "b": ["from-file"], "c": "from-file", "d": 1,
    }  # fmt: skip
    assert redactor.text("from-environment from-file") == f"{REDACTED} {REDACTED}"


def test_a_variable_of_every_process_is_no_secret_and_a_stored_one_of_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.delenv("USER", raising=False)
    FileStore(tmp_path / "secrets.json").set("HOME", "stored-home")
    FileStore(tmp_path / "secrets.json").set("USER", "stored-user")
    resolver, redactor = open_all(tmp_path, '[secrets]\nuse = ["environment", "file"]\n')
    assert [resolver.resolve(one) for one in ("${HOME}", {"file": "HOME"}, "${USER}")] == [
        "/home/anna", "stored-home", "stored-user",
    ]  # fmt: skip
    assert redactor.text("/home/anna/a stored-home stored-user") == f"/home/anna/a {REDACTED} {REDACTED}"


def test_a_dollar_reference_asks_all_stores_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FileStore(tmp_path / "secrets.json").set("BOTH", "from-file")
    resolver, _ = open_all(tmp_path, '[secrets]\nuse = ["environment", "file"]\n')
    assert resolver.resolve("${BOTH}") == "from-file"
    monkeypatch.setenv("BOTH", "from-environment")
    assert resolver.resolve("${BOTH}") == "from-environment"


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ({"env": "NO_SUCH"}, "set the environment variable NO_SUCH"),
        ({"file": "NO_SUCH"}, "pizzabot secrets set NO_SUCH --store file"),
        ({"keyring": "NO_SUCH"}, 'the store "keyring" is not in [secrets] use'),
        ("${NO_SUCH}", "environment, file"),
    ],
)
def test_an_unset_secret_is_an_error_that_names_it(tmp_path: Path, reference: object, says: str) -> None:
    resolver, _ = open_all(tmp_path, '[secrets]\nuse = ["environment", "file"]\n')
    with pytest.raises(InvalidRequest) as raised:
        resolver.resolve(reference)
    assert raised.value.code == "unset_secret"
    assert "NO_SUCH" in raised.value.detail
    assert says in raised.value.detail


def test_an_exposed_file_is_told_when_it_is_asked_and_does_not_hide_other_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FileStore(tmp_path / "secrets.json").set("A", "x" * 8)
    (tmp_path / "secrets.json").chmod(0o644)
    resolver, _ = open_all(tmp_path, '[secrets]\nuse = ["file", "environment"]\n')
    with pytest.raises(Unavailable) as raised:
        resolver.resolve({"file": "A"})
    assert raised.value.code == "secrets_file_exposed"
    monkeypatch.setenv("A", "from-environment")
    assert resolver.resolve("${A}") == "from-environment"
    monkeypatch.delenv("A")
    with pytest.raises(InvalidRequest, match="chmod 600"):
        resolver.resolve("${A}")


def test_a_third_partys_store_is_chosen_by_name_and_its_name_is_a_reference(tmp_path: Path) -> None:
    class Vault:
        def get(self, name: str, /) -> str | None:
            return {"A": "from-vault"}.get(name)

    class Plugin:
        @hookimpl
        def pizzabot_secret_stores(self) -> list[Offer[Any]]:
            return [
                Offer(name="vault", summary="a vault", create=lambda context, settings: Vault()),
                Offer(name="broken", summary="a broken one", create=lambda context, settings: 1 / 0),
            ]

    resolver, _ = open_all(tmp_path, '[secrets]\nuse = ["broken", "vault"]\n', extra=(("acme", Plugin()),))
    assert resolver.resolve({"vault": "A"}) == "from-vault"
    assert resolver.resolve("${A}") == "from-vault"
    with pytest.raises(Unavailable) as raised:
        resolver.resolve({"broken": "A"})
    assert raised.value.code == "plugin_failed"


def test_an_unknown_store_and_settings_that_nobody_reads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as raised:
        open_all(tmp_path, '[secrets]\nuse = ["valut"]\n')
    assert raised.value.code == "no_such_offer"
    with pytest.raises(InvalidRequest) as raised:
        open_all(tmp_path, "[secrets.file]\npath = '/x'\n")
    assert raised.value.code == "unknown_setting"
