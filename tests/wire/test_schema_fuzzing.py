"""schemathesis over the OpenAPI document of a real server, and junk that no document has: no 5xx, honest errors."""

from __future__ import annotations

import json
import socket
from urllib.parse import quote, urlsplit

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core import NOT_SET

EXAMPLES = 12
"""Of one operation."""
BOUNDED = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
SECONDS = httpx.Timeout(20.0)
DEEP = "[" * 20_000 + "]" * 20_000
HUGE = "9" * 5_000
BODIES = {
    "nothing": b"",
    "junk": b"\x00\x01\xfe\xff" * 16,
    "half an object": b'{"id": 1, "method": ',
    "latin-1": '{"method": "é"}'.encode("latin-1"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "deep": DEEP.encode(),
    "deep inside": f'{{"id": 1, "method": "run.start", "params": {{"input": {DEEP}}}}}'.encode(),
    "huge number": f'{{"id": {HUGE}, "method": "run.stop", "params": {{}}, "since": {HUGE}, "limit": {HUGE}}}'.encode(),
    "beyond a double": b'{"id": 1e999, "method": "run.stop", "channels": ["values"], "since": 1e999, "limit": -1e999}',
    "not a number": b'{"id": NaN, "method": "run.stop", "channels": ["values"], "depth": Infinity, "limit": NaN}',
    "NUL": json.dumps({"id": 1, "method": "\0", "thread_id": "a\0b", "values": {"\0": "\0"}, "before": "\0"}).encode(),
    "NUL as text": b'{"id": 1, "method": "run.start", "params": {"input": {"prompt": "a\\u0000b"}, "run_id": "nul-1"}}',
    "half a surrogate": b'{"id": 1, "method": "run.start", "params": {"input": {"prompt": "a\\ud800b"}}}',
    "half a surrogate for an id": b'{"thread_id": "\\udfff", "before": "\\udfff", "checkpoint_id": "\\udfff"}',
    "half a surrogate in a key": b'{"\\ud800": 1, "metadata": {"\\udc00": "\\ud83d"}, "values": {"\\ud800": 1}}',
    "a key twice": b'{"id": 1, "id": 2, "method": "run.stop", "method": "state.get", "params": {}}',
    "booleans for numbers": b'{"id": true, "method": "run.stop", "channels": ["values"], "since": true, "limit": true}',
    **{f"{value!r}": json.dumps(value).encode() for value in (None, True, 0, -1, 1.5, "text", [], [{}], {})},
    "wrong types": json.dumps(
        {"id": "1", "method": 5, "params": [], "channels": "values", "thread_id": 5, "metadata": [], "values": 1}
    ).encode(),
}
IDS = (
    "%00", "a%00b", "..", "%2e%2e", "%2e%2e%2f%2e%2e", "a%2fb", "%ff", "%C3%28", "%ED%A0%80", "x" * 255, "x" * 256,
    "x" * 9_000, "%F0%9F%8D%95", "a b", "%0d%0a", "list", "search", "events", ":", "-", "%25",
)  # fmt: skip
POSTS = ("/threads", "/threads/{id}/commands", "/threads/{id}/stream/events", "/threads/{id}/runs/r/cancel")
MORE_POSTS = ("/threads/{id}/state", "/threads/{id}/history", "/threads/{id}/state/checkpoint", "/threads/search")


def spoken_to(url):
    return httpx.Client(base_url=url, timeout=SECONDS, trust_env=False)


def answer_of(client, method, path, **request):
    """Status, content type and body; of an event stream the body is not read, for it never ends."""
    with client.stream(method, path, **request) as response:
        kind = response.headers.get("content-type", "").partition(";")[0]
        body = b"" if kind == "text/event-stream" else response.read()
        return response.status_code, kind, body


def check_answer(path, status, kind, body):
    no_draft = path == "/skills/generate" and status == 503  # the scripted model's answer is no skill
    assert status < 500 or no_draft, (path, status, body[:500])
    if kind == "text/event-stream":
        assert status == 200
        return
    if kind == "application/vnd.oai.openapi+json" or status == 204:
        return
    assert kind == "application/json", (path, status, kind, body[:200])
    told = json.loads(body)
    if path.endswith("/commands") and "type" in told:
        check_envelope(status, told)
    elif status >= 400:
        assert isinstance(told["error"], str), told
        assert isinstance(told["detail"], str), told
        assert set(told) <= {"error", "detail", "fields", "run_id", "status"}, told
        check_code(told["error"], told["detail"])


def check_envelope(status, told):
    assert told["type"] in ("success", "error"), told
    if told["type"] == "success":
        assert status == 200
        assert isinstance(told["result"], dict)
        return
    assert status in (200, 400, 401, 403, 404, 405, 408, 413, 422), (status, told)
    assert "id" in told
    check_code(told["error"], told["message"])


def check_code(code, detail):
    assert code == code.lower(), code
    assert code.replace("_", "").isalnum(), code
    assert detail, code
    assert "Traceback" not in detail, detail


@pytest.fixture(scope="module")
def url(shared_place):
    return shared_place.server.http


@pytest.fixture(scope="module")
def document(url):
    with spoken_to(url) as client:
        return client.get("/schema").json()


def operations(document):
    methods = ("get", "post", "put", "patch", "delete")
    return [(method, path) for path, item in document["paths"].items() for method in item if method in methods]


def test_the_document_names_every_route_with_its_answers(document):
    assert ("post", "/threads/{thread_id}/stream/events") in operations(document)
    for method, path in operations(document):
        operation = document["paths"][path][method]
        assert operation["summary"], (method, path)
        good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        assert all(answer["content"] for answer in good), (method, path)


def test_every_documented_operation_answers_generated_requests_without_a_5xx(url, document):
    """Streams are asked with a body of their own form and closed unread; everything else is checked in full."""
    schema = schemathesis.openapi.from_dict(document)
    seen = set()
    with spoken_to(url) as client:
        for found in schema.get_all_operations():
            _fuzz(client, found.ok())
            seen.add(found.ok().path)
    assert seen == {path for _, path in operations(document)}


def _fuzz(client, operation):
    @BOUNDED
    @given(case=operation.as_strategy())
    def fuzzed(case):
        _send(client, case, operation)

    fuzzed()


def _send(client, case, operation):
    path = operation.path
    for name, value in (case.path_parameters or {}).items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe="") or "x")
    request = {}
    if case.query:
        request["params"] = {key: str(value) for key, value in case.query.items()}
    if case.body is not NOT_SET:
        request["content"] = json.dumps(case.body).encode("utf-8", "surrogatepass")
        request["headers"] = {"content-type": "application/json"}
    status, kind, body = answer_of(client, operation.method.upper(), path, **request)
    check_answer(path, status, kind, body)
    if status < 300:
        documented = operation.definition.raw["responses"].get(str(status)) or next(
            answer for code, answer in operation.definition.raw["responses"].items() if code.startswith("2")
        )
        assert kind in documented["content"], (path, kind, documented)


