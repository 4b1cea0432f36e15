"""The data analyst, on a real host: the code in its SKILL.md and its functions run in the sandbox, on real tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from shipped_rig import code_of, desk, evals, run

TABLE = code_of("data-analyst")[0].splitlines()[0]

SALES = """\
day,city,item,amount
2026-03-01,Rome,pizza,10.10
2026-03-02,Rome,"wine, red",120.20
2026-04-01,Oslo,pizza,n/a
2026-03-03,Oslo,"two
lines",1000
2026-03-03,Oslo
2026-05-01,Bari,"a ""good"" tea",5
2026-05-02,Bari,tea,
2026-05-03,Bari,tea,6
2026-05-04,Bari,tea,7
"""


def folder(tmp_path: Path, **files: str) -> Path:
    """`shop`, with these files; `__` in a name is its dot."""
    made = tmp_path / "shop"
    made.mkdir()
    for name, content in files.items():
        (made / name.replace("__", ".")).write_text(content, "utf-8")
    return made


async def computed(at: Any, code: str) -> Any:
    """What the analyst's functions return."""
    text = await at.delegates("data-analyst", evals(f"{TABLE}\n{code}"))
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_every_snippet_of_the_analyst_runs_one_after_another_on_a_table(tmp_path: Path) -> None:
    sales = folder(tmp_path, sales__csv=SALES)

    async def scenario() -> None:
        async with desk(sales) as at:
            codes = [code.replace("/sales.csv", "/local/shop/sales.csv") for code in code_of("data-analyst")]
            for number in range(1, len(codes) + 1):
                text = await at.delegates("data-analyst", *map(evals, codes[:number]))
                found.append(json.loads(text))

    found: list[Any] = []
    run(scenario())
    look, profile, cities, march, outliers, rows = found
    assert (look["kind"], look["delimiter"], look["columns"]) == ("csv", ",", ["day", "city", "item", "amount"])
    assert look["rows"][3] == {"line": 5, "day": "2026-03-03", "city": "Oslo", "item": "two\nlines", "amount": "1000"}
    amount = profile["columns"][3]
    assert (amount["numbers"], amount["sum"], amount["min"], amount["max"]) == (6, 1148.3, 5, 1000)
    assert (amount["empty"], amount["notNumbers"], amount["notNumbersExamples"]) == (1, 1, ["n/a"])
    assert [(one["group"], one["rows"], one["sum"]) for one in cities["groups"]] == [
        ("Oslo", 2, 1000), ("Rome", 2, 130.3), ("Bari", 4, 18),
    ]  # fmt: skip
    assert [one["group"] for one in march["groups"]] == [
        ["Rome", "pizza"],
        ["Rome", "wine, red"],
        ["Oslo", "two\nlines"],
    ]
    assert outliers["found"][0] == {"line": 5, "value": 1000}
    assert [row["item"] for row in rows["rows"]] == ["wine, red"]
    for each in (profile, cities, march, outliers, rows):
        assert each["looked"]["skippedExamples"] == ["line 7: 2 cells, not 4"]
        assert (each["looked"]["lines"], each["looked"]["rows"], each["looked"]["complete"]) == ("11 of 11", 8, False)


def test_a_table_of_many_pages_is_read_to_its_end_and_says_so(tmp_path: Path) -> None:
    lines = [f'{number},"name {number % 7}",{number % 5}.5' for number in range(5_000)]
    large = folder(tmp_path, large__csv="\n".join(["id,name,value", *lines]) + "\n")

    async def scenario() -> None:
        async with desk(large) as at:
            found = await computed(at, 'await table.group("/local/shop/large.csv", {by: "name", sum: "value", top: 2})')
            assert found["looked"] == {
                "lines": "5001 of 5001", "rows": 5000, "matched": 5000, "skipped": 0, "complete": True,
            }  # fmt: skip
            assert found["groupsNotShown"] == 5
            by_name = [sum(number % 5 + 0.5 for number in range(5_000) if number % 7 == name) for name in range(7)]
            assert [one["sum"] for one in found["groups"]] == sorted(by_name, reverse=True)[:2]

    run(scenario())


