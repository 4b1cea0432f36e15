"""`pizzabot config` and `pizzabot secrets`, as a person runs them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SECRET = "s3cr3t-of-thirty-two-characters!"


def test_show_prints_each_value_with_its_source_and_no_secret(pizzabot: Any) -> None:
    path = pizzabot.write('[models.work]\nuse = "openai"\napi_key = { env = "WORK_KEY" }\nbase_url = "http://x"\n')
    ended = pizzabot("config", "show", PIZZABOT_API_TOKEN=SECRET, WORK_KEY="work-key-value", PORT="81")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == f"# {path}"
    assert 'storage.use = "sqlite"  # default' in lines
    assert f'models.work.use = "openai"  # file {path}:2' in lines
    assert f'models.work.api_key = {{env = "WORK_KEY"}}  # file {path}:3' in lines
    assert "transports.http.port = 81  # environment PORT" in lines
    assert 'transports.http.token = "<redacted>"  # environment PIZZABOT_API_TOKEN' in lines
    assert SECRET not in ended.out
    assert "work-key-value" not in ended.out


def test_show_hides_a_secret_wherever_it_stands(pizzabot: Any) -> None:
    variables = {
        "PIZZABOT__MODELS__W__HEADERS": '{"X": "Bearer abcdefgh"}',
        "PIZZABOT__STORAGE__PG__URL": "pg://me:pw123@h/d",
    }
    ended = pizzabot("config", "show", "--json", **variables)
    assert "abcdefgh" not in ended.out
    assert "pw123" not in ended.out


def test_show_json_is_for_programs(pizzabot: Any) -> None:
    ended = pizzabot("config", "show", "--json", PIZZABOT_MODEL="echo:echo")
    shown = json.loads(ended.out)
    assert shown["file"] is None
    assert {"path": "models.default", "value": "echo:echo", "source": "environment PIZZABOT_MODEL"} in shown["values"]


def test_show_has_the_defaults_of_plugins_that_are_in_use(pizzabot: Any) -> None:
    path = pizzabot.write(
        '[models]\ndefault = "w:m"\n[models.w]\nuse = "openai"\n[transports.http.limits]\nidle_seconds = 9\n'
    )
    lines = pizzabot("config", "show", PORT="81").out.splitlines()
    for expected in (
        'transports.http.host = "127.0.0.1"  # default',
        "transports.http.port = 81  # environment PORT",
        "transports.http.token = (not set)  # default",
        f"transports.http.limits.idle_seconds = 9  # file {path}:6",
        "transports.http.limits.event_streams = 512  # default",
        "storage.sqlite.readers = 4  # default",
        "models.w.base_url = (not set)  # default",
    ):
        assert expected in lines
    assert len({line.split(" = ")[0] for line in lines}) == len(lines)


def test_show_does_without_plugins_that_cannot_be_loaded(pizzabot: Any, plugin_folder: Any) -> None:
    pizzabot.write("[plugins]\nstrict = true\n")
    ended = pizzabot("config", "show", PYTHONPATH=str(plugin_folder("broken", "import no_such_module_at_all")))
    assert ended.code == 0
    assert ended.out.splitlines()[1].startswith("# without the settings of plugins: ")


def test_path_tells_the_file_and_the_order_also_when_the_file_is_broken(pizzabot: Any) -> None:
    user = pizzabot.home / "config" / "pizzabot" / "pizzabot.toml"
    ended = pizzabot("config", "path")
    assert ended.code == 0
    assert ended.out.startswith("no configuration file")
    path = pizzabot.write("[broken")
    lines = pizzabot("config", "path").out.splitlines()
    assert lines[0] == str(path)
    assert lines[2:] == [f"  * {path}  (working folder)", f"    {user}  (user configuration)"]
    ended = pizzabot("config", "path", "--config", "nowhere.toml")
    assert ended.code == 3
    assert ended.last_line == f"pizzabot: configuration {pizzabot.folder / 'nowhere.toml'} does not exist"


@pytest.mark.parametrize("words", [("config", "--config", "a.toml", "show"), ("config", "show", "--config", "a.toml")])
def test_options_count_before_and_after_the_word(pizzabot: Any, words: tuple[str, ...]) -> None:
    (pizzabot.folder / "a.toml").write_text('[storage]\nuse = "memory"\n')
    assert 'storage.use = "memory"' in pizzabot(*words).out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[storage\n", "line 1, column 9"),
        ("[storge]\n", "unknown setting storge"),
        ("[storage]\nuse = 5\n", "storage.use (file "),
        ('[models.w]\ntoken = "abcdefgh"\n', "models.w.token (file "),
    ],
)
@pytest.mark.parametrize("action", ["show", "check"])
def test_a_broken_configuration_is_code_3_and_one_line(pizzabot: Any, text: str, says: str, action: str) -> None:
    path = pizzabot.write(text)
    ended = pizzabot("config", action)
    assert ended.code == 3
    assert ended.err.count("\n") == 1
    assert ended.last_line.startswith("pizzabot: ")
    assert says in ended.last_line
    assert str(path) in ended.last_line


def test_check_is_content_with_a_good_configuration(pizzabot: Any) -> None:
    path = pizzabot.write('[models.work]\nuse = "echo"\n[models]\ndefault = "work:echo"\nfallback = ["echo:echo"]\n')
    ended = pizzabot("config", "check")
    assert (ended.code, ended.out.splitlines()[-1], ended.err) == (0, f"ok: {path}", "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[storage]\nuse = "sqlit"\n', 'storage.use (file {path}:2): no offer "sqlit"'),
        ('[transports]\nuse = ["http", "linez"]\n', 'transports.use (file {path}:2): no offer "linez"'),
        ('[models.work]\nuse = "bedrok"\n', 'models.work.use (file {path}:2): no offer "bedrok"'),
        ("[models.bedrok]\n", 'models.bedrok (file {path}:1): no offer "bedrok"'),
        ('[models]\ndefault = "nobody:x"\n', 'models.default (file {path}:2): no offer "nobody"'),
        ('[models]\ndefault = "x"\n', "models.default (file {path}:2): a model is USE:MODEL"),
        ('[secrets]\nuse = ["vault"]\n', 'secrets.use (file {path}:2): no offer "vault"'),
        ("[secrets.file]\nx = 1\n", "[secrets.file] has no settings"),
        ('[transports.http]\nport = "many"\n', "transports.http.port (file {path}:2): a whole number is expected"),
        ("[transports.http]\nprot = 1\n", "transports.http.prot (file {path}:2): there is no such setting"),
        ("[transports.http]\nlimits = 1\n", "transports.http.limits (file {path}:2): a table is expected"),
        (
            '[transports.http]\ntoken = { env = "NOT_THERE" }\n',
            'transports.http.token (file {path}:2): secret {env = "N',
        ),
        ('[models.w]\nuse = "openai"\nbase_url = 5\n', "models.w.base_url (file {path}:3): a text is expected"),
        ('[models]\ndefault = "openai:x"\n', "models.default (file {path}:2): no API key: set OPENAI_API_KEY"),
        ('[models]\nfallback = ["openai:x"]\n', "models.fallback (file {path}:2): no API key"),
        ('[models.w]\nuse = "openai"\n', "models.w.use (file {path}:2): no API key"),
    ],
)
def test_check_finds_what_does_not_fit(pizzabot: Any, text: str, says: str) -> None:
    path = pizzabot.write(text)
    ended = pizzabot("config", "check")
    assert ended.code == 3
    assert ended.last_line.startswith(f"pizzabot: {says.replace('{path}', str(path))}")


WITHOUT_LLAMA = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("xllamacpp", "langchain_openai", "openai"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize(("model", "extra"), [("local:smollm2-135m", "local"), ("openai:x", "openai")])
def test_check_finds_a_package_that_is_missing(pizzabot: Any, tmp_path: Path, model: str, extra: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_LLAMA)
    ended = pizzabot("config", "check", PIZZABOT_MODEL=model, PYTHONPATH=str(tmp_path), OPENAI_API_KEY="x")
    assert ended.code == 3
    assert ended.last_line.startswith("pizzabot: models.default (environment PIZZABOT_MODEL): ")
    assert f'pip install "pizzabot-host[{extra}]"' in ended.last_line


def test_check_reports_every_problem_and_a_section_for_nothing(pizzabot: Any) -> None:
    path = pizzabot.write('[storage]\nuse = "a"\n[runtime]\nuse = "b"\n[storage.postgres]\nx = 1\n')
    ended = pizzabot("config", "check")
    assert f"note: [storage.postgres] (file {path}:5) is for something that is not installed" in ended.out
    assert "problem: runtime.use" in ended.out
    assert "storage.use" in ended.last_line
    assert "(and 1 more, see above)" in ended.last_line


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_a_secret_is_set_from_standard_input_listed_and_deleted(pizzabot: Any) -> None:
    pizzabot.write(
        'data_root = "root"\n[models.work]\nuse = "echo"\napi_key = { file = "WORK" }\nother = { env = "OTHER" }\n'
    )
    ended = pizzabot("secrets", "set", "WORK", "--store", "file", input=f"{SECRET}\n")
    assert (ended.code, ended.out, ended.err) == (0, 'set {file = "WORK"}\n', "")
    kept = pizzabot.folder / "root" / "secrets.json"
    assert json.loads(kept.read_text()) == {"WORK": SECRET}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    pizzabot("secrets", "set", "LEFT_OVER", "--store", "file", input="x" * 10)
    listed = pizzabot("secrets", "list").out
    assert listed.splitlines() == [
        '{env = "OTHER"}  not set  used by models.work.other',
        '{file = "WORK"}  set  used by models.work.api_key',
        '{file = "LEFT_OVER"}  set  not used by the configuration',
    ]
    assert SECRET not in listed
    assert pizzabot("secrets", "delete", "WORK", "--store", "file").code == 0
    ended = pizzabot("secrets", "delete", "WORK", "--store", "file")
    assert (ended.code, ended.last_line) == (
        1,
        'pizzabot: secret {file = "WORK"} is not there: nothing was deleted [no_such_secret]',
    )


def test_no_secrets_are_called_so(pizzabot: Any) -> None:
    ended = pizzabot("secrets", "list")
    assert (ended.code, ended.out) == (
        0,
        "no secrets: the configuration refers to none, and the file store holds none\n",
    )


def test_a_value_that_is_not_text_is_refused(pizzabot: Any) -> None:
    command = [sys.executable, "-m", "pizzabot", "secrets", "set", "A", "--store", "file"]
    done = subprocess.run(command, input=b"\xff", env=pizzabot.environment(), capture_output=True, check=False)
    assert done.returncode == 1
    assert b"the value of A cannot be kept: it is not text in UTF-8" in done.stderr


def test_models_without_a_word_lists_them(pizzabot: Any) -> None:
    ended = pizzabot("models")
    assert ended.code == 0
    assert ended.out == pizzabot("models", "list").out
    assert ended.out.startswith("NAME ")


def test_a_value_on_the_command_line_is_refused(pizzabot: Any) -> None:
    ended = pizzabot("secrets", "set", "NAME", SECRET, "--store", "file")
    assert ended.code == 2
    assert not (pizzabot.home / "data").exists()


@pytest.mark.parametrize(
    ("value", "code"), [("", "no value was given"), (" \n", "no value was given"), ("x" * 70_000, "more than 65536")]
)
def test_an_empty_or_huge_value_is_refused(pizzabot: Any, value: str, code: str) -> None:
    ended = pizzabot("secrets", "set", "NAME", "--store", "file", input=value)
    assert ended.code == 1
    assert code in ended.last_line


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("set", "NAME"), 3, "no keyring"),
        (("set", "NAME", "--store", "environment"), 1, "keeps no secrets"),
        (("set", "NAME", "--store", "nowhere"), 3, 'no offer "nowhere"'),
        (("set", "a b", "--store", "file"), 3, "NAME"),
    ],
)
def test_a_store_that_cannot_keep_it_is_told_with_the_way_out(
    pizzabot: Any, words: tuple[str, ...], code: int, says: str
) -> None:
    ended = pizzabot("secrets", *words, input="value-1234")
    assert ended.code == code
    assert says in ended.last_line
    assert ended.err.count("\n") == 1


def test_an_exposed_file_of_secrets_is_code_3(pizzabot: Any, tmp_path: Path) -> None:
    root = tmp_path / "root"
    pizzabot("secrets", "set", "A", "--store", "file", "--data-root", str(root), input="value-1234")
    (root / "secrets.json").chmod(0o644)
    ended = pizzabot("secrets", "set", "B", "--store", "file", "--data-root", str(root), input="value-1234")
    assert ended.code == 3
    assert "chmod 600" in ended.last_line
