"""How a simulated user changes in the course of a session: they understand more, and trust more or less.

Understanding closes a share of what is missing with each message and output of others, as practice
does (Heathcote, Brown and Mewhort 2000: single learners improve exponentially). Until then, questions
are misheard and waved away more often, and answers are less clear. Trust falls with rounds that brought
nothing or harm, and recovers more slowly (Yang, Schemanske and Searle 2023). Who trusts less leaves less to the
agent: they read closely, wave fewer questions away, say what they left unsaid, and work themselves.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from ...engine.events import ProgressRated
from ...engine.records import Record
from ..personas import Cognition, Persona

__all__ = ("TAKES_OVER", "Adaptation", "adapted")

TAKES_OVER: Final = 0.5
"""Trust below which somebody works on the output themselves."""

_BAD, _GOOD = 2, 4


@final
class Adaptation:
    """A fold of what one user has seen.

    Args:
        cognition: theirs.

    Attributes:
        trust: in the agent by now.
        understanding: of the task by now.
    """

    def __init__(self, cognition: Cognition) -> None:
        self._cognition = cognition
        self.trust = cognition.trust
        self.understanding = cognition.understanding

    def feed(self, record: Record, *, mine: bool) -> None:
        """Takes the next record that they saw; ``mine`` if it is of their own doing."""
        limits = self._cognition
        if record.kind == "ProgressRated" and mine:
            event = record.event
            if not isinstance(event, ProgressRated) or event.rating is None:
                return
            if event.rating <= _BAD:
                self.trust *= 1.0 - limits.trust_loss
            elif event.rating >= _GOOD:
                self.trust += (1.0 - self.trust) * limits.trust_gain
        elif record.kind in ("MessageSent", "SnapshotTaken") and not mine:
            self.understanding += (1.0 - self.understanding) * limits.learns

    def unclear(self, share: float) -> float:
        """A share of misunderstandings, with what is not understood yet on top."""
        return 1.0 - (1.0 - share) * self.understanding


def adapted(persona: Persona, now: Adaptation) -> Persona:
    """The persona as they are by now."""
    return msgspec.structs.replace(
        persona,
        acts=persona.acts or now.trust < TAKES_OVER,
        vague=now.unclear(persona.vague) * now.trust,
        untold=round(persona.untold * now.trust),
        ambiguous=now.unclear(persona.ambiguous),
        mishears=now.unclear(persona.mishears),
        contentment=1.0 - (1.0 - persona.contentment) * now.trust,
    )
