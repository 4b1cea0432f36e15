"""The section `[transports.lines]`."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

TOKEN_CHARACTERS = 32
"""The least that a token has. Every program on this machine, a web page in a browser too, can reach a TCP port."""


class Limits(BaseModel):
    """Nothing that a client does can make the server grow beyond these."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    line_bytes: int = Field(default=1_048_576, ge=1_024, description="of one request")
    connections: int = Field(default=64, ge=1, description="that are open at the same time")
    requests: int = Field(default=32, ge=1, description="of one connection that wait for their answer")
    subscriptions: int = Field(default=16, ge=1, description="of one connection")
    waiting_bytes: int = Field(default=1_048_576, ge=1_024, description="that wait until a client reads them")
    write_seconds: float = Field(default=30, gt=0, description="that a client may take to make room for more")
    hello_seconds: float = Field(default=10, gt=0, description="until a TCP client has to have shown its token")
    heartbeat_seconds: float = Field(default=15, gt=0, description="of silence, after which a subscription says so")


class LinesSettings(BaseModel):
    """A Unix socket by default. With `port` it is a TCP port on 127.0.0.1, and then it needs a token."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)  # the input may be the token

    socket: str = Field(default="lines.sock", description="name of the socket in the data root")
    port: int | None = Field(default=None, ge=0, le=65535, description="TCP instead of the socket; 0 takes any port")
    token: SecretStr | None = Field(default=None, description="what a TCP client says first")
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="after")
    def _check_token(self) -> Self:
        if self.port is not None and len(self.token.get_secret_value() if self.token else "") < TOKEN_CHARACTERS:
            message = f"`port` needs a `token` of at least {TOKEN_CHARACTERS} characters"
            raise ValueError(message)
        return self
