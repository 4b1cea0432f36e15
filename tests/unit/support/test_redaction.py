"""Redaction (spec/09 §5, hard case 49): by value in every form, by key, by shape, within bounds."""

from __future__ import annotations

import base64
import json
import threading
import time
from urllib.parse import quote

import pytest

from pizzabot_hookspecs.support.redaction import MAX_SECRETS, REDACTED, Redactor, names_a_secret, sensitive_key
from pizzabot_hookspecs.support.structures import MAX_ITEMS, MAX_KEYS, MAX_TEXT_CHARS

SECRET = 'pä$$ "word"/+&=%\\x7'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    ],
)
def test_a_known_secret_is_hidden_in_every_form_it_travels_in(form: str) -> None:
    shown = Redactor([SECRET]).text(f"before {form} after")
    assert form not in shown
    assert REDACTED in shown
    assert shown.startswith("before ")


@pytest.mark.parametrize("user", ["", "a", "ab", "abc", "abcd"])
@pytest.mark.parametrize("after", ["", "x", "xy", "xyz"])
def test_a_secret_inside_longer_base64_is_hidden_at_any_offset(user: str, after: str) -> None:
    secret = "correct-horse-battery"
    encoded = base64.b64encode(f"{user}{secret}{after}".encode()).decode()
    shown = Redactor([secret]).text(f"x {encoded}")
    left = shown.removeprefix("x ").split(REDACTED)
    assert len(left) == 2
    assert sum(map(len, left)) <= len(user) * 4 / 3 + len(after) * 4 / 3 + 9


def test_the_longest_secret_wins() -> None:
    assert Redactor(["abcd", "abcdefgh"]).text("abcdefgh abcd") == f"{REDACTED} {REDACTED}"


def test_values_shorter_than_four_characters_are_not_hidden() -> None:
    assert Redactor(["abc"]).text("abc") == "abc"


def test_a_secret_that_is_added_later_is_hidden_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.text("hunter22") == "hunter22"
    redactor.add("hunter22")
    assert redactor("hunter22") == REDACTED


def test_each_line_of_a_private_key_is_hidden() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"]
    shown = Redactor(["\n".join(lines)]).text(f"line 2 is {lines[1]}")
    assert shown == f"line 2 is {REDACTED}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.def-1", "Authorization: <redacted>"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: <redacted>"),
        ("sent bearer abc.def", "sent bearer <redacted>"),
        ("MCP_API_KEY=SECRET-123 next", "MCP_API_KEY=<redacted> next"),
        ("GITHUB_PERSONAL_ACCESS_TOKEN=ghp_x1", "GITHUB_PERSONAL_ACCESS_TOKEN=<redacted>"),
        ('{"api_key": "a\\"b c", "x": 1}', '{"api_key": "<redacted>", "x": 1}'),
        ("password: 'it is'", "password: '<redacted>'"),
        ("https://h/p?token=abc&x=1", "https://h/p?token=<redacted>&x=1"),
        ("https://h/p?x=1&key=abc#frag", "https://h/p?x=1&key=<redacted>#frag"),
        ("postgres://me:pw@host/db", "postgres://me:<redacted>@host/db"),
        ("max_tokens=4096", "max_tokens=4096"),
        ("the token is in the keyring", "the token is in the keyring"),
    ],
)
def test_unknown_secrets_are_hidden_by_their_shape_and_twice_is_once(text: str, shown: str) -> None:
    redactor = Redactor()
    assert redactor.text(text) == shown
    assert redactor.text(shown) == shown


def test_the_environment_gives_values_of_sensitive_names_but_no_everyday_words() -> None:
    redactor = Redactor.from_environment(
        {
            "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789",
            "MCP_API_KEY": "SECRET-123",
            "XDG_SESSION_CLASS": "user",
            "USE_TOKEN": "true",
            "PATH": "/usr/bin",
        }
    )
    assert redactor.text("ghp_0123456789 SECRET-123 /usr/bin") == f"{REDACTED} {REDACTED} /usr/bin"
    assert redactor.text("true user") == "true user"


def test_structures_are_redacted_by_key_whatever_the_value_is() -> None:
    shown = Redactor().structure(
        {"Authorization": "x", "mcpApiKey": "x", "session": {"a": 1}, "cookie": ["x"], "private-key": 5, "plain": "x"}
    )
    assert shown == {
        "Authorization": REDACTED,
        "mcpApiKey": REDACTED,
        "session": REDACTED,
        "cookie": REDACTED,
        "private-key": REDACTED,
        "plain": "x",
    }


def test_counts_of_tokens_are_figures_and_stay() -> None:
    assert Redactor().structure({"input_tokens": 12, "max_tokens": None, "token": 12}) == {
        "input_tokens": 12,
        "max_tokens": None,
        "token": REDACTED,
    }


def test_secrets_in_keys_lists_and_nested_values_are_hidden() -> None:
    shown = Redactor(["hunter22"]).structure({"a hunter22 b": [{"deep": ("x hunter22",)}]})
    assert shown == {f"a {REDACTED} b": [{"deep": [f"x {REDACTED}"]}]}


