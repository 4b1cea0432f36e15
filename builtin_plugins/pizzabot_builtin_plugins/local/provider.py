"""The provider: names and paths to running models."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from pizzabot_builtin_plugins.local.library import Library, LibraryModel
from pizzabot_builtin_plugins.local.pool import Pool
from pizzabot_builtin_plugins.local.process import COMMAND, Launch
from pizzabot_builtin_plugins.local.settings import LocalSettings
from pizzabot_hookspecs import Context, PizzabotError, Unavailable
from pizzabot_hookspecs.model_providers import ModelDescriptor

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.local.chat import LocalChat

DEFAULT_CONTEXT = 4096
"""Tokens, for a file that does not say how long its context is."""

DEFAULT_TEMPERATURE = 0.8
MAX_DEFAULT_THREADS = 8


def make_provider(context: Context, settings: LocalSettings) -> LocalProvider:
    """Raises ImportError without the extra `local`; llama.cpp itself is only imported in the child."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ImportError("xllamacpp is not installed")
    return LocalProvider(context, settings)


class LocalProvider:
    """Models of one folder, in children of one pool. The host enters it; leaving it ends the children."""

    def __init__(self, context: Context, settings: LocalSettings, *, command: Sequence[str] = COMMAND) -> None:
        self._settings = settings
        self._logger = context.logger
        self._library = Library(settings.folder)
        self._installing = asyncio.Lock()
        self.pool = Pool(
            max_loaded=settings.max_loaded,
            idle_seconds=settings.idle_seconds,
            start_seconds=settings.start_seconds,
            queue_seconds=settings.queue_seconds,
            logger=context.logger,
            command=command,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pool.close()

    def missing(self) -> str | None:
        """Usable as it is: a known model is fetched when it is asked for, unless that is switched off."""
        if self._settings.download or any(model.path for model in self._library.models()):
            return None
        return "no model is installed; run `pizzabot models install smollm2-135m` or `pizzabot models install PATH|URL`"

    async def models(self) -> Sequence[ModelDescriptor]:
        listed = await asyncio.to_thread(self._library.models)
        return [
            self._described(model)
            for model in listed
            if model.problem is None and (model.path is not None or self._settings.download)
        ]

    async def describe(self, model: str, /) -> ModelDescriptor | None:
        """From the file's own header; None for a model that is not there or not readable."""
        try:
            return self._described(await asyncio.to_thread(self._library.find, model))
        except PizzabotError:
            return None

    def _described(self, model: LibraryModel) -> ModelDescriptor:
        described = model.descriptor(self._settings.context_size)
        return replace(described, inline_reasoning=self._settings.inline_reasoning)

    async def build(self, model: str, /) -> LocalChat:
        """Fetch the weights if that is needed and allowed, load them, and hand out the chat model.

        Raises `NotFound` `no_such_model`, `InvalidRequest` `not_a_model`/`invalid_model_name`, `Unavailable`
        `weights_unavailable` (they cannot be fetched) or `model_unavailable` (llama.cpp cannot load them).
        """
        found = await self._installed(model)
        launch = self._launch(found)
        chat = await asyncio.to_thread(self._chat, found, launch, asyncio.get_running_loop())
        try:
            async with self.pool.use(launch):
                pass
        except TimeoutError as error:
            raise Unavailable(
                "model_unavailable",
                f"the local model {found.name!r} got no place in {self._settings.queue_seconds:g} s: others are busy. "
                "Try again, or raise max_loaded in its section of [models]",
            ) from error
        return chat

    async def _installed(self, model: str) -> LibraryModel:
        found = await asyncio.to_thread(self._library.find, model)
        if found.path is not None or found.known is None:
            return found
        if not self._settings.download:
            raise Unavailable(
                "weights_unavailable",
                f"the weights of {found.name!r} are not installed and `download` is off; "
                f"run `pizzabot models install {found.name}`",
            )
        from pizzabot_builtin_plugins.local.progress import LoggedProgress
        from pizzabot_builtin_plugins.local.weights import install_known

        async with self._installing:
            await install_known(found.known, self._library.folder, LoggedProgress(self._logger, found.name))
        return await asyncio.to_thread(self._library.find, model)

    def _launch(self, found: LibraryModel) -> Launch:
        assert found.path is not None and found.header is not None  # noqa: S101, PT018  `_installed` saw to it
        length = found.header.context_length or DEFAULT_CONTEXT
        return Launch(
            name=found.name if found.known else found.path.stem,
            path=str(found.path),
            context_size=min(length, self._settings.context_size),
            parallel=self._settings.parallel,
            threads=self._settings.threads or min(usable_cores(), MAX_DEFAULT_THREADS),
            gpu_layers=self._settings.gpu_layers,
            prompt_cache_mib=self._settings.prompt_cache_mib,
        )

    def _chat(self, found: LibraryModel, launch: Launch, loop: asyncio.AbstractEventLoop) -> LocalChat:
        from pizzabot_builtin_plugins.local.chat import LocalChat

        known, chosen = found.known, self._settings
        return LocalChat.over(
            self.pool,
            launch,
            loop,
            max_tokens=min(chosen.max_output_tokens, launch.context_size),
            temperature=_first(chosen.temperature, known.temperature if known else DEFAULT_TEMPERATURE),
            top_p=known.top_p if known else None,
            repeat_penalty=_first(chosen.repeat_penalty, known.repeat_penalty if known else None),
            supports_tools=bool(found.header and found.header.supports_tools),
            read_seconds=self._settings.read_seconds,
        )


def _first(chosen: float | None, otherwise: float | None) -> float | None:
    return otherwise if chosen is None else chosen


def usable_cores() -> int:
    """Those that this process may run on, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
