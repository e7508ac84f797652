"""The controller's input and output: the numbers in its rules, and its advice."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ..engine.errors import InvalidInput
from .trajectory.effort import MEASURES

__all__ = ("Advice", "ControlRules", "First", "Move")

Move: TypeAlias = Literal["act", "ask", "yield", "hand over", "answer", "confirm", "escalate"]
"""The moves that an agent may make next.

``act``: continue on its own judgement. ``ask``: ask the human something concrete. ``yield``: show
the output, ask nothing, and let the human lead. ``hand over``: say that it can do no more, and
leave the work to the human. Work without an output has ``answer``, ``ask``, ``confirm`` and
``escalate``, see ``chat_control``.
"""


First: TypeAlias = Literal["ask", "yield", "follow"]
"""The side that leads after the first output: the agent (``ask``), the human (``yield``), or, with
``follow``, the human if they have taken the lead."""


class ControlRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of the rules; see ``control`` for the rules themselves.

    Attributes:
        least: this many rounds of questions before there is any output, even if the agent would
            rather work.
        questions: at most this many of them.
        unanswered: after this many deferrals in a row, ask no more before there is an output.
        show: after this many rounds, put up a draft, and ask the remaining questions of ``questions``
            afterwards, without a report; None: ask them all first.
        asks: questions altogether, after which nothing more is asked, once there is an output; except of a
            human who would rather be asked, see ``keep``. None for no such limit.
        at_once: questions that it asks in one message at most.
        first: the side that leads after the first output: the agent (``ask``), the human
            (``yield``), or the human only if they have said something unasked by then (``follow``).
        gain: the smallest rise of utility that counts as a gain.
        persist: rounds without a gain in a row after which the lead changes.
        insist: deferrals in a row after which a question is not followed by another, once there is an
            output.
        keep: deferrals altogether after which the agent keeps the lead for good: this human would rather
            be asked; None for never.
        enough: utility from which nothing more is asked; None for no such limit.
        spent: effort from which nothing more is asked, once there is an output; None likewise.
        pace: share of what the human writes in a turn on average; who writes less than that in their
            last turn is asked nothing, once there is an output. 0 for never.
        window: number of rounds over which the slope is computed.
        measure: the measure of effort, see ``effort.MEASURES``.
        tolerance: the assumed tolerance τ of the human, in unproductive rounds in a row.
        budget: effort since the last gain after which to hand over; None for no such limit.

    Raises:
        InvalidInput: a number out of range, or an unknown measure.
    """

    least: int = 0
    questions: int = 3
    unanswered: int = 2
    show: int | None = None
    asks: int | None = None
    at_once: int = 1
    first: First = "yield"
    gain: float = 0.01
    persist: int = 1
    insist: int = 1
    keep: int | None = None
    enough: float | None = None
    spent: float | None = None
    pace: float = 0.0
    window: int = 3
    measure: str = "rounds"
    tolerance: int = 3
    budget: float | None = None

    def __post_init__(self) -> None:
        if (
            min(self.least, self.questions, self.gain, self.pace) < 0
            or min(
                self.unanswered,
                self.at_once,
                self.persist,
                self.insist,
                self.window,
                self.tolerance,
            )
            < 1
            or (self.keep is not None and self.keep < 1)
            or min(self.show or 0, self.asks or 0) < 0
        ):
            raise InvalidInput(f"a number in the rules of control is out of range: {self}")
        if self.measure not in MEASURES:
            raise InvalidInput(
                f"unknown measure of effort {self.measure!r}; choose from {', '.join(MEASURES)}"
            )


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's recommended next move, and the quantities behind it.

    Attributes:
        session: session id.
        round: the round that is open.
        move: what to do.
        why: the rule that applied, in words.
        slope: rise of utility per unit of effort over the last rounds; None without any effort.
        since_gain: effort since utility last rose, or since the beginning.
        left: unproductive rounds that the human is expected to tolerate still.
    """

    session: str
    round: int
    move: Move
    why: str
    slope: float | None = None
    since_gain: float = 0.0
    left: int = 0
