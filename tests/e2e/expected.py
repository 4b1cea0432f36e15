"""What has to be there after the long session (`long_session`), written by hand from what was said."""

from __future__ import annotations

from typing import Any

APPROVED = {"decisions": [{"type": "approve"}]}
EDITED = {
    "decisions": [{"type": "edit", "edited_action": {"name": "kitchen__order", "args": {"dish": "salad", "table": 3}}}]
}
REFUSED = {"decisions": [{"type": "reject", "message": "too dear"}]}

READ_ONLY = "Error: '/local/recipes/new.md' is in a folder that may only be read: nothing was written"
NOT_GRANTED = "Error: '/local/inbox/b.txt' is in no folder that the person has granted; ls /local/ lists those"
MEMORY_OFF = "Error: Memory is disabled: nothing under /memories/ can be read or written"
SLOW_DOWN = "slow down"
NOT_ORDERED = (
    "The person refused this call of kitchen__order, and says: too dear\n\n"
    "It was not run. Do not call it again with these arguments unless the person asks for it."
)
NOT_KNOWN = (
    "This call was under way, and no result of it was kept: whether it happened is not known. "
    "The person chose not to run it again."
)
STOPPED = "Stopped by the user while it was running. Whether it took effect is not known."
RECIPES = (
    "['/local/recipes/Zwiebelk%C3%BCche 100%25.txt', "
    "'/local/recipes/%E6%97%A5%E6%9C%AC%E8%AA%9E [%E3%83%A1%E3%83%A2].md']"
)
PEOPLE = 'People: 4\n\n```json\n{"people": 4}\n```'
ODD = ("/日本語 メモ.md", "/a%41b.txt", "/[...slug].tsx", "/100% sure.txt")


def page(*lines: str) -> str:
    return "\n".join([f"@@ lines 1-{len(lines)} of {len(lines)} @@", *lines])


def ordered(dish: str, table: int, answer: Any, result: str | None = None) -> list[Any]:
    told = result or f"{dish} is ordered for table {table}"
    order = ("kitchen__order", told)
    return ["done", ("chef", [order, ("approval", "decided", answer), "Order done."], "Order done."), "Thank the chef."]


TRANSCRIPT: dict[str, list[Any]] = {
    "m1": ["done", "Good morning"],
    "m2": ["done", ("write_file", "Updated file /notes/plan.md"), "Noted.", {"/notes/plan.md": "created"}],
    "m3": [
        "done",
        ("edit_file", "Successfully replaced 1 instance(s) of the string in '/notes/plan.md'"),
        ("read_file", page("flour", "sugar")),
        "Changed.",
        {"/notes/plan.md": "changed"},
    ],
    "m4": ["done", ("ls", RECIPES), ("ls", "No files found"), "Two recipes."],
    "m5": ["done", ("read_file", "@@ lines 1-2 of 250 | next offset 2 @@\nonion 1\nonion 2"), "Onions."],
    "m6": ["done", ("write_file", f"failed: {READ_ONLY}"), "It may not be."],
    "m7": [
        "done",
        ("write_file", "Updated file /local/drafts/men%C3%BC [1].md"),
        ("edit_file", "Successfully replaced 1 instance(s) of the string in '/local/drafts/men%C3%BC [1].md'"),
        "Drafted.",
        {"/local/drafts/menü [1].md": "created"},
    ],
    "m8": ["done", ("write_file", "Updated file /memories/guests.md"), "Kept."],
    "m9": ["done", ("read_file", page("Ada eats no olives.")), "No olives."],
    "m10": [
        "done",
        *[("write_file", f"Updated file {name}") for name in ODD],
        *[("read_file", page(name)) for name in ODD],
        "Odd names.",
        dict.fromkeys(sorted(ODD), "created"),
    ],
    "m11": ["done", "A list of guests."],
    "m12": ["done", ("eval", "250"), "Counted.", {"/count.md": "created"}],
    "m13": [
        "done",
        ("eval", "It is 42. | I did nothing."),
        ("clerk", [("eval", "42"), "It is 42."], "It is 42."),
        ("clerk", ["I did nothing."], "I did nothing."),
        "Two clerks worked.",
    ],
    "m14": [
        "done",
        (
            "chef",
            [("kitchen__price", "pie costs 3 crowns"), ("read_file", page("Ask before you order.")), "Three crowns."],
            "Three crowns.",
        ),
        ("clerk", [("eval", "1"), "Written."], "Written."),
        "Both reported.",
        {"/clerk.md": "created"},
    ],
    "m15": ["failed"],
    "m16": ordered("soup", 1, APPROVED),
    "m17": ordered("salad", 3, EDITED),
    "m18": ordered("lobster", 4, REFUSED, f"failed: {NOT_ORDERED}"),
    "m19": [
        "done",
        ("eval", "A bun. | Tea comes."),
        ("chef", [("kitchen__bake", "bun is baked"), "A bun."], "A bun."),
        (
            "chef",
            [("kitchen__order", "tea is ordered for table 5"), ("approval", "decided", APPROVED), "Tea comes."],
            "Tea comes.",
        ),
        "In bulk.",
    ],
    "m20": [
        "done",
        (
            "waiter",
            [("ask_user", "Large"), ("input", "decided", {"kind": "option", "id": "l"}), "They chose."],
            "They chose.",
        ),
        "Noted.",
    ],
    "m21": [
        "done",
        ("ask_user", PEOPLE),
        ("input", "decided", {"kind": "form", "values": {"people": 4}}),
        "Booked.",
    ],
    "m22": [
        "done",
        ("ask_user", "no, thanks"),
        ("input", "decided", {"kind": "message", "value": "no, thanks"}),
        "Fine.",
    ],
    "m24": [
        "done",
        ("write_file", "Updated file /local/inbox/a.txt"),
        ("chef", [("kitchen__bake", "bread is baked"), "Baked."], "Baked."),
        ("write_file", f"failed: {NOT_GRANTED}"),
        ("ls", f"failed: {MEMORY_OFF}"),
        "Revoked.",
        {"/local/inbox/a.txt": "created"},
    ],
    "m25": ["done", ("write_file", "Updated file /draft.md"), "Begun.", {"/draft.md": "created"}],
    "m27": [
        "done",
        ("read_file", page("none")),
        ("write_file", "Updated file /draft.md"),
        "Second.",
        {"/draft.md": "changed"},
    ],
    "m28": ["stopped", ("chef", [("kitchen__bake", "cut: aborted")], "cut: aborted")],
    "m29": [
        "done",
        ("write_file", "Updated file /before.md"),
        ("chef", [("kitchen__bake", f"failed: {NOT_KNOWN}"), "Tart done."], "Tart done."),
        ("notice", "restarted"),
        ("recovery", "decided", {"choice": "skip"}),
        {"/before.md": "created"},
        ("write_file", "Updated file /after.md"),
        "It went on.",
        {"/after.md": "created"},
    ],
    "m30": ["done", ("read_file", page("soup and 🍕")), ("glob", "['/notes/plan.md']"), "All there."],
    "m31": [
        "done",
        ("eval", "Four crowns."),
        ("chef", [("kitchen__price", "tart costs 4 crowns"), "Four crowns."], "Four crowns."),
        "Asked the chef.",
    ],
    "m32": ["done", "Good night"],
}
"""The branch of the head, as `Session.transcript` tells it."""

