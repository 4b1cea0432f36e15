"""docs/SECURITY.md is a contract: every promise names tests, the tests exist, and no promise is there twice."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "SECURITY.md"

_PROMISE = re.compile(r"^- \*\*(S\d+)\*\* (.*?)(?=^- |^#|\Z)", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"`([\w/.-]+\.py)::([^`]+)`")


@dataclass(frozen=True, kw_only=True)
class Promise:
    id: str
    words: str
    tests: tuple[tuple[str, str], ...]


def promises(text: str) -> Iterator[Promise]:
    for found in _PROMISE.finditer(text):
        words, _, shown = found[2].partition("Shown by ")
        yield Promise(id=found[1], words=" ".join(words.split()), tests=tuple(_TEST.findall(shown)))


@cache
def names_in(path: Path) -> frozenset[str]:
    """The names of the tests in a file, those of classes included. Empty where there is no such file."""
    if not path.is_file():
        return frozenset()
    functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def faults(text: str, root: Path = ROOT) -> list[str]:
    """What is wrong with a contract, a line each."""
    made = list(promises(text))
    found = [f"{name} is there {count} times" for name, count in Counter(p.id for p in made).items() if count > 1]
    found += [f"{promise.id} promises nothing" for promise in made if len(promise.words) < 20]
    found += [f"{promise.id} names no test" for promise in made if not promise.tests]
    for promise in made:
        for path, test in promise.tests:
            name = test.rpartition("::")[2].partition("[")[0]
            if name not in names_in(root / path):
                found.append(f"{promise.id}: there is no {path}::{name}")
    ids = {promise.id for promise in made}
    found += [f"{name} is mentioned and not made" for name in sorted(set(re.findall(r"\bS\d+\b", text)) - ids)]
    return found


def test_every_promise_names_tests_that_exist_and_is_made_once():
    assert faults(DOCUMENT.read_text()) == []
    assert [promise.id for promise in promises(DOCUMENT.read_text())] == [f"S{number}" for number in range(1, 59)]


def test_the_sections_that_a_reader_looks_for_are_there():
    headings = re.findall(r"^## (.*)", DOCUMENT.read_text(), re.MULTILINE)
    assert headings == ["Scope", "Promises", "What is not promised", "Telling of a problem"]


_SHOWN = "`tests/e2e/test_security_contract.py::test_the_sections_that_a_reader_looks_for_are_there`"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- **S1** It is as safe as can be.\n", "S1 names no test"),
        ("- **S1** It is as safe as can be. Shown by nothing in particular.\n", "S1 names no test"),
        (f"- **S1** It is as safe as can be. See {_SHOWN}.\n", "S1 names no test"),
        ("- **S1** It is as safe as can be. Shown by `tests/no.py::test_x`.\n", "S1: there is no tests/no.py::test_x"),
        (
            "- **S1** It is as safe as can be. Shown by `tests/e2e/conftest.py::llama`.\n",
            "S1: there is no tests/e2e/conftest.py::llama",
        ),
        (f"- **S1** Shown by {_SHOWN}.\n", "S1 promises nothing"),
        (f"- **S1** It is as safe as can be. Shown by {_SHOWN}.\n" * 2, "S1 is there 2 times"),
        (f"- **S1** It is as safe as can be (S2). Shown by {_SHOWN}.\n", "S2 is mentioned and not made"),
    ],
)
def test_a_contract_that_is_broken_is_found_out(text, fault):
    assert fault in faults(text)


def test_the_brackets_of_parameters_and_the_name_of_a_class_do_not_matter():
    shown = _SHOWN.replace("there`", "there[one-two]`").replace("::", "::TestClass::")
    assert faults(f"- **S1** It is as safe as can be. Shown by {shown}.\n") == []
