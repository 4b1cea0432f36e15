"""How a run ends: the table of spec/02 §2.3 as design/wire.md §0 reworded it."""

import pytest

from pizzabot.host.runs.terminal import decide_ending
from pizzabot_hookspecs.storage_backends import CancelReason, RunStatus

BOOM = RuntimeError("429 too many requests")


@pytest.mark.parametrize(
    ("cancelled", "error", "interrupted", "status", "event", "code"),
    [
        (CancelReason.SUPERSEDED, None, False, RunStatus.CANCELLED, "interrupted", "SUPERSEDED"),
        (CancelReason.SUPERSEDED, BOOM, True, RunStatus.CANCELLED, "interrupted", "SUPERSEDED"),
        (CancelReason.STOPPED, None, False, RunStatus.CANCELLED, "completed", "CANCELLED"),
        (CancelReason.STOPPED, BOOM, True, RunStatus.CANCELLED, "completed", "CANCELLED"),
        (None, None, True, RunStatus.INTERRUPTED, "interrupted", None),
        (None, BOOM, True, RunStatus.ERROR, "failed", "RATE_LIMIT"),
        (None, BOOM, False, RunStatus.ERROR, "failed", "RATE_LIMIT"),
        (None, None, False, RunStatus.SUCCESS, "completed", None),
    ],
)
def test_an_abort_beats_an_error_beats_an_interrupt(cancelled, error, interrupted, status, event, code):
    ending = decide_ending(cancelled=cancelled, error=error, interrupted=interrupted)
    assert (ending.status, ending.data["event"], ending.data.get("code")) == (status, event, code)


def test_a_failed_frame_has_the_redacted_text_and_never_a_reason():
    ending = decide_ending(
        cancelled=None,
        error=ValueError("key sk-123 refused"),
        interrupted=False,
        redact=lambda text: text.replace("sk-123", "***"),
    )
    assert ending.data["error"] == "key *** refused"
    assert ending.error == "key *** refused"
    assert "reason" not in ending.data


def test_an_error_without_a_text_is_named_by_its_type():
    assert decide_ending(cancelled=None, error=KeyError(), interrupted=False).data["error"] == "KeyError"