OTHER_TRANSCRIPT = {"m1": ordered("stew", 7, APPROVED)}

MEMORY: list[list[str]] = [
    ["Good morning"],
    ["[write_file]", "Updated file /notes/plan.md", "Noted."],
    [
        "[edit_file]",
        "Successfully replaced 1 instance(s) of the string in '/notes/plan.md'",
        "[read_file]",
        page("flour", "sugar"),
        "Changed.",
    ],
    ["[ls ls]", RECIPES, "No files found", "Two recipes."],
    ["[read_file]", "@@ lines 1-2 of 250 | next offset 2 @@\nonion 1\nonion 2", "Onions."],
    ["[write_file]", READ_ONLY, "It may not be."],
    [
        "[write_file]",
        "Updated file /local/drafts/men%C3%BC [1].md",
        "[edit_file]",
        "Successfully replaced 1 instance(s) of the string in '/local/drafts/men%C3%BC [1].md'",
        "Drafted.",
    ],
    ["[write_file]", "Updated file /memories/guests.md", "Kept."],
    ["[read_file]", page("Ada eats no olives."), "No olives."],
    [
        *[part for name in ODD for part in ("[write_file]", f"Updated file {name}")],
        "[read_file read_file read_file read_file]",
        *map(page, ODD),
        "Odd names.",
    ],
    ["A list of guests."],
    ["[eval]", "250", "Counted."],
    ["[eval]", "It is 42. | I did nothing.", "Two clerks worked."],
    ["[task task]", "Three crowns.", "Written.", "Both reported."],
    [],
    ["[task]", "Order done.", "Thank the chef."],
    ["[task]", "Order done.", "Thank the chef."],
    ["[task]", "Order done.", "Thank the chef."],
    ["[eval]", "A bun. | Tea comes.", "In bulk."],
    ["[task]", "They chose.", "Noted."],
    ["[ask_user]", PEOPLE, "Booked."],
    ["[ask_user]", "no, thanks", "Fine."],
    [
        "[write_file]",
        "Updated file /local/inbox/a.txt",
        "[task]",
        "Baked.",
        "[write_file]",
        NOT_GRANTED,
        "[ls]",
        MEMORY_OFF,
        "Revoked.",
    ],
    ["[write_file]", "Updated file /draft.md", "Begun."],
    ["[read_file]", page("none"), "[write_file]", "Updated file /draft.md", "Second."],
    ["[task]", STOPPED],
    [
        "[write_file]",
        "Updated file /before.md",
        "[task]",
        "Tart done.",
        "[write_file]",
        "Updated file /after.md",
        "It went on.",
    ],
    ["[read_file]", page("soup and 🍕"), "[glob]", "['/notes/plan.md']", "All there."],
    ["[eval]", "Four crowns.", "Asked the chef."],
    ["Good night"],
]
"""The model's messages of each turn of the branch: `ai`, where they call tools in brackets, and `tool`."""

ARTIFACTS = {
    "/notes/plan.md": (2, "flour\nsugar\n"),
    **{name: (1, f"{name}\n") for name in ODD},
    "/count.md": (1, "250 onions\n"),
    "/clerk.md": (1, "done\n"),
    "/draft.md": (3, "second\n"),
    "/before.md": (1, "before\n"),
    "/after.md": (1, "after\n"),
}
"""Path to version and content."""

JOURNAL = [
    "price pie",
    "order soup for 1",
    "order salad for 3",
    "bake bun",
    "baked bun",
    "order tea for 5",
    "bake bread",
    "baked bread",
    "bake cake",
    "bake tart",
    "order stew for 7",
    "price tart",
]
"""What the MCP server did, each thing once: the cake was stopped, the tart was cut off by the crash."""