def test_structures_are_bounded_in_depth_text_items_and_keys() -> None:
    deep: dict[str, object] = {}
    inner = deep
    for _ in range(20):
        inner["in"] = inner = {}  # type: ignore[assignment]
    shown = Redactor().structure(
        {"deep": deep, "text": "x" * 40_000, "list": list(range(200)), "keys": {str(n): n for n in range(200)}}
    )
    assert json.dumps(shown["deep"]).count("{") <= 8
    assert shown["text"] == "x" * MAX_TEXT_CHARS + "…[8000 more characters]"
    assert len(shown["list"]) == MAX_ITEMS + 1
    assert shown["list"][-1] == "…[100 more items]"
    assert len(shown["keys"]) == MAX_KEYS + 1


def test_a_secret_across_the_cut_is_hidden_whole() -> None:
    secret = "s3cr3t-" * 6
    text = "x" * (MAX_TEXT_CHARS - 10) + secret + "y" * 100
    shown = Redactor([secret]).structure(text)
    assert "s3cr3t" not in shown
    assert shown.startswith("x" * (MAX_TEXT_CHARS - 10) + "…[")


def test_circles_bytes_and_strange_values_are_shown_not_walked() -> None:
    class Rude:
        def __str__(self) -> str:
            raise RuntimeError("no")

    circle: dict[str, object] = {"raw": b"12345", "rude": Rude(), "nan": float("nan"), "big": 10**400}
    circle["self"] = circle
    shown = Redactor().structure(circle)
    assert shown["self"] == "<circular>"
    assert shown["raw"] == "<5 bytes>"
    assert shown["rude"] == "<Rude that cannot be shown>"
    json.dumps(shown, allow_nan=False)


def test_an_exception_shows_name_message_stack_code_and_cause_without_secrets() -> None:
    class RefusedError(Exception):
        code = "refused"

    try:
        try:
            raise ValueError("header was hunter22")
        except ValueError as cause:
            raise RefusedError("server said hunter22") from cause
    except RefusedError as error:
        shown = Redactor(["hunter22"]).structure(error)
    assert shown["name"] == "RefusedError"
    assert shown["message"] == f"server said {REDACTED}"
    assert shown["code"] == "refused"
    assert "test_redaction.py" in shown["stack"]
    assert shown["cause"]["message"] == f"header was {REDACTED}"
    assert "hunter22" not in json.dumps(shown)


def test_more_secrets_than_the_limit_are_refused_not_forgotten() -> None:
    redactor = Redactor(f"secret-{n:05}" for n in range(MAX_SECRETS))
    with pytest.raises(ValueError, match="1000 secrets"):
        redactor.add("one-more-secret")


def test_secrets_added_by_several_threads_are_all_hidden() -> None:
    redactor = Redactor()
    secrets = [f"secret-number-{n}-x" for n in range(80)]
    threads = [threading.Thread(target=lambda part=secrets[n::8]: redactor.add(*part)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert redactor.text(" ".join(secrets)) == " ".join([REDACTED] * 80)


@pytest.mark.parametrize(
    "evil", ["token=" * 60_000, "token" + "a" * 300_000, "://a" * 75_000, "token='" + "\\'" * 150_000]
)
def test_text_that_is_made_to_be_slow_is_not(evil: str) -> None:
    started = time.perf_counter()
    Redactor(["aaaaab", "hunter22"]).text(evil)
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("token", True), ("api_key", True), ("MCP_API_KEY", True), ("password", True), ("client-secret", True),
        ("Authorization", True), ("api_keys", True), ("token_file", False), ("tokenizer", False), ("region", False),
    ],
)  # fmt: skip
def test_a_setting_names_a_secret_only_when_it_ends_in_one(key: str, secret: bool) -> None:
    assert names_a_secret(key) is secret


def test_sensitive_keys_are_those_of_the_specification() -> None:
    for key in (
        "authorization",
        "Set-Cookie",
        "passwd",
        "apiKey",
        "API-KEY",
        "private_key",
        "aws_credentials",
        "sessionId",
    ):
        assert sensitive_key(key)
    assert not sensitive_key("model")


@pytest.mark.parametrize(
    "advice",
    [
        "OPENAI_API_KEY=… pizzabot serve",
        'write api_key = {env = "NAME"} instead',
        'token = { env = "TOKEN" }',
        "set token: ${NAME}",
        "there are secret-stores:environment, secret-stores:file",
    ],
)
def test_advice_on_how_to_write_a_secret_stays_readable(advice: str) -> None:
    assert Redactor().text(advice) == advice


def test_a_secret_that_begins_like_a_placeholder_is_hidden() -> None:
    assert "k9" not in Redactor().text("password = {k9aaaa secret: …k9 token={envk9")


def test_by_value_alone_what_only_looks_like_a_secret_stays() -> None:
    redactor = Redactor(["hunter22"])
    assert redactor.values("token: abc, hunter22, Bearer xyz") == f"token: abc, {REDACTED}, Bearer xyz"
    assert Redactor().values("hunter22") == "hunter22"
