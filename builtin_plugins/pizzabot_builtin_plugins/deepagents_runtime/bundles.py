# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""A skill's own files, `/skills/<id>/`: read-only, and those that its graph was built with (spec/05 §5)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from deepagents.backends import StateBackend
from deepagents.backends.protocol import ReadResult

from pizzabot_builtin_plugins.deepagents_runtime.file_kinds import is_text_name
from pizzabot_builtin_plugins.deepagents_runtime.file_paths import is_in
from pizzabot_hookspecs.files import SKILLS


def refusal(path: str) -> str:
    return f"Error: '{path}' cannot be written: the files of a skill are read-only"


class Bundle(StateBackend):
    """DeepAgents' operations on files that are in no state: reading ones alone are used."""

    def __init__(self, skill: str, files: Mapping[str, bytes]) -> None:
        super().__init__()
        self.root = f"{SKILLS}/{skill}"
        self._files = {f"{self.root}/{path}": _file_data(path, content) for path, content in files.items()}

    def has(self, path: str) -> bool:
        """Whether the path is below `/skills`, where there is nothing but this bundle."""
        return is_in(SKILLS, path)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        data = self._files.get(file_path)
        if data is not None and data["encoding"] != "utf-8":
            return ReadResult(error=f"'{file_path}' cannot be read as text")
        return super().read(file_path, offset, limit)

    def _read_files(self) -> dict[str, Any]:
        return self._files


def _file_data(path: str, content: bytes) -> dict[str, str]:
    if is_text_name(path):
        try:
            return {"content": content.decode("utf-8"), "encoding": "utf-8"}
        except UnicodeDecodeError:
            pass
    return {"content": base64.b64encode(content).decode(), "encoding": "base64"}
