"""The entrypoint: `make_skills.py FOLDER…` writes a bundle with one skill for each `.json` and `.csv` in the folders.

It runs with the host's Python, in this folder, and needs nothing but the standard library. What it prints last is what
a person reads when it fails.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

MAX_FILE_BYTES = 5 * 1024 * 1024
MAX_FILES = 100
MAX_OPERATIONS = 200
SAMPLE_ROWS = 5
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def main() -> None:
    output = Path(os.environ["PIZZABOT_MATERIALIZER_OUTPUT_DIR"])
    write(
        output / ".claude-plugin" / "plugin.json", json.dumps({"name": os.environ["PIZZABOT_MATERIALIZER_PLUGIN_NAME"]})
    )
    for file in sources(sys.argv[1:]):
        skill_id = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-")
        folder = output / "skills" / f"{'api' if file.suffix == '.json' else 'table'}-{skill_id or 'unnamed'}"
        if folder.exists():
            sys.exit(f"{file} and another file would both be the skill {folder.name}: rename one of them")
        text = api_skill(file) if file.suffix == ".json" else table_skill(file)
        write(folder / "SKILL.md", text)
        write(folder / "references" / f"source{file.suffix}", file.read_text("utf-8-sig"))


def sources(folders: list[str]) -> list[Path]:
    found: list[Path] = []
    for folder in folders:
        if not Path(folder).is_dir():
            sys.exit(f"there is no folder {folder}: make it, or name another one in `sourceRoots` of plugin.json")
        found += sorted(file for file in Path(folder).iterdir() if file.suffix in {".json", ".csv"} and file.is_file())
    if len(found) > MAX_FILES:
        sys.exit(f"there are {len(found)} files; at most {MAX_FILES} become skills")
    for file in found:
        if file.stat().st_size > MAX_FILE_BYTES:
            sys.exit(f"{file} is larger than {MAX_FILE_BYTES} bytes")
    return found


def api_skill(file: Path) -> str:
    try:
        document = json.loads(file.read_text("utf-8-sig"))
    except ValueError as error:
        sys.exit(f"{file} is not JSON: {error}")
    if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
        sys.exit(f"{file} is no OpenAPI description: it has no `paths`")
    info = document["info"] if isinstance(document.get("info"), dict) else {}
    title, lines = str(info.get("title", file.stem)), operations(document["paths"])
    body = [
        f"# {title}",
        "",
        *lines,
        "",
        "The whole description is in `references/source.json`: read it before you answer.",
    ]
    return skill(f"Answers how to use the API {title}: its operations, parameters and answers. It calls nothing.", body)


def operations(paths: dict[str, Any]) -> list[str]:
    lines = [
        f"- `{method.upper()} {path}`: {one_line(operation.get('summary', operation.get('operationId', '')))}"
        for path, item in sorted(paths.items())
        if isinstance(item, dict)
        for method, operation in item.items()
        if method in METHODS and isinstance(operation, dict)
    ]
    more = len(lines) - MAX_OPERATIONS
    return lines if more <= 0 else [*lines[:MAX_OPERATIONS], f"- and {more} more"]


def table_skill(file: Path) -> str:
    with file.open(newline="", encoding="utf-8-sig") as opened:
        rows = list(csv.reader(opened))
    if not rows or not rows[0]:
        sys.exit(f"{file} has no header row")
    columns = ", ".join(f"`{one_line(name)}`" for name in rows[0])
    sample = [f"- {one_line(' | '.join(row))}" for row in rows[1 : 1 + SAMPLE_ROWS]]
    body = [
        f"# {file.stem}",
        "",
        f"{len(rows) - 1} rows with the columns {columns}.",
        "",
        "The first rows:",
        "",
        *sample,
    ]
    body += ["", "The whole table is in `references/source.csv`: count and sum there, never from the sample."]
    return skill(f"Answers questions about the table {file.stem}: {', '.join(rows[0])}.", body)


def skill(description: str, body: list[str]) -> str:
    return "\n".join(["---", f"description: {json.dumps(one_line(description)[:1000])}", "---", "", *body, ""])


def one_line(text: object) -> str:
    return " ".join(str(text).split())[:300]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
