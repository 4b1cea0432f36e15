"""ZIP archives: every cap and every code of spec/04 §5, and nothing else than the files that are in one."""

import io
import stat
import struct
import zipfile
import zlib

import pytest

from pizzabot.host.skills.archives import SKILL_CAPS, ArchiveCaps, read_archive
from pizzabot.host.skills.exchange import archive_of, bundle_of_archive
from pizzabot.host.skills.skill import parse_skill
from pizzabot_hookspecs import PizzabotError, TooLarge
from pizzabot_hookspecs.skill_sources import Origin, RawSkill

GOOD = b"---\nname: mail\ndescription: reads mail\n---\nbody\n"


def packed(*entries, comment=b""):
    """Entries are (name, content) or (ZipInfo, content)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
        archive.comment = comment
    return out.getvalue()


def info(name, mode):
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = mode << 16
    return entry


def renamed(archive, old, new):
    """Names as no library writes them; of the same length."""
    assert len(old) == len(new)
    return archive.replace(old, new)


def code_of(archive, read=bundle_of_archive):
    with pytest.raises(PizzabotError) as caught:
        read(archive)
    return caught.value.code


def test_a_valid_archive_lands_as_it_is():
    skill_file = b"---\r\nname: mail\r\ndescription: 'reads mail'\r\nextra: kept\r\n---\r\nbody"
    entries = [
        ("mail/SKILL.md", skill_file),
        ("mail/a/b.bin", b"\x00\xff"),
        ("mail/", b""),
        ("__MACOSX/x", b""),
        ("mail/.DS_Store", b""),
    ]
    assert bundle_of_archive(packed(*entries)) == ("mail", {"SKILL.md": skill_file, "a/b.bin": b"\x00\xff"})
    assert bundle_of_archive(packed(("SKILL.md", GOOD)))[0] == "mail"
    assert bundle_of_archive(packed(("x/y/mail/SKILL.md", GOOD)))[0] == "mail"


@pytest.mark.parametrize(
    ("archive", "code"),
    [
        (b"", "empty_archive"),
        (packed(), "empty_archive"),
        (packed(("mail/", b"")), "empty_archive"),
        (b"not a zip", "invalid_archive"),
        (packed(("SKILL.md", GOOD))[:-30], "invalid_archive"),
        (packed(*((f"f{place}", b"") for place in range(257))), "too_many_files"),
        (packed((info("SKILL.md", stat.S_IFLNK | 0o777), b"/etc/passwd")), "unsupported_entry"),
        (packed(("SKILL.md", GOOD), (info("x", stat.S_IFIFO | 0o644), b"")), "unsupported_entry"),
        (packed(("SKILL.md", GOOD), ("skill.md", GOOD)), "duplicate_entry"),
        (packed(("SKILL.md", GOOD), ("a", b""), ("a/b", b"")), "duplicate_entry"),
        (packed(("a/SKILL.md", GOOD), ("b/SKILL.md", GOOD)), "invalid_bundle"),
        (packed(("a/README.md", b"x")), "invalid_bundle"),
        (packed(("mail/SKILL.md", GOOD), ("other", b"x")), "invalid_bundle"),
        (packed(("SKILL.md", GOOD), ("a/" * 17 + "a", b"")), "invalid_bundle"),
        (packed(("SKILL.md", b"\xff")), "invalid_skill_md"),
        (packed(("SKILL.md", b"# no frontmatter")), "invalid_skill_md"),
        (packed(("SKILL.md", b"---\nname: mail\n---\nbody")), "invalid_skill_md"),
        (packed(("SKILL.md", b"---\nname: mail\ndescription: d\n---\n \n")), "invalid_skill_md"),
        (packed(("SKILL.md", b"---\nname: mail\ndescription: " + b"d" * 1025 + b"\n---\nb")), "invalid_skill_md"),
        (packed(("SKILL.md", b"---\ndescription: d\n---\nb")), "invalid_skill_name"),
        (packed(("SKILL.md", b"---\nname: ' mail'\ndescription: d\n---\nb")), "invalid_skill_name"),
        (packed(("SKILL.md", b"---\nname: Mail\ndescription: d\n---\nb")), "invalid_skill_name"),
        (packed(("SKILL.md", b"---\nname: ../mail\ndescription: d\n---\nb")), "invalid_skill_name"),
        (packed(("SKILL.md", b"---\nname: " + b"m" * 65 + b"\ndescription: d\n---\nb")), "invalid_skill_name"),
        (packed(("post/SKILL.md", GOOD)), "name_mismatch"),
    ],
)  # fmt: skip
def test_each_thing_that_can_be_wrong_has_its_code(archive, code):
    assert code_of(archive) == code


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "a/../b.txt",
        "/etc/x.txt",
        "C:\\x.txt12",
        "a\\b12.txt1",
        "a//b.txt12",
        "./ab.txt12",
        "a\x01b.txt123",
        "a\x00b.txt123",
    ],
)
def test_a_path_that_leads_out_is_refused_and_nothing_is_read(name):
    plain = "x" * len(name)
    assert code_of(renamed(packed(("SKILL.md", GOOD), (plain, b"x")), plain.encode(), name.encode())) == "unsafe_path"


def test_a_bomb_stops_at_the_cap_before_it_is_unpacked():
    bomb = packed(("SKILL.md", GOOD), ("zeros", b"\0" * (SKILL_CAPS.content_bytes + 1)))
    assert len(bomb) < 1024 * 1024
    with pytest.raises(TooLarge) as caught:
        read_archive(bomb, SKILL_CAPS)
    assert caught.value.code == "archive_too_large"


def test_many_entries_share_one_cap():
    caps = ArchiveCaps(archive_bytes=10_000, content_bytes=100, entries=10)
    archive = packed(*((f"f{place}", b"\0" * 60) for place in range(2)))
    assert code_of(archive, lambda given: read_archive(given, caps)) == "archive_too_large"


def test_an_archive_over_its_own_cap_is_not_opened():
    assert code_of(b"\0" * (SKILL_CAPS.archive_bytes + 1)) == "archive_too_large"


def test_an_entry_that_lies_about_its_size_is_invalid():
    content = b"\0" * 5000
    archive = bytearray(packed(("SKILL.md", GOOD), ("big", content)))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = archive.rfind(signature)
        struct.pack_into("<I", archive, at + offset, 10)
    assert code_of(bytes(archive)) == "invalid_archive"


def test_a_damaged_checksum_encryption_and_an_unknown_method_have_codes():
    archive = bytearray(packed(("SKILL.md", GOOD)))
    at = archive.find(b"PK\x01\x02")
    struct.pack_into("<I", archive, at + 16, zlib.crc32(b"other"))
    assert code_of(bytes(archive)) == "invalid_archive"
    archive = bytearray(packed(("SKILL.md", GOOD)))
    struct.pack_into("<H", archive, archive.find(b"PK\x01\x02") + 8, 1)
    assert code_of(bytes(archive)) == "unsupported_entry"
    archive = bytearray(packed(("SKILL.md", GOOD)))
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        struct.pack_into("<H", archive, archive.find(signature) + offset, 99)
    assert code_of(bytes(archive)) == "invalid_archive"


def test_a_directory_of_half_a_million_entries_is_refused_unread():
    archive = bytearray(packed(("SKILL.md", GOOD)))
    struct.pack_into("<I", archive, archive.rfind(b"PK\x05\x06") + 12, 2**31)
    assert code_of(bytes(archive)) == "too_many_files"


@pytest.mark.parametrize(
    "skill_file",
    [
        GOOD,
        b"---\ndescription: Use when: mail\nname: Other\ntools: mcp:a:b\n---\nbody",
        b"\xef\xbb\xbf---\r\ndescription: d\r\n---\r\nbody",
    ],
)
def test_what_is_exported_can_be_imported(skill_file):
    files = {"SKILL.md": skill_file, "a/b.bin": b"\x00\xff"}
    skill = parse_skill(RawSkill(id="mail", files=files, origin=Origin.USER), "test")
    skill_id, found = bundle_of_archive(archive_of(skill))
    assert (skill_id, found["a/b.bin"]) == ("mail", b"\x00\xff")
    again = parse_skill(RawSkill(id="mail", files=found, origin=Origin.USER), "test")
    assert (again.description, again.tools, again.name) == (skill.description, skill.tools, skill.name)
    assert archive_of(skill) == archive_of(skill)
