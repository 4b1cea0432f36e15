"""Secrets in one JSON file, `{"NAME": "value"}`, for machines without a keyring; refused where others can read it."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pizzabot_hookspecs.errors import TooLarge, Unavailable

MAX_FILE_BYTES = 1024 * 1024
"""Of the whole file, written or read."""


class FileStore:
    """Reads the file at each call, so that `pizzabot secrets set` reaches a running server.

    Errors are `Unavailable`: `secrets_file_exposed` when the file is a link, not ours or open to others,
    `secrets_file_damaged` when it is not what was written, `secrets_file_unreadable` when it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str, /) -> str | None:
        return self._read().get(name) or None

    def names(self) -> list[str]:
        return sorted(self._read())

    def set(self, name: str, value: str, /) -> None:
        """Raises `TooLarge` `secrets_file_full` beyond 1 MiB."""
        with self._exclusive():
            self._write({**self._read(), name: value})

    def delete(self, name: str, /) -> bool:
        with self._exclusive():
            secrets = self._read()
            known = secrets.pop(name, None) is not None
            if known:
                self._write(secrets)
            return known

    def _read(self) -> dict[str, str]:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return {}
        except OSError as error:
            if self._path.is_symlink():
                raise self._exposed("is a symbolic link") from error
            raise self._unreadable(error) from error
        with os.fdopen(descriptor, "rb") as file:
            self._check(os.fstat(file.fileno()))
            return self._parsed(file.read(MAX_FILE_BYTES + 1))

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise self._damaged("it is not a regular file")
        if status.st_uid != os.geteuid():
            raise self._exposed("belongs to another user")
        if status.st_mode & 0o077:
            raise self._exposed(f"can be read or written by others (mode {status.st_mode & 0o777:04o})")

    def _parsed(self, raw: bytes) -> dict[str, str]:
        if len(raw) > MAX_FILE_BYTES:
            raise self._damaged(f"it is larger than {MAX_FILE_BYTES} bytes")
        try:
            secrets = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise self._damaged("it is not JSON") from error
        if not isinstance(secrets, dict) or not all(isinstance(value, str) for value in secrets.values()):
            raise self._damaged("it is not an object of texts")
        return secrets

    def _write(self, secrets: dict[str, str]) -> None:
        """All or nothing, also when the machine stops half-way: a new file beside it, synced, then renamed."""
        raw = json.dumps(secrets, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
        if len(raw) > MAX_FILE_BYTES:
            raise TooLarge("secrets_file_full", f"{self._path} would have {len(raw)} bytes, at most {MAX_FILE_BYTES}")
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            with suppress(FileNotFoundError):
                beside.unlink()  # of a process with this number that was killed here
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
            self._sync_folder()
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            raise self._unreadable(error) from error

    def _sync_folder(self) -> None:
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Two `secrets set` at once would lose one; the lock is a file of its own because the other is replaced."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(
                self._path.with_name(f".{self._path.name}.lock"),
                os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
            )
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _exposed(self, how: str) -> Unavailable:
        return Unavailable(
            "secrets_file_exposed",
            f"{self._path} {how} and is not used: make it yours alone (`chmod 600`) and replace the secrets in it",
        )

    def _damaged(self, how: str) -> Unavailable:
        return Unavailable(
            "secrets_file_damaged",
            f"{self._path} cannot be used: {how}; repair it, or remove it and set the secrets again",
        )

    def _unreadable(self, error: OSError) -> Unavailable:
        return Unavailable("secrets_file_unreadable", f"{self._path} cannot be used: {error.strerror or error}")
