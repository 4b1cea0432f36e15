"""What went wrong in somebody else's code, as one line for a report: never a traceback, never a control character."""

LONGEST_REASON = 500
"""Characters. A message can hold a whole document (a validation error, an answer of a server)."""


def one_line(text: str) -> str:
    """`text` on one line, at most `LONGEST_REASON` characters, without what a terminal would obey."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text[: LONGEST_REASON * 8]).split())
    return words if len(words) <= LONGEST_REASON else words[: LONGEST_REASON - 1] + "…"


def describe(error: BaseException) -> str:
    """`Type: message`, the missing module of an import error, and the cause that the error was raised from."""
    text = _type_and_message(error)
    if isinstance(error, ImportError) and error.name and error.name not in text:
        text += f" (missing module: {error.name})"
    if error.__cause__ is not None:
        text += f" (from {_type_and_message(error.__cause__)})"
    return one_line(text)


def _type_and_message(error: BaseException) -> str:
    try:
        message = one_line(str(error))
    except Exception:  # noqa: BLE001  # a foreign __str__ must not hide the error that it describes
        message = "its message cannot be shown"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
