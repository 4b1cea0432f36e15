"""The guide for authors says what is there: its code is in the files it names, its table has every kind."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from environments import REPOSITORY

from pizzabot.settings import load_settings
from pizzabot.settings.model import SECTION_OF_KIND
from pizzabot_hookspecs.kinds import KINDS, hook_name
from pizzabot_hookspecs.offers import Context, Offer

GUIDE = REPOSITORY / "docs" / "extend"
PAGES = sorted(GUIDE.glob("*.md"))
READMES = [REPOSITORY / "examples" / "README.md", *sorted((REPOSITORY / "examples").glob("*/README.md"))]
_QUOTE = re.compile(r"```\w+\n# (examples/\S+)\n(.*?)```", re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quoted_code_is_in_the_file_it_names(page):
    for name, text in _QUOTE.findall(page.read_text()):
        source = (REPOSITORY / name).read_text()
        for fragment in text.split("…\n"):
            assert fragment.rstrip("\n") in source, f"{page.name} quotes {name} wrongly:\n{fragment}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_python_block_names_its_file(page):
    # Whole modules of its own, which begin with their imports: tests/unit/support/test_tools_page.py runs one,
    # tests/unit/runtime/test_ask_user.py the other.
    own = [block for block in blocks(page, "python") if block.startswith(("import ", "from "))]
    assert len(own) == (2 if page.stem == "tools" else 0)
    quoted = [block for block in blocks(page, "python") if block not in own]
    assert len(quoted) == len([name for name, _ in _QUOTE.findall(page.read_text()) if ".py" in name])


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=lambda page: page.parent.name + "-" + page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=lambda page: page.parent.name + "-" + page.stem)
def test_configuration_that_is_shown_is_read_by_the_host(page, tmp_path):
    for number, text in enumerate(blocks(page, "toml")):
        if text.startswith("# examples/"):
            continue  # a piece of a pyproject.toml
        assert tomllib.loads(text)
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        load_settings(config=file, environ={}, cwd=tmp_path)


def test_the_table_has_every_kind_with_its_hook_its_protocol_and_its_section():
    rows = {row.split("`")[1]: row for row in (GUIDE / "kinds.md").read_text().splitlines() if "| `pizzabot_" in row}
    assert set(rows) == set(KINDS)
    for kind, row in rows.items():
        hook = getattr(import_module(f"pizzabot_hookspecs.{kind}"), hook_name(kind))
        made = re.fullmatch(r"list\[Offer\[(\w+)\]\]", hook.__annotations__["return"])
        assert made is not None
        assert f"`{hook_name(kind)}`" in row
        assert f"`{made.group(1)}`" in row
        assert f"[{SECTION_OF_KIND[kind]}.<" in row


def test_the_tables_of_offer_and_context_have_every_field():
    text = (GUIDE / "kinds.md").read_text()
    for part, fields in (("## Offer", Offer.__dataclass_fields__), ("## Context", Context.__dataclass_fields__)):
        table = text.partition(part)[2].partition("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(fields)
