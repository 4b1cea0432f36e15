"""The kernel's errors, all about a choice or a plugin.

PizzabotError
 ├── InvalidRequest
 │    ├── NoSuchOffer      `no_such_offer`: nothing of that name is loaded; lists what is, and what is not and why
 │    └── AmbiguousOffer   `ambiguous_offer`: several plugins have it; says what to write
 └── Unavailable
      └── BrokenPlugin     `broken_plugin`: a plugin failed or is incompatible, and `strict` is on
"""

from pizzabot_hookspecs.errors import InvalidRequest, Unavailable


class NoSuchOffer(InvalidRequest):
    def __init__(self, detail: str) -> None:
        super().__init__("no_such_offer", detail)


class AmbiguousOffer(InvalidRequest):
    def __init__(self, detail: str) -> None:
        super().__init__("ambiguous_offer", detail)


class BrokenPlugin(Unavailable):
    def __init__(self, detail: str) -> None:
        super().__init__("broken_plugin", detail)
