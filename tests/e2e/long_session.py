"""The long session itself: what the person says and does, turn by turn. What must be there afterwards: `expected`.

Turn `m23` is the answer in words to the question of `m22` and becomes no turn of its own; `m27` stands beside `m26`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from household import RECIPE_TOLD, Household
from scripting import delegate, fan_out, one_by_one, steps, use
from sessions import APPROVE, Session

GUESTS = b"name,table\nAda,1\n"
MENU = "/local/drafts/menü [1].md"
ODD_NAMES = ("/日本語 メモ.md", "/a%41b.txt", "/[...slug].tsx", "/100% sure.txt")

COUNTING = f"""
let offset = 0, total = 0;
while (true) {{
  const page = await tools.readFile({{filePath: '{RECIPE_TOLD}', offset, limit: 100}});
  const lines = page.split('\\n').filter((line) => line);
  total += lines.length;
  if (lines.length < 100) break;
  offset += 100;
}}
await tools.writeFile({{filePath: '/count.md', content: `${{total}} onions\\n`}});
total
"""
CLERK_WRITES = "await tools.writeFile({filePath: '/clerk.md', content: 'done\\n'}); 1"


async def files(session: Session, client: Any) -> None:
    """m1 to m10: the thread's own files, granted folders, memory."""
    assert (await session.turn("Good morning")).text == "Good morning"
    await session.turn(steps(use("write_file", file_path="/notes/plan.md", content="flour\nsalt\n"), "Noted."))
    edit = use("edit_file", file_path="/notes/plan.md", old_string="salt", new_string="sugar")
    await session.turn(steps(edit, use("read_file", file_path="/notes/plan.md"), "Changed."))
    await session.turn(steps(use("ls", path="/local/recipes") + use("ls", path="/local/drafts"), "Two recipes."))
    await session.turn(steps(use("read_file", file_path=RECIPE_TOLD, limit=2), "Onions."))
    await session.turn(steps(use("write_file", file_path="/local/recipes/new.md", content="no"), "It may not be."))
    menu = use("edit_file", file_path=MENU, old_string="soup", new_string="soup and 🍕")
    await session.turn(steps(use("write_file", file_path=MENU, content="soup\n"), menu, "Drafted."))
    await client.http.put("/settings", json={"enableMemories": True})
    note = use("write_file", file_path="/memories/guests.md", content="Ada eats no olives.\n")
    await session.turn(steps(note, "Kept."))
    await session.turn(steps(use("read_file", file_path="/memories/guests.md"), "No olives."))
    odd = [use("write_file", file_path=name, content=f"{name}\n") for name in ODD_NAMES]
    await session.turn(steps(*odd, "".join(use("read_file", file_path=name) for name in ODD_NAMES), "Odd names."))


async def work(session: Session, client: Any) -> None:
    """m11 to m15: an attachment, data in bulk, specialists called by code and by the assistant, a model that fails."""
    form = {"file": ("guests.csv", GUESTS, "text/csv")}
    stored = (await client.http.client.post("/attachments", files=form)).json()
    part = {"type": "file", "url": stored["url"], "mediaType": "text/csv"}
    await session.turn([{"type": "text", "text": "[[text A list of guests.]]"}, part])
    await session.turn(steps(use("eval", code=COUNTING), "Counted."))
    clerks = fan_out("clerk", steps(use("eval", code="6 * 7"), "It is 42."), "I did nothing.")
    await session.turn(steps(use("eval", code=clerks), "Two clerks worked."))
    rules = use("read_file", file_path="/skills/chef/references/rules.md")
    chef = delegate("chef", use("kitchen__price", dish="pie"), rules, "Three crowns.")
    await session.turn(steps(chef + delegate("clerk", use("eval", code=CLERK_WRITES), "Written."), "Both reported."))
    failed = await session.turn("[[error RATE_LIMIT slow down]]")
    assert (failed.event, failed.code) == ("failed", "RATE_LIMIT")


def order(dish: str, table: int) -> str:
    return steps(delegate("chef", use("kitchen__order", dish=dish, table=table), "Order done."), "Thank the chef.")


async def asked(session: Session, script: str) -> str:
    """The id of the one thing that the turn asks."""
    assert (await session.turn(script)).event == "interrupted"
    (found,) = await session.waiting()
    return str(found["interruptId"])


