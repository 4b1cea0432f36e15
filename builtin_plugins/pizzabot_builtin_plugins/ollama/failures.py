"""Makes what a call to Ollama raises say what happened: a `RunErrorCode` as `code` and a sentence with the way out."""

from __future__ import annotations

from pizzabot_hookspecs.errors import RunErrorCode, classify

MAX_DETAIL_CHARS = 500


def explain(error: Exception, *, host: str, model: str) -> None:
    """Set `code` and the text of `error`; its class stays."""
    code, sentence = _verdict(error, host, model)
    text = " ".join(str(error).split())[:MAX_DETAIL_CHARS]
    error.args = (f"{sentence}: {text}" if text else sentence, *error.args[1:])
    error.code = code  # type: ignore[attr-defined]


def _verdict(error: Exception, host: str, model: str) -> tuple[RunErrorCode, str]:
    status = getattr(error, "status_code", None)
    names = {base.__name__ for base in type(error).__mro__}
    if status == 404:
        return RunErrorCode.MODEL_UNAVAILABLE, f"{host} has no model {model}; `ollama pull {model}`"
    if names & {"TimeoutError", "TimeoutException"}:
        return RunErrorCode.TIMEOUT, f"{host} does not answer in time; it may be overloaded, or `timeout` is too short"
    if names & {"ConnectError", "ConnectionError"}:
        return RunErrorCode.MODEL_UNAVAILABLE, f"no Ollama at {host}; start it with `ollama serve`, or set host"
    if names & {"TransportError", "JSONDecodeError"}:
        return RunErrorCode.STREAM_ERROR, f"{host} broke off in the middle of its answer"
    if isinstance(status, int) and status >= 500:
        return RunErrorCode.MODEL_UNAVAILABLE, f"{host} fails with {model} (HTTP {status})"
    return RunErrorCode(classify(error)), f"{host} refuses the request to {model}"
