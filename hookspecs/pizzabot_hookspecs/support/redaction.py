"""Redaction (spec/09 §5): `Redactor` hides known secrets by value, in each of their forms, others by key and by shape.

By value because keys are not enough: `GITHUB_PERSONAL_ACCESS_TOKEN` in a logged MCP entry, a header echoed by a server
(hard case 49). A redactor is shared by everything in the process that writes text for people or models.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from pizzabot_hookspecs.support.secret_forms import MIN_SECRET_CHARS, forms, pattern_of
from pizzabot_hookspecs.support.structures import plain

REDACTED = "<redacted>"

MAX_SECRETS = 1_000
"""More values than this are refused with ValueError: a secret that cannot be hidden must not be used."""

_KEY = re.compile(
    r"authorization|cookie|password|passwd|secret|token|api[_-]?key|private[_-]?key|credential|session", re.IGNORECASE
)
# Whole words that name a secret when they end a key: `api_key` and `MCP_API_KEY`, not `max_tokens` or `token_file`.
_SECRET_SETTING = re.compile(
    r"(?:^|[_.-])(?:authorization|cookie|password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|credential)s?$",
    re.IGNORECASE,
)
# Names every desktop exports and values that mean nothing: hiding "user" or "true" everywhere would ruin each text.
_HARMLESS_NAME = re.compile(
    r"XDG_SESSION_|DESKTOP_SESSION$|SESSION_MANAGER$|GDMSESSION$|PIZZABOT__SECRETS__", re.IGNORECASE
)
_HARMLESS_VALUES = frozenset({"true", "false", "none", "null", "user", "auto", "default", "disabled", "enabled"})

_SCHEME = r"(?:Bearer|Basic|Token|Digest)\s+"
# `secret-stores:file` is an offer, not an assignment.
_SHAPES = re.compile(
    r"(?P<url>[?&](?:access_token|api_key|key|secret|token)=)(?!<redacted>)[^&#\s\"'<>]+"
    r"|(?P<userinfo>://[^/\s:@\"']{0,256}:)(?!<redacted>)[^/\s@\"']{1,1024}(?=@)"
    r"|(?P<assigned>(?:api[_-]?key|password|passwd|secret(?!-stores:)|token(?!s)|authorization)[\w-]{0,64}[\"']?\s{0,8}(?:=|:)\s{0,8})"
    r"(?:(?P<quote>[\"'])(?!<redacted>)(?:\\.|(?!(?P=quote))[^\\])+(?P=quote)"
    rf"|(?!<redacted>|[\"']){_SCHEME}(?!<redacted>)[^\s\"',;]+|(?!<redacted>|[\"']|{_SCHEME})[^\s\"',;&}}\])]+)"
    r"|(?P<bearer>\bBearer\s{1,8})(?!<redacted>)[A-Za-z0-9._~+/=-]+",
    re.IGNORECASE,
)

# What every match of the pattern above holds one of: most lines have none and cost microseconds.
_SIGNS = ("api", "passw", "secret", "token", "authorization", "bearer", "key=", "://")


def sensitive_key(key: str) -> bool:
    """Whether what stands under `key` is hidden in logs and lists, whatever it is (spec/09 §5)."""
    return _KEY.search(key) is not None


def names_a_secret(key: str) -> bool:
    """Whether a setting called `key` holds a secret. Stricter than `sensitive_key`: `token_file` does not."""
    return _SECRET_SETTING.search(key) is not None


class Redactor:
    """Hides secrets in texts and structures. Safe to use from several threads; adding one takes effect at once."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._values: set[str] = set()
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0
        self.add(*secrets)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Redactor:
        """One that knows the values of the variables whose name looks sensitive."""
        return cls(
            value
            for name, value in environ.items()
            if sensitive_key(name) and not _HARMLESS_NAME.match(name) and value.strip().lower() not in _HARMLESS_VALUES
        )

    def add(self, *secrets: str) -> None:
        """Hide these from now on, also JSON-escaped, URL-encoded and in base64. Below 4 characters they are ignored.

        The pattern is compiled here, by whoever resolves a secret, never by whoever writes a line.
        """
        with self._lock:
            values = {secret.strip() for secret in secrets} - self._values
            values = {value for value in values if len(value) >= MIN_SECRET_CHARS}
            if not values:
                return
            if len(self._values) + len(values) > MAX_SECRETS:
                raise ValueError(f"more than {MAX_SECRETS} secrets are known; no further one can be hidden")
            self._values |= values
            self._forms = self._forms.union(*map(forms, values))
            self._longest = max(map(len, self._forms))
            self._pattern = pattern_of(self._forms)

    def __call__(self, text: str) -> str:
        return self.text(text)

    def text(self, text: str) -> str:
        """`text` with known secrets, bearer tokens, URL parameters and assignments as `<redacted>`. Idempotent."""
        text = self.values(text)
        lowered = text.lower()
        if any(sign in lowered for sign in _SIGNS):
            text = _SHAPES.sub(_hide_shape, text)
        return text

    def values(self, text: str) -> str:
        """`text` with known secrets as `<redacted>`, by value alone.

        For what a person asked to see: there `token: …` may be the very thing.
        """
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)

    def structure(self, value: object) -> Any:
        """`value` as plain JSON within the bounds of spec/09 §5, redacted by key and by value.

        Depth 8, strings 32,000 characters, arrays 100, keys 100; circles, bytes and exceptions are shown, not walked.
        """
        return plain(value, text=self.cut, hidden=_hidden)

    def cut(self, text: str, limit: int) -> str:
        """`text` redacted, cut after `limit` characters; a secret across that border is hidden whole."""
        if len(text) <= limit:
            return self.text(text)
        end = limit
        if self._pattern is not None:
            for match in self._pattern.finditer(text, 0, limit + self._longest):
                if match.start() < limit < match.end():
                    end = match.start()
        return f"{self.text(text[:end])}…[{len(text) - end} more characters]"


def _hidden(key: str, value: object) -> object | None:
    """What is shown instead of `value`, or None to show it. Numbers of tokens are figures, not secrets."""
    if not sensitive_key(key) or value is None or isinstance(value, bool):
        return None
    counted = isinstance(value, int | float) and key.lower().endswith("tokens")
    return None if counted else REDACTED


# Not a value but a way to write one: `token = {env = "NAME"}`, `${NAME}`, `API_KEY=…` in advice of our own.
_PLACEHOLDER = re.compile(r"(?:\{(?:env|keyring|file)?|…)(?=\s)|\$\{\w*\}(?!\w)")


def _hide_shape(match: re.Match[str]) -> str:
    if match["assigned"] and _PLACEHOLDER.match(match.string, match.end("assigned")):
        return match[0]
    start = match["url"] or match["userinfo"] or match["assigned"] or match["bearer"]
    quote = match["quote"] or ""
    return f"{start}{quote}{REDACTED}{quote}"
