"""Installing a GGUF file from a path and over HTTP: a real server on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pizzabot_builtin_plugins.local.files import install_path, install_url
from pizzabot_builtin_plugins.local.library import Library
from pizzabot_hookspecs import Conflict, InvalidRequest, PizzabotError, TooLarge, Unavailable


class Site(ThreadingHTTPServer):
    data = b""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Pages(BaseHTTPRequestHandler):
    server: Site

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", path.removeprefix("/to/"))
            self.end_headers()
        elif path == "/loop":
            self.send_response(302)
            self.send_header("Location", "/loop")
            self.end_headers()
        elif path in {"/m.gguf", "/endless.gguf", "/short.gguf", "/page.gguf"}:
            self.send_response(200)
            body = b"<html>" if path == "/page.gguf" else self.server.data
            if path != "/endless.gguf":
                self.send_header("Content-Length", str(len(body) + (10 if path == "/short.gguf" else 0)))
            self.end_headers()
            self.wfile.write(body)
            while path == "/endless.gguf":
                try:
                    self.wfile.write(bytes(65536))
                except OSError:
                    break
        else:
            self.send_response(404)
            self.end_headers()


@pytest.fixture
def site(make_gguf: Callable[..., bytes]) -> Iterator[Site]:
    with Site(("127.0.0.1", 0), Pages) as server:
        server.data = make_gguf()
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "models")


def left(library: Library) -> list[str]:
    return sorted(path.name for path in library.folder.rglob("*") if path.suffix != ".lock" and path.name != ".partial")


def fetch(url: str, library: Library, **options: Any) -> Path:
    return asyncio.run(install_url(url, library, lambda _done, _total: None, **options))


def refused(kind: type[PizzabotError], code: str, url: str, library: Library, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        fetch(url, library, **options)
    assert caught.value.code == code
    assert "\n" not in caught.value.detail
    assert left(library) == []
    return caught.value.detail


def test_a_file_is_fetched_under_its_own_name_or_another(site: Site, library: Library) -> None:
    digest = hashlib.sha256(site.data).hexdigest()
    assert fetch(f"{site.url}/m.gguf?token=x", library, sha256=digest.upper()).read_bytes() == site.data
    fetch(f"{site.url}/m.gguf", library, name="other")
    assert left(library) == ["m.gguf", "other.gguf"]


def test_a_redirect_is_followed_and_checked_like_the_first_address(site: Site, library: Library) -> None:
    fetch(f"{site.url}/to/{site.url}/m.gguf", library, name="m")
    library.remove("m")
    for target in ("ftp://x/m.gguf", "http://192.0.2.1/m.gguf", "file:///etc/passwd"):
        refused(InvalidRequest, "invalid_url", f"{site.url}/to/{target}", library, name="m")


def test_redirects_are_bounded(site: Site, library: Library) -> None:
    assert "more than 5" in refused(InvalidRequest, "invalid_url", f"{site.url}/loop", library)


@pytest.mark.parametrize(
    "url", ["http://example.com/m.gguf", "ftp://127.0.0.1/m.gguf", "https:///m.gguf", "http://[::1/m.gguf", "x://"]
)
def test_only_https_is_fetched_and_http_from_this_machine_alone(library: Library, url: str) -> None:
    refused(InvalidRequest, "invalid_url", url, library)


def test_a_user_and_a_query_are_never_repeated(library: Library) -> None:
    detail = refused(InvalidRequest, "invalid_url", "http://me:secret@example.com/m.gguf?key=hidden", library)
    assert "secret" not in detail
    assert "hidden" not in detail


def test_a_wrong_hash_is_refused(site: Site, library: Library) -> None:
    refused(InvalidRequest, "wrong_sha256", f"{site.url}/m.gguf", library, sha256="0" * 64)


def test_what_is_not_a_model_is_refused_at_its_first_bytes(site: Site, library: Library) -> None:
    assert "does not begin with GGUF" in refused(InvalidRequest, "not_a_model", f"{site.url}/page.gguf", library)


def test_the_size_limit_holds_for_announced_and_for_endless_files(site: Site, library: Library) -> None:
    refused(TooLarge, "model_too_large", f"{site.url}/m.gguf", library, max_bytes=100)
    refused(TooLarge, "model_too_large", f"{site.url}/endless.gguf", library, max_bytes=5_000_000)


def test_an_incomplete_answer_a_missing_file_and_a_dead_server_are_said(site: Site, library: Library) -> None:
    refused(Unavailable, "weights_unavailable", f"{site.url}/short.gguf", library)
    assert "HTTP 404" in refused(Unavailable, "weights_unavailable", f"{site.url}/gone.gguf", library)
    assert "pizzabot models install PATH" in refused(
        Unavailable, "weights_unavailable", "http://127.0.0.1:9/m.gguf", library
    )


def test_a_file_of_this_machine_is_copied_or_linked(library: Library, folder: Path) -> None:
    source = folder / "tiny.gguf"
    copied = asyncio.run(install_path(source, Library(folder.parent / "elsewhere")))
    assert copied.read_bytes() == source.read_bytes()
    linked = asyncio.run(install_path(source, Library(folder.parent / "linked"), name="mine", link=True))
    assert linked.is_symlink()
    assert Library(folder.parent / "linked").find("mine").size == source.stat().st_size


def test_an_installed_model_is_never_overwritten(site: Site, folder: Path) -> None:
    with pytest.raises(Conflict, match="pizzabot models remove tiny") as caught:
        fetch(f"{site.url}/m.gguf", Library(folder), name="tiny")
    assert caught.value.code == "model_exists"


def test_a_part_of_a_split_model_and_a_file_without_a_model_are_refused(
    library: Library, tmp_path: Path, make_gguf: Callable[..., bytes]
) -> None:
    for number, data in enumerate([make_gguf(split__count=3), make_gguf(architecture=None)]):
        path = tmp_path / f"{number}.gguf"
        path.write_bytes(data)
        with pytest.raises(InvalidRequest) as caught:
            asyncio.run(install_path(path, library))
        assert caught.value.code == "not_a_model"