def test_lines_that_are_longer_than_a_page_are_passed_over_and_told(tmp_path: Path) -> None:
    text = "a,b\n1,2\n" + "x" * 100_000 + "\n" + f"3,{'y' * 50_000}\n" * 3 + "5,6\n"
    long = folder(tmp_path, long__csv=text)

    async def scenario() -> None:
        async with desk(long) as at:
            found = await computed(at, 'await table.profile("/local/shop/long.csv")')
            assert found["looked"] == {
                "lines": "7 of 7", "rows": 5, "matched": 5, "skipped": 1,
                "skippedExamples": ["line 3: longer than a page"], "complete": False,
            }  # fmt: skip
            assert found["columns"][0]["sum"] == 15

    run(scenario())


def test_other_tables_are_understood_json_lines_tabs_semicolons_decimal_commas_no_header(tmp_path: Path) -> None:
    shop = folder(
        tmp_path,
        a__jsonl='{"n": 1, "at": {"x": 2}}\n{"n": 2.5, "more": null}\n\n[1]\nnot json\n',
        b__tsv="name\tsum\nAda\t1\nBo, the\t2\n",
        c__csv="\ufeffname;sum\r\nAda;1.234,50\r\nBo;10\r\n",
        d__csv="1,2\n3,4\n",
        e__csv='a,b\n1,"never ends\n2,3\n',
        f__csv="a,a,\n1,2,3\n",
        g__json="[\n1\n]\n",
        h__csv=" \n\n",
    )

    async def scenario() -> None:
        async with desk(shop) as at:
            found = await computed(at, 'await table.profile("/local/shop/a.jsonl")')
            assert [(one["name"], one["filled"]) for one in found["columns"]] == [("n", 2), ("at", 1), ("more", 0)]
            assert found["columns"][0]["sum"] == 3.5
            assert found["looked"]["skippedExamples"] == ["line 4: no JSON object", "line 5: not JSON"]
            found = await computed(at, 'await table.group("/local/shop/b.tsv", {by: "name", sum: "sum"})')
            assert [(one["group"], one["sum"]) for one in found["groups"]] == [("Bo, the", 2), ("Ada", 1)]
            options = '{by: "name", sum: "sum", decimal: ",", thousands: "."}'
            found = await computed(at, f'await table.group("/local/shop/c.csv", {options})')
            assert [(one["group"], one["sum"]) for one in found["groups"]] == [("Ada", 1234.5), ("Bo", 10)]
            found = await computed(at, 'await table.rows("/local/shop/d.csv", {header: false})')
            assert found["rows"][0] == {"line": 1, "column 1": "1", "column 2": "2"}
            found = await computed(at, 'await table.rows("/local/shop/e.csv")')
            assert found["looked"]["unclosedQuote"] == "line 2: everything behind it is missing"
            assert not found["looked"]["complete"]
            found = await computed(
                at, 'await table.rows("/local/shop/d.csv", {where: (row) => JSON.stringify(row).length > 9})'
            )
            assert found["rows"] == [{"line": 2, "1": "3", "2": "4"}]
            found = await computed(at, 'await table.look("/local/shop/f.csv")')
            assert found["columns"] == ["a", "a (2)", "column 3"]
            for name, reason in (("g.json", "is one JSON list"), ("h.csv", "is empty"), ("no.csv", "not found")):
                assert reason in await computed(at, f'await table.look("/local/shop/{name}")')

    run(scenario())


@pytest.mark.parametrize(
    "code",
    [
        'table.group("/local/shop/sales.csv", {by: "City"})',
        'table.group("/local/shop/sales.csv", {by: "city", sum: "Amount"})',
        'table.outliers("/local/shop/sales.csv", {column: "price"})',
        'table.rows("/local/shop/sales.csv", {where: (row) => row.town === "Rome"})',
    ],
)
def test_a_column_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path: Path, code: str) -> None:
    sales = folder(tmp_path, sales__csv=SALES)

    async def scenario() -> None:
        async with desk(sales) as at:
            told = await computed(at, f"await {code}")
            assert re.search(r"there is no column (City|Amount|price|town); there are: day, city, item, amount", told)

    run(scenario())
