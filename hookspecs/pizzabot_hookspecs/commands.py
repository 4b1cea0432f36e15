"""Kind `commands`: further words of the `pizzabot` command. All act; a built-in's name cannot be taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pizzabot_hookspecs.offers import Offer, hookspec

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


class Command(Protocol):
    def arguments(self, parser: ArgumentParser, /) -> None:
        """Declare options and arguments."""
        ...

    def run(self, arguments: Namespace, /) -> int:
        """Do it and return the exit code. A raised `PizzabotError` is printed as one line, exit code 1."""
        ...


@hookspec
def pizzabot_commands() -> list[Offer[Command]]:  # type: ignore[empty-body]
    """Called when a word is not a built-in command, and by `pizzabot help --all`. The offer's name is the word."""
