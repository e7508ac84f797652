"""How a simulated user changes in the course of a session: they understand more, and trust more or less.

Each message and output of others closes a share of the gap in understanding, as practice does
(Heathcote, Brown and Mewhort 2000: single learners improve exponentially). Until then, the user mishears
and waves away questions more often, and answers less clearly. Trust falls after unproductive or harmful
rounds and recovers more slowly (Yang, Schemanske and Searle 2023). A user who trusts less leaves less to the
agent: they read closely, wave fewer questions away, say what they left unsaid, and work themselves.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from ...engine.events import ProgressRated
from ...engine.records import Record
from ...engine.rounds import PRODUCTIVE, is_unproductive
from ..personas import Cognition, Persona

__all__ = ("TAKES_OVER", "Adaptation", "adapted")

TAKES_OVER: Final = 0.5
"""Trust below which users work on the output themselves."""


@final
class Adaptation:
    """A fold of everything one user has seen.

    Args:
        cognition: theirs.

    Attributes:
        trust: in the agent by now.
        understanding: what is understood of the task by now.
    """

    def __init__(self, cognition: Cognition) -> None:
        self._cognition = cognition
        self.trust = cognition.trust
        self.understanding = cognition.understanding

    def feed(self, record: Record, *, mine: bool) -> None:
        """Takes the next record that they saw; ``mine`` if they caused it themselves."""
        limits = self._cognition
        if record.kind == "ProgressRated" and mine:
            event = record.event
            if not isinstance(event, ProgressRated) or event.rating is None:
                return
            if is_unproductive(event.rating):
                self.trust *= 1.0 - limits.trust_loss
            elif event.rating > PRODUCTIVE:
                self.trust += (1.0 - self.trust) * limits.trust_gain
        elif record.kind in ("MessageSent", "SnapshotTaken") and not mine:
            self.understanding += (1.0 - self.understanding) * limits.learns

    def unclear(self, share: float) -> float:
        """Raises a share of misunderstandings for as long as the user understands only part."""
        return 1.0 - (1.0 - share) * self.understanding


def adapted(persona: Persona, now: Adaptation) -> Persona:
    """The persona as it has changed so far."""
    return msgspec.structs.replace(
        persona,
        acts=persona.acts or now.trust < TAKES_OVER,
        vague=now.unclear(persona.vague) * now.trust,
        untold=round(persona.untold * now.trust),
        ambiguous=now.unclear(persona.ambiguous),
        mishears=now.unclear(persona.mishears),
        contentment=1.0 - (1.0 - persona.contentment) * now.trust,
    )
