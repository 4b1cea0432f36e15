"""The `pytest11` entry point: fixtures for plugin authors. Nothing heavy is imported here."""
