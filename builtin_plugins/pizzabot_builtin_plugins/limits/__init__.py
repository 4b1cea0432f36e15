"""Plugin `limits`: an admission policy that bounds what one thread can pile up and how long a message can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.limits.policy import Limits, LimitSettings
    from pizzabot_hookspecs.admission_policies import AdmissionPolicy


@hookimpl
def pizzabot_admission_policies() -> list[Offer[AdmissionPolicy]]:
    from pizzabot_builtin_plugins.limits.policy import LimitSettings

    return [
        Offer(
            name="limits",
            summary="bounds the queue of a thread and the length of a message",
            create=_create,
            settings=LimitSettings,
        )
    ]


def _create(context: Context, settings: LimitSettings) -> Limits:  # noqa: ARG001 - the contract's
    from pizzabot_builtin_plugins.limits.policy import Limits

    return Limits(settings)
