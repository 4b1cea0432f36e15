"""`[transports.http]`: the address, who may call, and every limit by name (spec/01 §1)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator

_ORIGIN = re.compile(r"null|[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")


def _listed(value: object) -> object:
    """A comma list, as environment variables give it, or a list; entries trimmed, empty ones and repeats dropped."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        return value
    trimmed = (item.strip().lower().rstrip("/") for item in items)
    return list(dict.fromkeys(item for item in trimmed if item))


StringList = Annotated[list[str], BeforeValidator(_listed)]


class HttpLimits(BaseModel):
    """Bytes, counts and seconds. Each is a bound on what one client can hold."""

    model_config = ConfigDict(extra="forbid")

    json_bytes: int = Field(
        default=1024 * 1024, ge=1024, description="largest body of a core route or of any JSON request"
    )
    event_streams: int = Field(default=512, ge=1, description="open event streams; one more is refused with 503")
    connections: int = Field(
        default=1024, ge=1, description="open connections; a request on one more is refused with 503"
    )
    head_seconds: float = Field(
        default=10.0, gt=0, description="from the first byte of a request to the end of its headers"
    )
    idle_seconds: int = Field(default=15, ge=1, description="how long a connection without a request stays open")
    body_seconds: float = Field(
        default=30.0, gt=0, description="for a whole body; for a plugin's stream, between two pieces"
    )
    write_seconds: float = Field(
        default=30.0, gt=0, description="how long a client may refuse to take a piece of its stream"
    )
    sockets: int = Field(default=128, ge=1, description="open WebSockets; one more is closed with 1013")
    hello_seconds: float = Field(default=5.0, gt=0, description="for the first message of a WebSocket")
    socket_idle_seconds: float = Field(
        default=60.0, gt=0, description="a WebSocket whose client sent nothing for so long is closed with 4408"
    )
    stop_seconds: int = Field(
        default=3, ge=0, le=4, description="for open requests when the server stops; streams end at once"
    )


class HttpSettings(BaseModel):
    """How the server is reached. A bind beyond this machine needs a token of 32 characters and explicit origins."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(default="127.0.0.1", description="address or name to bind")
    port: int = Field(
        default=8080, ge=0, le=65535, description="0 takes any free port; the address that is printed has it"
    )
    token: SecretStr | None = Field(
        default=None, description="when set, every request needs `Authorization: Bearer <token>`"
    )
    allowed_origins: StringList | None = Field(
        default=None,
        description="browser origins beside the server's own, none by default; may hold null",
    )
    allowed_hosts: StringList = Field(
        default_factory=list, description="further `Host` headers, `name` or `name:port`, for a proxy or another name"
    )
    heartbeat_seconds: float = Field(
        default=5.0, gt=0, le=10, description="silence after which an event stream gets a comment, a WebSocket a ping"
    )
    limits: HttpLimits = Field(default_factory=HttpLimits)

    @field_validator("host")
    @classmethod
    def _trim_host(cls, value: str) -> str:
        host = value.strip()
        if not host:
            message = "is empty; write an address, or leave it out for 127.0.0.1"
            raise ValueError(message)
        return host

    @field_validator("token")
    @classmethod
    def _trim_token(cls, value: SecretStr | None) -> SecretStr | None:
        token = value.get_secret_value().strip() if value else ""
        return SecretStr(token) if token else None

    @field_validator("allowed_origins")
    @classmethod
    def _check_origins(cls, value: list[str] | None) -> list[str] | None:
        for origin in value or ():
            if not _ORIGIN.fullmatch(origin):
                message = f"{origin!r} is not an origin; write scheme://host[:port] without a path, or null"
                raise ValueError(message)
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _check_hosts(cls, value: list[str]) -> list[str]:
        for host in value:
            if not _HOST.fullmatch(host):
                raise ValueError(f"{host!r} is not a Host header; write name or name:port")
        return value

    @property
    def origins(self) -> frozenset[str]:
        return frozenset(self.allowed_origins or ())
