"""What a call of a local model can raise. Each is one of langchain's model errors with the `code` of spec/05 §9.

LocalModelUnavailableError   MODEL_UNAVAILABLE   the process died, or did not start
LocalModelTimeoutError       TIMEOUT             silence for `read_seconds`, or no place within `queue_seconds`
LocalContextOverflowError    CONTEXT_LENGTH      the conversation does not fit; agents that can summarise do it on this
LocalModelRefusedError       GENERAL             llama.cpp refused it: a chat template that cannot lay it out, mostly
LocalStreamBrokenError       STREAM_ERROR        the answer was not what the protocol says

Imported with the chat model only: langchain is heavy.
"""

from __future__ import annotations

from langchain_core.exceptions import (  # noqa: TID253  loaded with the first model, in a thread
    ContextOverflowError,
    ModelAPIError,
    ModelConnectionError,
    ModelInvalidRequestError,
    ModelTimeoutError,
)

from pizzabot_hookspecs.errors import RunErrorCode


class LocalModelUnavailableError(ModelConnectionError):
    code = RunErrorCode.MODEL_UNAVAILABLE


class LocalModelTimeoutError(ModelTimeoutError):
    code = RunErrorCode.TIMEOUT


class LocalContextOverflowError(ContextOverflowError):
    code = RunErrorCode.CONTEXT_LENGTH


class LocalModelRefusedError(ModelInvalidRequestError):
    code = RunErrorCode.GENERAL


class LocalStreamBrokenError(ModelAPIError):
    code = RunErrorCode.STREAM_ERROR
