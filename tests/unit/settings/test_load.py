"""Settings: where the file is found, what beats what, where each value is from. Real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pizzabot.settings import LogLevel, Settings, load_settings


@pytest.fixture
def load(tmp_path: Path) -> Any:
    (tmp_path / "cwd").mkdir()

    def load(text: str | None = None, environ: dict[str, str] | None = None, **options: Any) -> Settings:
        if text is not None:
            (tmp_path / "cwd" / "pizzabot.toml").write_text(text)
        base = {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "XDG_DATA_HOME": str(tmp_path / "data")}
        return load_settings(environ={**base, **(environ or {})}, cwd=tmp_path / "cwd", **options)

    return load


def test_without_a_file_the_defaults_apply(load: Any, tmp_path: Path) -> None:
    settings = load()
    assert settings.file is None
    assert settings.storage.use == "sqlite"
    assert settings.runtime.use == "deepagents"
    assert settings.transports.use == ("http",)
    assert settings.secrets.use == ("environment", "keyring", "file")
    assert settings.models.default is None
    assert settings.plugins.only is None
    assert settings.plugins.discover is True
    assert settings.logging.level is LogLevel.INFO
    assert settings.data_root == tmp_path / "data" / "pizzabot"
    assert settings.provenance("storage.use") == "default"


def test_the_file_is_looked_for_in_four_places_in_order(load: Any, tmp_path: Path) -> None:
    places = [tmp_path / "named.toml", tmp_path / "variable.toml", tmp_path / "cwd" / "pizzabot.toml"]
    user = tmp_path / "xdg" / "pizzabot" / "pizzabot.toml"
    user.parent.mkdir(parents=True)
    for number, place in enumerate([*places, user]):
        place.write_text(f'[storage]\nuse = "store{number}"\n')
    environ = {"PIZZABOT_CONFIG": str(places[1])}
    assert load(environ=environ, config=places[0]).storage.use == "store0"
    assert load(environ=environ).storage.use == "store1"
    assert load().storage.use == "store2"
    places[2].unlink()
    assert load().file == user


def test_environment_beats_the_file_and_the_command_line_beats_both(load: Any) -> None:
    text = '[storage]\nuse = "a"\n[logging]\nlevel = "error"\n[runtime]\nuse = "r"\n'
    environ = {"PIZZABOT__STORAGE__USE": "b", "PIZZABOT__LOGGING__LEVEL": "Warning"}
    settings = load(text, environ, overrides={"storage.use": "c", "runtime.use": None})
    assert (settings.storage.use, settings.logging.level, settings.runtime.use) == ("c", LogLevel.WARNING, "r")


def test_each_value_knows_where_it_was_written(load: Any, tmp_path: Path) -> None:
    text = """# first line
[models]
default = "work:big"
fallback = [
  "echo:echo",
]

[models.work]
use = "openai"
api_key = { env = "WORK_KEY" }
headers.X-Team = "pizza"
description = \"\"\"
[storage]
use = "this is text"
\"\"\"
base_url = "http://localhost"

