"""The header of a GGUF file, and files that are not what they seem."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.local import gguf as reader
from pizzabot_builtin_plugins.local.gguf import read_header
from pizzabot_hookspecs import InvalidRequest

Make = Callable[..., bytes]


def written(folder: Path, data: bytes) -> Path:
    path = folder / "x.gguf"
    path.write_bytes(data)
    return path


def refused(folder: Path, data: bytes) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read_header(written(folder, data))
    assert caught.value.code == "not_a_model"
    assert "\n" not in caught.value.detail
    return caught.value.detail


def test_a_header_says_name_architecture_and_context(tmp_path: Path, make_gguf: Make) -> None:
    header = read_header(written(tmp_path, make_gguf(llama__context_length=4096)))
    assert (header.architecture, header.name, header.context_length, header.parts) == ("llama", "Tiny Model", 4096, 1)


@pytest.mark.parametrize(
    ("template", "tools"), [(None, False), ("{{ messages }}", False), ("{% if tools %}{{ tools }}{% endif %}", True)]
)
def test_tools_are_supported_when_the_template_lays_them_out(
    tmp_path: Path, make_gguf: Make, template: str | None, tools: bool
) -> None:
    assert read_header(written(tmp_path, make_gguf(template=template))).supports_tools is tools


def test_a_file_without_the_magic_is_refused(tmp_path: Path) -> None:
    assert "does not begin with GGUF" in refused(tmp_path, b"PK\x03\x04 something else")


def test_an_unknown_format_version_is_refused(tmp_path: Path) -> None:
    assert "version is 9" in refused(tmp_path, b"GGUF" + struct.pack("<IQQ", 9, 0, 0))


def test_every_cut_of_a_file_is_refused_and_none_crashes(tmp_path: Path, make_gguf: Make) -> None:
    whole = make_gguf(llama__context_length=4096)
    for length in [*range(200), *range(len(whole) - 200, len(whole) - 31)]:
        assert "completely" in refused(tmp_path, whole[:length]) or length < 4


@pytest.mark.parametrize(
    "body",
    [
        struct.pack("<QQ", 0, 2**60),
        struct.pack("<QQ", 2**60, 0),
        struct.pack("<QQ", 0, 1) + struct.pack("<Q", 2**50),
        struct.pack("<QQ", 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, 2**50),
        struct.pack("<QQ", 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IQ", 8, 2**50),
        struct.pack("<QQ", 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 77),
        struct.pack("<QQ", 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 50,
    ],
    ids=["pairs", "tensors", "key", "list", "text", "type", "depth"],
)
def test_a_claimed_length_is_checked_before_it_is_believed(tmp_path: Path, body: bytes) -> None:
    refused(tmp_path, b"GGUF" + struct.pack("<I", 3) + body)


def test_a_header_longer_than_the_limit_is_refused(
    tmp_path: Path, make_gguf: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_HEADER_BYTES", 1000)
    assert "more than 1000 bytes" in refused(tmp_path, make_gguf())


def test_a_missing_file_and_a_folder_are_refused_in_words(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.gguf", tmp_path):
        with pytest.raises(InvalidRequest, match="cannot be read"):
            read_header(path)
