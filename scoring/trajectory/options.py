"""Options of scoring: how to count rounds and tokens, and whose utility and ratings count.

What programs plug in here is guarded in each call of it, and not around each record, since every way to
score comes by here, and what Duolog brings along needs no guard.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import TypeVar

import msgspec

from ...engine.errors import DuologError, PluginFailed
from ...engine.plugins import PluginCall
from ...engine.rounds import Rounds
from ...engine.session.time.timing import Timing
from ..turns import is_vague
from .token_estimate import TokenCounter, estimate_tokens

__all__ = ("Options", "plugged_counter", "plugged_rule")

T = TypeVar("T")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a session is scored. The same options and the same log give the same updates.

    Attributes:
        rounds: how rounds are counted.
        taus: the tolerances τ to follow.
        utility: whose ``UtilityScored`` counts: a scorer's name, or ``name@version``. None:
            ``config["utility"]`` of the session, else the only scorer that measured it; if there are
            several, the session has no utility. Of several versions of one scorer the newest counts,
            compared as versions (``1.10`` is newer than ``1.9``).
        judge: whose ``ProgressRated`` counts: a scorer as above, ``human`` for ratings in the trace
            (a person or a simulated user), ``none`` for nobody, in which case all ratings are
            missing. ``auto``: ``config["judge"]`` of the session; where it names none, no rating is
            waited for, but those that are recorded count all the same, the human's first.
        count: counts the tokens of a text.
        vague: whether a human's message is a deferral.
        timing: reading and typing speed for modelled time; ``config["timing"]`` of a session goes
            before it.
        idle_cap: seconds, on a real clock: at most so much of the time between an agent's act and
            the human's next is counted as the human's.
    """

    rounds: Rounds = "handoff"
    taus: tuple[int, ...] = (1, 2, 3)
    utility: str | None = None
    judge: str = "auto"
    count: TokenCounter = estimate_tokens
    vague: Callable[[str], bool] = is_vague
    timing: Timing = Timing()
    idle_cap: float = 300.0


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
