"""Tells the person at the terminal what models were asked, and what simulated users did wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a command's --help loads this module
    from ..engine.log import EventLog
    from ..engine.models.budget import Spending
    from ..engine.models.models import Models

__all__ = ("amount", "spent_text", "told_of_models")


async def told_of_models(models: Models, log: EventLog) -> str:
    """What this run asked of models, and the faults of simulated users in the whole log."""
    statistics = models.statistics()
    lines = []
    if statistics.spent.calls:
        lines.append(f"models: {spent_text(statistics.spent)}")
    faults = await _faults(log)
    if faults:
        lines.append(faults)
    return "\n".join(lines)


def spent_text(spent: Spending) -> str:
    """What calls came to, in a line."""
    parts = [f"{spent.calls:,} calls"]
    if spent.failures:
        parts.append(f"{spent.failures:,} of them failed and were made again")
    if spent.cached:
        parts.append(f"{spent.cached:,} answered from the cache")
    parts.append(f"{amount(spent.prompt)} + {amount(spent.completion)} tokens")
    if spent.unpriced:
        parts.append(f"${spent.cost:.2f} and {spent.unpriced:,} replies of unknown price")
    else:
        parts.append(f"${spent.cost:.2f}")
    return ", ".join(parts)


def amount(number: float) -> str:
    """A large number in few characters: ``950``, ``12.3 k``, ``4.56 M``."""
    if number < 1000:
        return f"{number:.0f}"
    return f"{number / 1000:.1f} k" if number < 1_000_000 else f"{number / 1_000_000:.2f} M"


async def _faults(log: EventLog) -> str:
    from ..engine.events import SimulatorFlagged

    kinds: Counter[str] = Counter()
    sessions: set[str] = set()
    audited: set[str] = set()
    async for record in log.read_all():
        event = record.event if record.kind == "SimulatorFlagged" else None
        if isinstance(event, SimulatorFlagged):
            kinds[event.fault] += 1
            sessions.add(record.session)
        audited.add(record.session)
    if not kinds:
        return ""
    listed = ", ".join(f"{fault}: {count}" for fault, count in kinds.most_common())
    return (
        f"simulated users: {kinds.total()} faults in {len(sessions)} of {len(audited)} sessions "
        f"({listed}); duolog show tells which"
    )
