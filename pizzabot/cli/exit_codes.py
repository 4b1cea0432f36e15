"""The exit codes of `pizzabot`, and which error means which. Scripts and supervisors rely on them (docs/operate)."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    """An operation failed; also `pizzabot plugins` when a plugin is broken."""
    USAGE = 2
    """The command line is wrong."""
    CONFIGURATION = 3
    """Bad TOML, bad settings, an unknown `use`, a missing secret."""
    TAKEN = 4
    """The address or the data root is taken or cannot be written."""
    STORAGE = 5
    """The storage cannot be opened: damaged, or written by a newer version."""
    UNREACHABLE = 6
    """The server cannot be reached."""
    INTERRUPTED = 130
    """Ctrl-C."""


BY_CODE: dict[str, ExitCode] = {
    **dict.fromkeys(
        (
            "ambiguous_offer",
            "broken_plugin",
            "config_not_found",
            "config_unreadable",
            "invalid_reference",
            "invalid_settings",
            "invalid_toml",
            "keyring_timeout",
            "keyring_unavailable",
            "literal_secret",
            "missing_extra",
            "malformed_model_id",
            "no_such_offer",
            "no_transport",
            "origins_required",
            "secrets_file_damaged",
            "secrets_file_exposed",
            "secrets_file_unreadable",
            "token_required",
            "token_too_short",
            "unknown_host",
            "unknown_setting",
            "unregistered_provider",
            "unset_secret",
        ),
        ExitCode.CONFIGURATION,
    ),
    **dict.fromkeys(
        (
            "address_not_available",
            "data_root_in_use",
            "data_root_is_shared",
            "data_root_not_writable",
            "port_in_use",
            "port_not_permitted",
        ),
        ExitCode.TAKEN,
    ),
    **dict.fromkeys(("database_damaged", "schema_too_new", "storage_failed"), ExitCode.STORAGE),
    "unreachable": ExitCode.UNREACHABLE,
}
"""By an error's `code`. Every other error of ours is FAILED."""


def exit_code_of(code: str) -> ExitCode:
    return BY_CODE.get(code, ExitCode.FAILED)