[storage.sqlite]
"""
    settings = load(text, {"PIZZABOT__MODELS__WORK__BASE_URL": "http://other"}, overrides={"data_root": tmp_path / "d"})
    file = f"file {tmp_path / 'cwd' / 'pizzabot.toml'}"
    assert settings.provenance("models.default") == f"{file}:3"
    assert settings.provenance("models.fallback") == f"{file}:4"
    assert settings.provenance("models.work.api_key") == f"{file}:10"
    assert settings.provenance("models.work.headers.X-Team") == f"{file}:11"
    assert settings.provenance("models.work.base_url") == "environment PIZZABOT__MODELS__WORK__BASE_URL"
    assert settings.provenance("data_root") == "command line"
    assert settings.provenance("storage.use") == "default"
    assert settings.provenance("storage.sqlite") == f"{file}:18"


def test_a_very_long_list_costs_the_line_numbers_after_it_and_nothing_else(load: Any, tmp_path: Path) -> None:
    names = ",\n".join(f'"x:{n}"' for n in range(90)) + "\n" * 400
    settings = load(f'[models]\nfallback = [\n{names}]\n[storage]\nuse = "memory"\n')
    assert settings.storage.use == "memory"
    assert settings.provenance("storage.use") == f"file {tmp_path / 'cwd' / 'pizzabot.toml'}"


def test_the_short_names_of_the_environment_reach_their_settings(load: Any, tmp_path: Path) -> None:
    settings = load(
        environ={
            "PORT": "9000",
            "PIZZABOT_HOST": " 0.0.0.0 ",
            "PIZZABOT_API_TOKEN": "1" * 40,
            "PIZZABOT_ALLOWED_ORIGINS": "http://a, http://b,http://a,",
            "PIZZABOT_MODEL": "echo:echo",
            "PIZZABOT_DATA_ROOT": "here",
            "PIZZABOT_NO_PLUGINS": "1",
            "PIZZABOT_LOG_LEVEL": "debug",
        }
    )
    assert settings.section("transports", "http") == {
        "port": 9000,
        "host": "0.0.0.0",
        "token": "1" * 40,
        "allowed_origins": ["http://a", "http://b"],
    }
    assert settings.models.default == "echo:echo"
    assert settings.data_root == tmp_path / "cwd" / "here"
    assert settings.plugins.discover is False
    assert settings.logging.level is LogLevel.DEBUG
    assert settings.provenance("transports.http.port") == "environment PORT"


def test_the_long_name_beats_the_short_one_and_a_blank_variable_is_unset(load: Any) -> None:
    settings = load(
        environ={
            "PORT": "9000",
            "PIZZABOT__TRANSPORTS__HTTP__PORT": "9001",
            "PIZZABOT_HOST": " ",
            "PIZZABOT__RUNTIME__USE": "",
        }
    )
    assert settings.section("transports", "http") == {"port": 9001}
    assert settings.runtime.use == "deepagents"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8080", 8080), ("1_000", 1000), ("-1.5", -1.5), ("true", True), ('["a", "b"]', ["a", "b"]),
        ('{"a": 1}', {"a": 1}),
        ('{ env = "X" }', {"env": "X"}), ("'quoted'", "quoted"), ("eu-west-1", "eu-west-1"), ("007", "007"),
        ("2024-01-01", "2024-01-01"), ("nan", "nan"), ("[broken", "[broken"), ("1" * 5000, "1" * 5000),
        ("1\nuse = 2", "1\nuse = 2"), ("True", "True"),
    ],
)  # fmt: skip
def test_a_variable_is_parsed_where_it_looks_like_a_value(load: Any, text: str, value: object) -> None:
    settings = load(environ={"PIZZABOT__STORAGE__SQLITE__X": text})
    assert settings.section("storage", "sqlite") == {"x": value}


def test_a_secret_of_digits_in_a_variable_stays_a_text(load: Any) -> None:
    environ = {"PIZZABOT__MODELS__A__API_KEY": "12345678", "PIZZABOT__MODELS__B__API_KEY": '{keyring = "K"}'}
    settings = load(environ=environ)
    assert settings.section("models", "a") == {"api_key": "12345678"}
    assert settings.section("models", "b") == {"api_key": {"keyring": "K"}}


def test_a_variable_finds_the_key_of_the_file_whatever_its_case_and_dashes(load: Any) -> None:
    text = '[models.My-Model]\nuse = "openai"\n[models.My-Model.headers]\nX-Team = "a"\n'
    settings = load(text, {"PIZZABOT__MODELS__MY_MODEL__HEADERS__X_TEAM": "b"})
    assert settings.section("models", "My-Model") == {"headers": {"X-Team": "b"}}


def test_a_variable_reaches_a_use_with_a_dash_that_the_file_does_not_have(load: Any) -> None:
    environ = {"PIZZABOT__STORAGE__USE": "acme:my-store", "PIZZABOT__STORAGE__MY_STORE__PATH": "/x"}
    assert load(environ=environ).section("storage_backends", "acme:my-store") == {"path": "/x"}


def test_a_reference_replaces_a_value_and_never_mixes_with_another_one(load: Any) -> None:
    text = '[models.w]\nkey = { env = "A" }\nother = { env = "B" }\n'
    environ = {"PIZZABOT__MODELS__W__KEY": '{"keyring": "K"}', "PIZZABOT__MODELS__W__OTHER": "plain"}
    assert load(text, environ).section("models", "w") == {"key": {"keyring": "K"}, "other": "plain"}


def test_a_section_is_a_copy_and_has_no_use_for_models(load: Any) -> None:
    settings = load('[models.work]\nuse = "openai"\ntags = ["a"]\n[storage.sqlite]\nuse = "kept"\n')
    settings.section("models", "work")["tags"].append("b")
    assert settings.section("model_providers", "work") == {"tags": ["a"]}
    assert settings.section("storage", "sqlite") == {"use": "kept"}
    assert settings.section("storage", "nothing") == {}


def test_a_model_section_without_use_means_its_own_name(load: Any) -> None:
    assert load('[models.ollama]\n[models.work]\nuse = "openai"\n').models.uses == {
        "ollama": "ollama",
        "work": "openai",
    }


def test_a_relative_data_root_counts_from_the_file_that_says_it(load: Any, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    config = tmp_path / "etc" / "p.toml"
    config.write_text('data_root = "data"\n')
    assert load(config=config).data_root == tmp_path / "etc" / "data"
    assert load(config=config, overrides={"data_root": "data"}).data_root == tmp_path / "cwd" / "data"


def test_every_kind_has_a_table_for_the_settings_of_its_offers(load: Any) -> None:
    settings = load("[observers.watch]\na = 1\n[http_routes.page]\nb = 2\n[commands.models]\nc = 3\n")
    assert settings.section("observers", "watch") == {"a": 1}
    assert settings.section("http_routes", "page") == {"b": 2}
    assert settings.section("commands", "models") == {"c": 3}


def test_every_value_is_listed_once_with_its_source(load: Any) -> None:
    settings = load('[models.work]\nuse = "openai"\nkey = { env = "A" }\n', {"PORT": "1234"})
    listed = {".".join(value.path): value for value in settings.values()}
    assert len(listed) == len(list(settings.values()))
    assert listed["models.work.key"].value == {"env": "A"}
    assert listed["transports.http.port"].source == "environment PORT"
    assert listed["storage.use"].source == "default"
    assert next(iter(listed)) == "data_root"
