"""How many examples a property is tried on."""

from __future__ import annotations

from hypothesis import settings

__all__ = ("examples",)

_USUAL = settings.get_profile("default").max_examples


def examples(count: int) -> int:
    """The number of examples for a property that needs ``count`` instead of Hypothesis' default.

    The profile that is loaded scales it, as it does for properties that name no number: fewer
    examples in each run of the suite, and more in a long one.
    """
    return count * settings().max_examples // _USUAL
