"""An answer as frames: message-start, blocks of text or reasoning with their deltas, message-finish."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from pizzabot_hookspecs import TooLarge
from pizzabot_hookspecs.wire import Frame
from pizzabot_replay.tables import Recording

MAX_CHARACTERS = 4_000_000
"""Of one answer: it is held in memory until it is stored."""

NODE = "model"


def is_answer_of(run_id: str, message_id: str) -> bool:
    """Whether the message was said by this run, in whichever of its attempts."""
    kind, _, rest = message_id.partition("-")
    return kind == "answer" and rest.partition("-")[2] == run_id


class Answer:
    """One message that is being said. Clients put it together by its namespace, node and `run_id`."""

    def __init__(self, run_id: str, now: Callable[[], int], *, message_id: str | None = None) -> None:
        # A turn that is run again after a crash says a new message: the log has the other one, cut off.
        self.message_id = message_id or f"answer-{uuid.uuid4().hex}-{run_id}"
        self._model_run = f"replay-{self.message_id}"
        self._namespace = (f"model_request:{run_id}",)
        self._now = now
        self._pieces: list[tuple[str, str]] = []
        self._block: list[str] = []
        self._kind = ""
        self._index = -1
        self._characters = 0

    @property
    def text(self) -> str:
        """What was said so far, without reasoning."""
        return "".join(text for kind, text in self._pieces if kind == "text")

    def recording(self, digest: str) -> Recording:
        return Recording(digest=digest, pieces=tuple(self._pieces))

    def begin(self) -> Frame:
        return self._frame({"event": "message-start", "role": "ai", "id": self.message_id})

    def say(self, kind: str, text: str) -> Iterator[Frame]:
        """A piece of kind `text` or `reasoning`. Raises `TooLarge` `answer_too_large`."""
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise TooLarge("answer_too_large", f"the model's answer is longer than {MAX_CHARACTERS} characters")
        if kind != self._kind:
            yield from self._end_block()
            self._kind, self._index, self._block = kind, self._index + 1, []
            yield self._block_frame("start", "content", {"type": kind, kind: ""})
        self._pieces.append((kind, text))
        self._block.append(text)
        yield self._block_frame("delta", "delta", {"type": f"{kind}-delta", kind: text})

    def end(self) -> Iterator[Frame]:
        yield from self._end_block()
        yield self._frame({"event": "message-finish", "usage": None, "metadata": {"finish_reason": "stop"}})

    def _end_block(self) -> Iterator[Frame]:
        if self._kind:
            yield self._block_frame("finish", "content", {"type": self._kind, self._kind: "".join(self._block)})

    def _block_frame(self, event: str, key: str, value: dict[str, str]) -> Frame:
        return self._frame({"event": f"content-block-{event}", "index": self._index, key: value})

    def _frame(self, data: dict[str, Any]) -> Frame:
        return Frame(
            method="messages",
            data={**data, "run_id": self._model_run},
            timestamp=self._now(),
            namespace=self._namespace,
            node=NODE,
        )
