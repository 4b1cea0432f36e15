"""The pizzabot host. Importing it costs nothing: the version is a literal and everything else is loaded by need."""

__version__ = "0.1.0"
