"""Exit codes, limits and error codes on the operator's pages are the code's."""

import ast
import json
import re

from documents import REPOSITORY, blocks, code_words, read, rows, source, source_files

from pizzabot.cli.exit_codes import BY_CODE, ExitCode
from pizzabot.kernel import Plugins
from pizzabot.settings.model import SECTION_OF_KIND

LIMITS = "docs/operate/limits.md"
PLUGIN_AUTHORS = "pizzabot/testing/"


def test_the_table_of_exit_codes_is_the_code_s():
    written = {int(number): (name, set(code_words(errors))) for number, name, _, errors in rows(exit_codes())}
    assert written == {
        int(code): (code.name, {error for error, meant in BY_CODE.items() if meant is code}) for code in ExitCode
    }


def exit_codes():
    return read("docs/operate/exit-codes.md")


def test_chat_documents_exit_codes_that_exist():
    table = read("docs/use/chat.md").partition("## Exit codes")[2]
    assert {int(cells[0]) for cells in rows(table)} <= {int(code) for code in ExitCode}


def assigned(path):
    """Name -> value of every number that a module assigns at its top, without importing it."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                value = eval(compile(ast.Expression(node.value), str(path), "eval"), {"__builtins__": {}}, found)
            except Exception:
                continue
            if isinstance(value, int | float):
                found[node.targets[0].id] = value
    return found


def module_of(path):
    relative = path.relative_to(REPOSITORY)
    parts = relative.with_suffix("").parts
    return ".".join(parts if parts[0] == "pizzabot" else parts[1:])


def limits_on_the_page():
    """Place (`module:NAME` or a setting's path) -> number."""
    found = {}
    for _, value, place in rows(read(LIMITS)):
        found[code_words(place)[0]] = float(re.match(r"[\d.,]+", value)[0].replace(",", ""))
    return found


def test_every_constant_on_the_page_of_limits_has_that_value():
    modules = {module_of(path): path for path in source_files()}
    for place, value in limits_on_the_page().items():
        if ":" in place:
            module, name = place.split(":")
            assert assigned(modules[module]).get(name) == value, place


def test_every_setting_on_the_page_of_limits_has_that_default():
    plugins = Plugins(discover=False).load()
    kinds = {section: kind for kind, section in SECTION_OF_KIND.items()}
    for place, value in limits_on_the_page().items():
        if ":" not in place:
            section, name, *keys = place.split(".")
            record = next(record for record in plugins.offers(kinds[section]) if record.offer.name == name)
            default = record.offer.settings()
            for key in keys:
                default = getattr(default, key)
            assert default == value, place


def test_every_maximum_in_the_code_is_on_the_page_of_limits():
    written = limits_on_the_page()
    for path in source_files():
        if not str(path.relative_to(REPOSITORY)).startswith(PLUGIN_AUTHORS):
            for name in assigned(path):
                if name.startswith("MAX_"):
                    assert f"{module_of(path)}:{name}" in written, f"{LIMITS} lacks {module_of(path)}:{name}"


def test_every_error_code_that_the_pages_explain_exists():
    pages = [read("docs/operate/troubleshooting.md"), read("docs/use/protocol.md")]
    codes = {
        code
        for page in pages
        for cells in rows(page)
        for code in code_words(cells[0]) + (code_words(cells[1]) if len(cells) == 2 else [])
        if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+|[A-Z_]{5,}", code)
    }
    known = set(re.findall(r'"([A-Za-z0-9_]+)"', source()))
    assert len(codes) > 60
    assert codes - known == set()


def test_json_on_the_page_of_the_protocol_is_json():
    for block in blocks("docs/use/protocol.md", "json"):
        json.loads(block.text)
