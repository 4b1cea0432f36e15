"""Make what an offer offers: validate its section, build its `Context`, call `create`, and say what went wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pizzabot.kernel.offers import OfferRecord
from pizzabot.kernel.reasons import describe
from pizzabot_hookspecs.errors import InvalidRequest, PizzabotError, Unavailable
from pizzabot_hookspecs.offers import Context

Inner: TypeAlias = Callable[[], Any]
MakeContext: TypeAlias = Callable[[str, Inner | None], Context]


def create(record: OfferRecord, *, use: str, section: Mapping[str, object], context: MakeContext) -> object:
    """What `record.offer.create` returns. Blocking; call it in a worker thread.

    `section` is the use's section of the configuration with references resolved. Raises `InvalidRequest`
    `invalid_settings`, `Unavailable` `missing_extra` and `plugin_failed`; the plugin's own `PizzabotError` passes.
    """
    inner: Inner | None = None
    if (replaced := record.replaces) is not None:

        def inner() -> object:
            return create(replaced, use=use, section=section_for(replaced, section), context=context)

    known = context(use, inner)
    settings = validate(record, use=use, section=section, redact=known.redact)
    try:
        made = record.offer.create(known, settings)
    except PizzabotError:
        raise
    except ImportError as error:
        raise _missing_package(record, known.redact(describe(error))) from error
    except (Exception, SystemExit) as error:
        raise _failed(record, use, known.redact(describe(error))) from error
    if inspect.iscoroutine(made):
        made.close()
        raise _failed(record, use, "its `create` is an `async def`; it must return the object itself")
    if made is None:
        raise _failed(record, use, "its `create` returned None")
    return made


def validate(record: OfferRecord, *, use: str, section: Mapping[str, object], redact: Callable[[str], str]) -> Any:
    """The instance of the offer's settings model, or the section as a dict where the offer has no model.

    The key `use` of a section is the host's: a model sees it only if it has such a field.
    """
    model = record.offer.settings
    own = model is not None and "use" in model.model_fields
    values = {key: value for key, value in section.items() if own or key != "use"}
    if model is None:
        return values
    from pydantic import ValidationError

    try:
        return model.model_validate(values)
    except ValidationError as error:
        # Neither chained nor quoted: pydantic's text holds the input, and the input may be a secret.
        fields = {
            ".".join(str(part) for part in problem["loc"]) or use: redact(problem["msg"])
            for problem in error.errors(include_input=False, include_context=False, include_url=False)
        }
    except (Exception, SystemExit) as error:
        raise _failed(record, use, redact(f"its settings: {describe(error)}")) from error
    wrong = "; ".join(f"{field}: {message}" for field, message in fields.items())
    raise InvalidRequest("invalid_settings", f'settings of "{use}" ({record.qualified}): {wrong}', fields=fields)


def section_for(replaced: OfferRecord, section: Mapping[str, object]) -> Mapping[str, object]:
    """The part of a stand-in's section that the offer it replaces knows: the two share one section."""
    model = replaced.offer.settings
    if model is None or model.model_config.get("extra") == "allow":
        return section
    known = set(model.model_fields) | {field.alias for field in model.model_fields.values() if field.alias}
    return {key: value for key, value in section.items() if key in known}


def _missing_package(record: OfferRecord, cause: str) -> Unavailable:
    name, extra = record.qualified, record.offer.extra
    if extra is None:
        return Unavailable("plugin_failed", f"{name} cannot be imported: {cause}")
    way_out = f'pip install "{record.extra_of}[{extra}]"'
    return Unavailable("missing_extra", f"{name} needs more packages: {way_out} ({cause})")


def _failed(record: OfferRecord, use: str, cause: str) -> Unavailable:
    what = f'"{record.offer.name}" of kind {record.kind}'
    return Unavailable("plugin_failed", f'the plugin "{record.plugin}" could not make {what} for "{use}": {cause}')
