"""Which addresses are loopback, which exposure is refused, which Host and Origin headers are ours (spec/01 §1, §2)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from pizzabot_builtin_plugins.http_server.settings import HttpSettings
from pizzabot_hookspecs import NotPermitted

MIN_TOKEN_CHARACTERS = 32
"""What a token must have before anything but loopback is bound (spec/09 promise 1)."""

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")


def is_loopback(host: str) -> bool:
    """`localhost`, `::1` (also in brackets) and IPv4 in 127/8. A DNS name never is, whatever it begins with."""
    name = host.strip().removeprefix("[").removesuffix("]").lower()
    if name == "localhost":
        return True
    address = _ip(name)
    return address is not None and (
        address.is_loopback if address.version == 4 else address == ipaddress.IPv6Address("::1")
    )


def check_exposure(settings: HttpSettings) -> None:
    """Refuse a bind beyond loopback without a token, with a short one, or without explicit origins.

    Raises `NotPermitted` with `token_required`, `token_too_short` or `origins_required`, in this order; the text names
    everything that is missing.
    """
    host = settings.host
    if is_loopback(host):
        return
    token = settings.token.get_secret_value() if settings.token else ""
    missing: dict[str, str] = {}
    if not token:
        missing["token_required"] = f"no token is set (PIZZABOT_API_TOKEN, at least {MIN_TOKEN_CHARACTERS} characters)"
    elif len(token) < MIN_TOKEN_CHARACTERS:
        missing["token_too_short"] = (
            f"its token has {len(token)} characters instead of at least {MIN_TOKEN_CHARACTERS} (PIZZABOT_API_TOKEN)"
        )
    if not settings.allowed_origins:
        missing["origins_required"] = "no browser origin is named (PIZZABOT_ALLOWED_ORIGINS, or allowed_origins)"
    if missing:
        raise NotPermitted(
            next(iter(missing)),
            f"host {host} is reachable from other machines and {' and '.join(missing.values())}; "
            f"set {'both' if len(missing) > 1 else 'it'}, or bind 127.0.0.1",
        )


def bracketed(host: str) -> str:
    """A host as a URL has it: IPv6 in brackets."""
    name = host.removeprefix("[").removesuffix("]")
    return f"[{name}]" if ":" in name else name


@dataclass(frozen=True, kw_only=True)
class Doors:
    """What the server is called, once it is bound: the Host and Origin headers that may come in."""

    host: str
    port: int
    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def of(cls, settings: HttpSettings, port: int) -> Doors:
        own_names = [bracketed(settings.host)]
        if is_loopback(settings.host):
            own_names += ["localhost", "127.0.0.1", "[::1]"]
        own = frozenset(f"http://{name}:{port}".lower() for name in own_names)
        hosts = frozenset(settings.allowed_hosts)
        return cls(host=settings.host, port=port, hosts=hosts, origins=settings.origins | own)

    @property
    def address(self) -> str:
        return f"http://{bracketed(self.host)}:{self.port}"

    def admits_host(self, header: str) -> bool:
        """Loopback names with any port, the bound name, what is configured; with a wildcard bind any literal address.

        DNS rebinding needs a name of the attacker's: a literal address in `Host` cannot be rebound.
        """
        match = _AUTHORITY.fullmatch(header)
        if match is None:
            return False
        name = match[1].lower()
        if is_loopback(name) or name == bracketed(self.host).lower():
            return True
        if name in self.hosts or header.lower() in self.hosts:
            return True
        bound, asked = _ip(self.host), _ip(name)
        return bound is not None and bound.is_unspecified and asked is not None

    def admits_origin(self, origin: str, host_header: str) -> bool:
        """Exactly a listed origin or one of our own: the Host header has passed, so `http://<Host>` is same-origin."""
        asked = origin.lower()
        return asked in self.origins or asked == f"http://{host_header.lower()}"


def _ip(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
