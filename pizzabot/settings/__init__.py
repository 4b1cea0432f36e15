"""Settings: `pizzabot.toml`, environment and command line as one `Settings` that knows each value's source."""

from pizzabot.settings.load import load_settings
from pizzabot.settings.locations import ConfigFile, config_candidates, default_data_root
from pizzabot.settings.model import LogLevel
from pizzabot.settings.secrets import SecretResolver, resolve_references
from pizzabot.settings.settings import Settings

__all__ = [
    "ConfigFile",
    "LogLevel",
    "SecretResolver",
    "Settings",
    "config_candidates",
    "default_data_root",
    "load_settings",
    "resolve_references",
]
