"""The built-in secret stores: `environment` (reference key `env`), `keyring` (the desktop's), `file` (`secrets.json`).

The one key that is not its store's name is `env`, because that is what people write; the host maps it to `environment`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pizzabot_hookspecs import Context, InvalidRequest, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.secret_stores import SecretStore


def _environment(context: Context, settings: dict[str, Any]) -> SecretStore:
    from pizzabot_builtin_plugins.secret_stores.environment import EnvironmentStore

    _refuse(context, settings)
    return EnvironmentStore()


def _keyring(context: Context, settings: dict[str, Any]) -> SecretStore:
    from pizzabot_builtin_plugins.secret_stores.system_keyring import KeyringStore

    _refuse(context, settings)
    return KeyringStore()


def _file(context: Context, settings: dict[str, Any]) -> SecretStore:
    from pizzabot_builtin_plugins.secret_stores.secrets_file import FileStore

    _refuse(context, settings)
    return FileStore(context.data_root / "secrets.json")


def _refuse(context: Context, settings: dict[str, Any]) -> None:
    """These stores have no settings; a key that nobody reads is a mistake that should be heard of."""
    if settings:
        raise InvalidRequest(
            "unknown_setting",
            f"[secrets.{context.name}] has no settings; remove {', '.join(sorted(settings))}",
            fields=dict.fromkeys(settings, "unknown"),
        )


@hookimpl
def pizzabot_secret_stores() -> list[Offer[SecretStore]]:
    return [
        Offer(name="environment", summary="environment variables: {env = NAME}", create=_environment),
        Offer(name="keyring", summary="the keyring of the operating system: {keyring = NAME}", create=_keyring),
        Offer(name="file", summary="secrets.json in the data root, readable by you only: {file = NAME}", create=_file),
    ]
