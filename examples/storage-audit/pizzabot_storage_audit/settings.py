"""What may be set in `[storage.sqlite]`, besides what the wrapped storage takes there."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class AuditSettings(BaseModel):
    """The trail never takes more than `audit_files` files of about `audit_bytes` bytes.

    A stand-in shares its section with the offer it replaces, so keys of the other one are let through here; the host
    hands it those that it knows, and it checks them.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    audit_bytes: int = Field(default=10_000_000, ge=1_000, description="size at which a new file is begun")
    audit_files: int = Field(default=5, ge=1, le=100, description="files that are kept, the current one included")
