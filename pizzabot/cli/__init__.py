"""The `pizzabot` command. Importing this costs next to nothing: a command's module is imported when it is run."""

from pizzabot.cli.main import main

__all__ = ["main"]
