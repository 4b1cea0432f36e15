"""`ScriptedHost`: a host in memory, for the tests of a transport. It keeps a real event log and plays runs by script.

What the person says decides the run. `hold ...` answers with its first word and then waits until it is stopped or
released; `fail` ends the run with a root `failed` frame; anything else is echoed, word by word, in the frames of
design/wire.md §4 and §5. It has no storage, no model, no approvals and no queue: `multitask_strategy` is `interrupt`
or `reject`. What a test wants to say itself it appends with `append`::

    async with ScriptedHost() as host:
        await host.runs.command("t", {"id": 1, "method": "run.start", "params": {...}}, caller=LOCAL)
        host.append("t", "custom", {"name": "weather", "payload": 21})
"""

from pizzabot.testing.scripted_host.host import ScriptedHost

__all__ = ["ScriptedHost"]
