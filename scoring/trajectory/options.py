"""Options of scoring: how to count rounds and tokens, and whose utility and ratings count.

Each call of a user's plug-in is guarded, rather than each record: all scoring passes through here,
and Duolog's built-in parts do not need a guard.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import TypeVar, get_args

import msgspec

from ...engine.errors import DuologError, InvalidInput, PluginFailed
from ...engine.plugins import PluginCall
from ...engine.rounds import Rounds
from ...engine.session.time.timing import Timing
from ..turns import Annotator, Turn, annotate, is_vague
from .token_estimate import TokenCounter, estimate_tokens

__all__ = ("Options", "plugged_annotator", "plugged_counter", "plugged_rule")

A = TypeVar("A")
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
            (a person or a simulated user), ``none`` for no judge, in which case all ratings are
            missing. ``auto``: ``config["judge"]`` of the session. If it names none, scoring does
            not wait for ratings, but recorded ones still count, the human's first.
        count: counts the tokens of a text.
        vague: whether a human's message is a deferral. If another ``annotator`` is given and this is
            not, its label ``vague`` decides.
        annotator: labels messages, for the process measures and deferrals; by default the rules of
            ``turns``. A message that it cannot read makes the measures that need its labels missing.
        timing: reading and typing speed for modelled time; ``config["timing"]`` of a session goes
            before it.
        idle_cap: seconds, on a real clock: at most so much of the time between an agent's act and
            the human's next is counted as the human's.
        oversight: also emit ``OversightUpdated``: how people watch over the agents.

    Raises:
        InvalidInput: the tolerances are not whole numbers from 1, or the rounds are of an unknown kind.
    """

    rounds: Rounds = "handoff"
    taus: tuple[int, ...] = (1, 2, 3)
    utility: str | None = None
    judge: str = "auto"
    count: TokenCounter = estimate_tokens
    vague: Callable[[str], bool] = is_vague
    annotator: Annotator = annotate
    timing: Timing = Timing()
    idle_cap: float = 300.0
    oversight: bool = False

    def __post_init__(self) -> None:
        taus: object = self.taus
        if not isinstance(taus, tuple) or not all(type(t) is int and t > 0 for t in taus):
            raise InvalidInput(
                f"taus is a tuple of whole numbers from 1, such as (1, 2), not {taus!r}"
            )
        if self.rounds not in get_args(Rounds):
            raise InvalidInput(
                f"rounds is one of {', '.join(get_args(Rounds))}, not {self.rounds!r}"
            )


def plugged_counter(options: Options) -> TokenCounter:
    """The counter of tokens; it raises ``PluginFailed``, whatever the one that is plugged in raises."""
    count = options.count
    if count is estimate_tokens:
        return count

    return _guarded("the counter of tokens", lambda text: index(count(text)))


def plugged_rule(options: Options) -> Callable[[str], bool]:
    """The rule that says whether a message is a deferral; likewise."""
    vague, labels = options.vague, options.annotator
    if vague is not is_vague:
        return _guarded("vague", lambda text: bool(vague(text)))
    if labels is annotate:
        return vague
    return _guarded("the annotator", lambda text: "vague" in (labels(Turn(text=text)) or ()))


def plugged_annotator(options: Options) -> Annotator:
    """What labels messages; likewise."""
    labels = options.annotator
    return labels if labels is annotate else _guarded("the annotator", labels)


def _guarded(who: str, function: Callable[[A], T]) -> Callable[[A], T]:
    def guarded(given: A, /) -> T:
        try:
            with PluginCall(who):
                return function(given)
        except DuologError:
            raise
        except Exception as error:
            raise PluginFailed(who, error) from error

    return guarded
