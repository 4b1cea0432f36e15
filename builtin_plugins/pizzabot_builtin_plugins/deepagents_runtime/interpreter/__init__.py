"""The code interpreter: the tool `eval` runs JavaScript in a sandbox, for work on bulk data (spec/05 §7).

bounds        every limit, with its name
image         QuickJS as WebAssembly: found, compiled once, kept on disk
guest         one sandbox: an instance of its own, limited and stopped from outside
prelude       what the guest finds in it: `tools`, `task`, `console`
declarations  names of one eval that a later one may declare again
threads       work of a guest in a thread of its own
sessions      which agent has which sandbox, how many there are, and when one goes
bridges       file tools as the guest calls them; `pages` reads what `read_file` returns
dispatching   subagents as the guest calls them; `launching` has them begin in order
driving       one eval from its code to its outcome; `outcomes` says it to the model
middleware    the tool, and the ends of an agent's turn

Everything here is imported behind `runtime.prepare`. `interpreter_middleware` is what a graph is built with, `warm`
what a background thread may do before anybody needs it.
"""

from __future__ import annotations

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.image import warm
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.middleware import interpreter_middleware

__all__ = ["interpreter_middleware", "warm"]
