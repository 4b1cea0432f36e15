"""What the person set: read and changed over HTTP, and read by every turn."""

from pizzabot.host.preferences.use_case import HostPreferences

__all__ = ["HostPreferences"]
