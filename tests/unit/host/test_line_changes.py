"""Differences by lines: a diff turns what was into what is, and takes no longer than it may."""

import random
import re

import pytest

from pizzabot.host.workspace import line_changes as module
from pizzabot.host.workspace.line_changes import line_changes, unified_diff

NEVER = float("inf")


def patched(before, diff):
    """`before` after the hunks of a unified diff, as `patch` applies them."""
    lines = [f"{line}\n" for line in before.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    lines = lines if lines[-1] else lines[:-1]
    out, at = [], 0
    told = diff.split("\n")[2:-1]
    for place, line in enumerate(told):
        if found := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+.* @@", line):
            start = int(found[1]) - (found[2] != "0")
            out, at = [*out, *lines[at:start]], start
            continue
        if line.startswith("\\"):
            continue
        ended = not (place + 1 < len(told) and told[place + 1].startswith("\\"))
        text = line[1:] + ("\n" if ended else "")
        if line[0] in " -":
            assert lines[at] == text
            at += 1
        if line[0] in " +":
            out.append(text)
    return "".join([*out, *lines[at:]])


@pytest.mark.parametrize("seed", range(40))
def test_a_diff_turns_what_was_into_what_is_and_the_counts_are_its_lines(seed):
    chance = random.Random(seed)
    before = [chance.choice("abcdefgh") for _ in range(chance.randint(0, 60))]
    after = [line for line in before if chance.random() > 0.2]
    for _ in range(chance.randint(0, 6)):
        after.insert(chance.randint(0, len(after)), chance.choice("xyz"))
    old, new = ("\n".join(lines) + ("\n" if chance.random() < 0.5 else "") for lines in (before, after))
    diff, cut = unified_diff(old.encode(), new.encode(), path="/a", deadline=NEVER)
    assert not cut
    assert patched(old, diff) == new
    counted = line_changes(old.encode(), new.encode(), deadline=NEVER)
    body = diff.split("\n")[2:]
    signs = [sum(line.startswith(sign) for line in body) for sign in "+-"]
    assert [counted.added, counted.removed] == signs


def test_what_is_no_text_has_no_lines_and_no_diff():
    assert line_changes(b"\0", b"a", deadline=NEVER).added is None
    assert unified_diff(b"\0", b"a", path="/a", deadline=NEVER) == (None, False)


def test_comparing_ends_at_its_time_and_a_diff_at_its_size(monkeypatch):
    old, new = b"a\nb\nc\n", b"b\nx\na\n"
    assert line_changes(old, new, deadline=0.0).cut
    assert unified_diff(old, new, path="/a", deadline=0.0) == (None, True)
    monkeypatch.setattr(module, "MAX_DIFF_BYTES", 40)
    diff, cut = unified_diff(b"", b"line\n" * 50, path="/a", deadline=NEVER)
    assert cut
    assert len(diff) <= 40
    assert diff.endswith("\n")
    monkeypatch.setattr(module, "MAX_COMPARED_BYTES", 5)
    assert unified_diff(old, new, path="/a", deadline=NEVER) == (None, True)


def test_two_large_texts_without_a_common_line_are_compared_in_time():
    old, new = ("".join(f"{word} {number}\n" for number in range(20_000)).encode() for word in ("a", "b"))
    counted = line_changes(old, new, deadline=NEVER)
    assert (counted.added, counted.removed) == (20_000, 20_000)