async def questions(session: Session) -> None:
    """m16 to m22: approved, edited, refused; inside code; a choice, a form, an answer in words."""
    await session.answer(await asked(session, order("soup", 1)), APPROVE)
    edited = {"type": "edit", "edited_action": {"name": "kitchen__order", "args": {"dish": "salad", "table": 3}}}
    await session.answer(await asked(session, order("steak", 2)), {"decisions": [edited]})
    reject = {"type": "reject", "message": "too dear"}
    await session.answer(await asked(session, order("lobster", 4)), {"decisions": [reject]})
    bun, tea = use("kitchen__bake", dish="bun"), use("kitchen__order", dish="tea", table=5)
    code = one_by_one("chef", steps(bun, "A bun."), steps(tea, "Tea comes."))
    await session.answer(await asked(session, steps(use("eval", code=code), "In bulk.")), APPROVE)
    sizes = [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large"}]
    waiter = delegate("waiter", use("ask_user", question="Which size?", options=sizes), "They chose.")
    await session.answer(await asked(session, steps(waiter, "Noted.")), {"kind": "option", "id": "l"})
    fields = [{"name": "people", "label": "People", "type": "number"}]
    booking = steps(use("ask_user", question="Book?", fields=fields), "Booked.")
    await session.answer(await asked(session, booking), {"kind": "form", "values": {"people": 4}})
    await asked(session, steps(use("ask_user", question="Anything else?"), "Fine."))
    assert (await session.turn("no, thanks")).text == "Fine."


async def revoked_meanwhile(session: Session, client: Any, house: Household) -> None:
    """m24: while a specialist bakes, a folder is taken back and memory is switched off."""
    await client.http.post("/local-folders", json={"path": str(house.inbox), "readOnly": False})
    house.gates.hold("baking bread")
    run_id = await session.start(
        steps(
            use("write_file", file_path="/local/inbox/a.txt", content="a"),
            delegate("chef", use("kitchen__bake", dish="bread"), "Baked."),
            use("write_file", file_path="/local/inbox/b.txt", content="b"),
            use("ls", path="/memories"),
            "Revoked.",
        )
    )
    await asyncio.to_thread(house.gates.reached, "baking bread")
    await client.http.delete("/local-folders/inbox")
    await client.http.put("/settings", json={"enableMemories": False})
    house.gates.release("baking bread")
    assert (await session.ended(run_id)).event == "completed"
    await client.http.put("/settings", json={"enableMemories": True})


async def another_branch(session: Session, client: Any) -> None:
    """m25 to m27: the same file on two branches; the head goes to the older one and back."""
    await session.turn(steps(use("write_file", file_path="/draft.md", content="none\n"), "Begun."))
    await session.turn(steps(use("write_file", file_path="/draft.md", content="first\n"), "First."))
    read = use("read_file", file_path="/draft.md")
    write = use("write_file", file_path="/draft.md", content="second\n")
    await session.turn(steps(read, write, "Second."), branch_from="m26")
    await client.http.put("/threads/long/head", json={"turnId": "m26"})
    assert await artifact(client, "draft.md") == "first\n"
    await client.http.put("/threads/long/head", json={"turnId": "m27"})
    assert await artifact(client, "draft.md") == "second\n"


async def artifact(client: Any, path: str, *, of: str = "long") -> str:
    return str((await client.http.client.get(f"/threads/{of}/artifacts/{path}")).text)


async def stopped_in_a_tool(session: Session, house: Household) -> None:
    """m28."""
    house.gates.hold("baking cake")
    run_id = await session.start(delegate("chef", use("kitchen__bake", dish="cake"), "Never said."))
    await asyncio.to_thread(house.gates.reached, "baking cake")
    await session.stop(run_id)
    ended = await session.ended(run_id)
    assert (ended.event, ended.code) == ("completed", "CANCELLED")
    house.gates.release("baking cake")


async def until_the_crash(session: Session, other: Session, house: Household) -> str:
    """m29, and an approval that is open on another thread; the id of the run that is in a tool of a specialist."""
    await asked(other, order("stew", 7))
    house.gates.hold("baking tart")
    run_id = await session.start(
        steps(
            use("write_file", file_path="/before.md", content="before\n"),
            delegate("chef", use("kitchen__bake", dish="tart"), "Tart done."),
            use("write_file", file_path="/after.md", content="after\n"),
            "It went on.",
        )
    )
    await asyncio.to_thread(house.gates.reached, "baking tart")
    return run_id


async def after_the_crash(session: Session, other: Session, run_id: str) -> None:
    """The decision about the tart, the other thread's approval, m30 to m32."""
    ended = await session.ended(run_id)
    assert (ended.event, ended.code) == ("failed", "NEEDS_ATTENTION")
    (recovery,) = await session.waiting()
    assert recovery["kind"] == "recovery"
    assert [action["tool"] for action in recovery["payload"]["actions"]] == ["kitchen__bake"]
    assert (await session.answer(recovery["interruptId"], {"choice": "skip"})).text == "It went on."
    (approval,) = await other.waiting()
    assert (await other.answer(approval["interruptId"], APPROVE)).text == "Thank the chef."
    found = steps(use("read_file", file_path=MENU), use("glob", pattern="*.md", path="/notes"), "All there.")
    await session.turn(found)
    code = fan_out("chef", steps(use("kitchen__price", dish="tart"), "Four crowns."))
    await session.turn(steps(use("eval", code=code), "Asked the chef."))
    assert (await session.turn("Good night")).text == "Good night"


def said_on_the_branch(session: Session) -> list[str]:
    """The texts of the person's messages on the branch of the head, in order."""
    gone = {"m23", "m26"}
    return [
        script if isinstance(script, str) else "".join(part.get("text", "") for part in script)
        for name, script in session.scripts.items()
        if name not in gone
    ]
