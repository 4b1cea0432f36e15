"""Plugin `echo`: a scripted, deterministic chat model. `echo:echo` answers with the user's last text, word by word.

The model of tests and of people who try pizzabot without a model. Text without directives is answered exactly as it
is, in chunks of one word with the whitespace that follows it. Directives anywhere in the last human message script the
answer, from any client; they are taken out of the text together with the whitespace behind them:

    [[pace 0.02]]                      seconds between chunks, 0..10
    [[delay 1]]                        seconds before the first chunk, 0..600
    [[chunk chars 3]]  [[chunk bytes 64]]  pieces of that many characters, or of at most so many bytes of UTF-8
    [[text anything]]                  the answer, instead of the rest of the message
    [[repeat 1000]]                    the answer so many times, joined by a space; 1,000,000 characters at most
    [[reasoning some thought]]         a reasoning block before the text, word by word
    [[tool add {"a": 1, "b": 2}]]      a tool call after the text; several are one message with several calls
    [[then]]                           what follows is the answer to the results of the tools before it
    [[usage 120 40]]                   input and output tokens to report; without it, words are counted
    [[error RATE_LIMIT slow down]]     fail before any output, with this code and message
    [[error-after 3 STREAM_ERROR cut]] fail after so many chunks; with fewer, after the last one

After the results of its tools the model says the step behind the next `[[then]]`, or, without one, the results
themselves, a line each. A directive that is malformed or out of bounds fails the turn with `bad_directive`; `[[other]]`
is plain text. `echo-plain` is the same without tool calling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.model_providers import ModelProvider


@hookimpl
def pizzabot_model_providers() -> list[Offer[ModelProvider]]:
    from pizzabot_builtin_plugins.echo.provider import EchoSettings, create

    return [Offer(name="echo", summary="repeats what you say, word by word", create=create, settings=EchoSettings)]