@pytest.mark.parametrize("path", [*POSTS, *MORE_POSTS])
def test_no_body_brings_it_down(url, path):
    with spoken_to(url) as client:
        for name, body in BODIES.items():
            told = answer_of(client, "POST", path.format(id="fuzz"), content=body)
            try:
                check_answer(path, *told)
            except (AssertionError, LookupError, ValueError) as error:
                raise AssertionError(f"{name}: {told}") from error
        assert client.get("/ping").status_code == 200


def test_no_id_in_a_path_brings_it_down(url):
    with spoken_to(url) as client:
        for odd in IDS:
            for method, path in (
                ("GET", f"/threads/{odd}"),
                ("GET", f"/threads/{odd}/state"),
                ("GET", f"/threads/{odd}/interrupts"),
                ("GET", f"/threads/t/state/{odd}"),
                ("GET", f"/threads/{odd}/history"),
                ("DELETE", f"/threads/{odd}"),
                ("POST", f"/threads/{odd}/commands"),
                ("POST", f"/threads/{odd}/runs/{odd}/cancel"),
            ):
                status, kind, body = raw_request(url, method, path)
                check_answer(path, status, kind, body)
        assert client.get("/ping").status_code == 200


def raw_request(url, method, path):
    """As it is written: a client of HTTP would tidy the path first."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        head = f"{method} {path.replace(' ', '%20')} HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
        connection.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
        answer = b""
        while (piece := connection.recv(65536)) and b"text/event-stream" not in answer:
            answer += piece
    top, _, body = answer.partition(b"\r\n\r\n")
    lines = top.decode("latin-1").split("\r\n")
    kind = next((line.partition(":")[2] for line in lines if line.lower().startswith("content-type:")), "")
    kind = kind.partition(";")[0].strip()
    return int(lines[0].split(" ")[1]), kind, b"" if kind == "text/event-stream" else _unchunked(lines, body)


def _unchunked(lines, body):
    if not any(line.lower() == "transfer-encoding: chunked" for line in lines):
        return body
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return whole


WORDS = ("id", "messages", "role", "content", "config", "configurable", "checkpoint_id", "responses", "interrupt_id")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["input", "run_id", "multitask_strategy", "response", *WORDS]) | st.text(max_size=4), inner
        )
    ),
    max_leaves=25,
)


def test_any_parameters_of_any_command_get_an_envelope(url):
    with spoken_to(url) as client:

        @settings(BOUNDED, max_examples=120)
        @given(JSON, st.sampled_from(["run.start", "run.stop", "state.get", "input.respond", "nothing"]))
        def commands(params, method):
            body = json.dumps({"id": 1, "method": method, "params": params}).encode("utf-8", "surrogatepass")
            check_answer("/commands", *answer_of(client, "POST", "/threads/fuzz/commands", content=body))

        commands()
        assert client.get("/ping").status_code == 200
