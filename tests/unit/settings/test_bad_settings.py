"""Bad configuration: one line that names the place, the cause and the way out, with a code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pizzabot.settings import Settings, load_settings
from pizzabot.settings.toml_file import MAX_FILE_BYTES
from pizzabot_hookspecs.errors import InvalidRequest


def load(folder: Path, text: str | bytes | None = None, environ: dict[str, str] | None = None) -> Settings:
    if text is not None:
        (folder / "pizzabot.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    base = {"XDG_CONFIG_HOME": str(folder / "xdg"), "XDG_DATA_HOME": str(folder / "data")}
    return load_settings(environ={**base, **(environ or {})}, cwd=folder)


def refusal(folder: Path, text: str | bytes | None = None, environ: dict[str, str] | None = None) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        load(folder, text, environ)
    assert "\n" not in raised.value.detail
    return raised.value


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("[models\n", 1, 8),
        ('[storage]\nuse = "sqlite\n', 2, 14),
        ("a = 1\na = 2\n", 2, 6),
        ("[storage]\n\nuse = = 3\n", 3, 7),
        ("x = [1,\n", 1, 9),
        (b'a = 1\nb = "\xff"\n', 2, 6),
    ],
)  # fmt: skip
def test_broken_toml_is_told_by_file_line_and_column(tmp_path: Path, text: str | bytes, line: int, column: int) -> None:
    error = refusal(tmp_path, text)
    assert error.code == "invalid_toml"
    assert error.fields["line"] == str(line)
    assert f"{tmp_path / 'pizzabot.toml'}, line {line}, column " in error.detail
    assert abs(int(error.fields["column"]) - column) <= 1


@pytest.mark.parametrize("text", ["x = " + "9" * 6000, "x = " + "[" * 5000])
def test_toml_that_breaks_the_parser_is_invalid_toml(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text).code == "invalid_toml"


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert load(tmp_path, b'\xef\xbb\xbf[storage]\nuse = "m"\n').storage.use == "m"


def test_a_file_that_was_named_and_is_missing_is_an_error(tmp_path: Path) -> None:
    error = refusal(tmp_path, environ={"PIZZABOT_CONFIG": "nowhere.toml"})
    assert error.code == "config_not_found"
    assert str(tmp_path / "nowhere.toml") in error.detail


def test_a_directory_a_pipe_and_a_huge_file_are_refused_without_reading(tmp_path: Path) -> None:
    (tmp_path / "pizzabot.toml").mkdir()
    assert "is a directory" in refusal(tmp_path).detail
    (tmp_path / "pizzabot.toml").rmdir()
    os.mkfifo(tmp_path / "pizzabot.toml")
    assert refusal(tmp_path).code == "config_unreadable"
    (tmp_path / "pizzabot.toml").unlink()
    error = refusal(tmp_path, "#" * (MAX_FILE_BYTES + 1))
    assert error.code == "config_unreadable"
    assert str(MAX_FILE_BYTES) in error.detail


def test_a_link_to_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pizzabot.toml").symlink_to(tmp_path / "gone")
    assert refusal(tmp_path).code == "config_not_found"


def test_a_path_through_a_file_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = refusal(tmp_path, environ={"PIZZABOT_CONFIG": "file/pizzabot.toml"})
    assert error.code == "config_unreadable"
    assert "Not a directory" in error.detail


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ('[storages]\nuse = "x"\n', "storages", "did you mean storage?"),
        ('[storage]\nues = "x"\n', "storage.ues", "did you mean storage.use?"),
        ('[models]\ndefalt = "a:b"\n', "models.defalt", "did you mean models.default?"),
        ("[plugins]\ndisabled = []\n", "plugins.disabled", "did you mean plugins.disable?"),
        ("[plugins.ollama]\n", "plugins.ollama", "there are disable, discover, only, strict"),
        ('[logging]\nlvel = "x"\n', "logging.lvel", "did you mean logging.level?"),
        ("zzz = 1\n", "zzz", "there are admission_policies, agent_middleware, agent_tools, bundles, commands"),
    ],
)
def test_an_unknown_setting_is_told_with_what_was_meant(tmp_path: Path, text: str, name: str, hint: str) -> None:
    error = refusal(tmp_path, text)
    assert error.code == "unknown_setting"
    assert error.detail.startswith(f"unknown setting {name} (file {tmp_path / 'pizzabot.toml'}:")
    assert hint in error.detail
    assert list(error.fields) == [name]


def test_an_unknown_setting_in_a_variable_names_the_variable(tmp_path: Path) -> None:
    error = refusal(tmp_path, environ={"PIZZABOT__STORAGE__USES": "x"})
    assert error.code == "unknown_setting"
    assert "environment PIZZABOT__STORAGE__USES" in error.detail


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("[storage]\nuse = 5\n", "storage.use", 2),
        ('[logging]\nlevel = "loud"\n', "logging.level", 2),
        ("[models]\nfallback = 5\n", "models.fallback", 2),
        ("[transports]\nuse = [1]\n", "transports.use", 2),
        ('storage = "sqlite"\n', "storage", 1),
        ("[models.default]\nuse = 'x'\n", "models.default", 1),
        ("[models.fallback]\nuse = 'x'\n", "models.fallback", 1),
        ("[models.work]\nuse = 5\n", "models.work.use", 2),
        ("[models]\nuse = 'x'\n", "models.use", 2),
        ('[models."a:b"]\n', 'models."a:b"', 1),
        ("data_root = 5\n", "data_root", 1),
        ("[plugins]\nstrict = 'perhaps'\n", "plugins.strict", 2),
        ("[plugins]\ndisable = [" + ",".join(["'a'"] * 101) + "]\n", "plugins.disable", 2),
    ],
)
def test_a_wrong_value_is_told_by_path_and_place(tmp_path: Path, text: str, path: str, line: int) -> None:
    error = refusal(tmp_path, text)
    assert error.code in {"invalid_settings", "unknown_setting"}
    assert f"{path} (file {tmp_path / 'pizzabot.toml'}:{line})" in error.detail
    assert path in error.fields


@pytest.mark.parametrize(
    "line",
    [
        'token = "abcdefgh"', 'work_api_key = "sk-123"', 'password = "x"', "password = 12345678", 'api_keys = ["a"]',
        'dsn = "postgres://me:pw@host/db"', 'headers = { Authorization = "Bearer x" }', 'secret = "Bearer ${X}"',
    ],
)  # fmt: skip
def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path, line: str) -> None:
    error = refusal(tmp_path, f"[models.work]\nuse = 'openai'\n{line}\n")
    assert error.code == "literal_secret"
    assert f"{tmp_path / 'pizzabot.toml'}:3" in error.detail
    assert "{env = " in error.detail
    for value in ("abcdefgh", "sk-123", "12345678", "pw@", "Bearer x"):
        assert value not in error.detail


@pytest.mark.parametrize(
    "line",
    [
        'token = { env = "T" }', 'api_key = "${KEY}"', "max_tokens = 4096", 'token_file = "/x"', 'password = ""',
        'dsn = "postgres://host/db"', "tokens = 5", 'dsn = { file = "DSN" }', 'tokenizer = "bpe"',
    ],
)  # fmt: skip
def test_references_and_harmless_settings_are_taken(tmp_path: Path, line: str) -> None:
    load(tmp_path, f"[models.work]\n{line}\n")


def test_a_variable_may_carry_a_secret(tmp_path: Path) -> None:
    settings = load(tmp_path, "[models.work]\n", {"PIZZABOT__MODELS__WORK__API_KEY": "sk-1"})
    assert settings.section("models", "work") == {"api_key": "sk-1"}


def test_a_reference_with_a_wrong_name_is_told_by_its_path(tmp_path: Path) -> None:
    error = refusal(tmp_path, "[models.work]\nkey = { env = 5 }\n")
    assert error.code == "invalid_reference"
    assert error.detail.startswith("models.work.key: ")


def test_a_plugins_complaint_gets_the_places_of_its_fields(tmp_path: Path) -> None:
    settings = load(tmp_path, "[transports.http]\nhost = 'x'\n", {"PORT": "abc"})
    error = settings.explain(
        InvalidRequest("invalid_settings", "x", fields={"port": "Not a number"}), "transports.http"
    )
    assert error.detail == "transports.http.port (environment PORT): not a number"
    assert error.fields == {"transports.http.port": "not a number"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("data_root = 5\n", "data_root (file {path}:1): a path is expected, as a text, not 5"),
        ('data_root = ""\n', "data_root (file {path}:1): it is empty: name a folder"),
        ('[models]\ndefault = ""\n', "models.default (file {path}:2): it is empty"),
        ("[models]\nfallback = 5\n", "models.fallback (file {path}:2): a list is expected, not 5"),
        (
            "[plugins]\nstrict = 2024-01-01\n",
            "plugins.strict (file {path}:2): true or false is expected, not 2024-01-01",
        ),
        ("[storage]\nuse = [true]\n", "storage.use (file {path}:2): a text is expected, not [true]"),
    ],
)
def test_what_is_expected_is_said_without_the_names_of_classes(tmp_path: Path, text: str, says: str) -> None:
    assert refusal(tmp_path, text).detail == says.replace("{path}", str(tmp_path / "pizzabot.toml"))


@pytest.mark.parametrize("section", ["transports", "secrets", "skills"])
def test_a_use_that_stands_twice_is_refused(tmp_path: Path, section: str) -> None:
    error = refusal(tmp_path, f'[{section}]\nuse = ["file", "b", "file"]\n')
    assert error.detail == f'{section}.use (file {tmp_path / "pizzabot.toml"}:2): "file" stands in it twice'


def test_bytes_that_are_no_text_are_refused_but_in_a_path(tmp_path: Path) -> None:
    error = refusal(tmp_path, environ={"PIZZABOT_MODEL": os.fsdecode(b"\xff:m")})
    assert error.detail == "models.default (environment PIZZABOT_MODEL): it is not text in UTF-8"
    assert load(tmp_path, environ={"PIZZABOT_DATA_ROOT": os.fsdecode(b"/\xff")}).data_root == Path(
        os.fsdecode(b"/\xff")
    )
