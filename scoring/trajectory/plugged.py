"""What programs plug into scoring, each call of it guarded: a counter of tokens, a rule of deferrals.

They are guarded here, and not around each record, since every way to score comes by here, and the ones
that Duolog brings along need no guard.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import TypeVar

from ...engine.errors import DuologError, PluginFailed
from ...engine.plugins import PluginCall
from .options import Options
from .phrases import is_vague
from .token_estimate import TokenCounter, estimate_tokens

__all__ = ("plugged_counter", "plugged_rule")

T = TypeVar("T")


def plugged_counter(options: Options) -> TokenCounter:
    """The counter of tokens; it raises ``PluginFailed``, whatever the one that is plugged in raises."""
    count = options.count
    if count is estimate_tokens:
        return count

    return _guarded("the counter of tokens", lambda text: index(count(text)))


def plugged_rule(options: Options) -> Callable[[str], bool]:
    """The rule that says whether a message is a deferral; likewise."""
    vague = options.vague
    return vague if vague is is_vague else _guarded("vague", lambda text: bool(vague(text)))


def _guarded(who: str, function: Callable[[str], T]) -> Callable[[str], T]:
    def guarded(text: str, /) -> T:
        try:
            with PluginCall(who):
                return function(text)
        except DuologError:
            raise
        except Exception as error:
            raise PluginFailed(who, error) from error

    return guarded
