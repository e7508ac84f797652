"""Words for the usage of models: calls, tokens, and their cost; and the table of an estimate."""

from __future__ import annotations

from rich.table import Table

from ...engine.models.gateway import Models
from ...engine.models.traffic.budget import Spending
from ...engine.text import quantity
from ...experiments.estimate import Share, UsageEstimate, plus
from ..output import say
from .terminal import screen

__all__ = ("models_line", "print_estimate", "spent_text")


def models_line(models: Models) -> str:
    """The usage of models in this run, as a line; empty if no model was called."""
    spent = models.statistics().spent
    return f"models: {spent_text(spent)}" if spent.calls else ""


def spent_text(spent: Spending) -> str:
    """Calls, tokens and cost, as a line."""
    parts = [quantity(spent.calls, "call")]
    if spent.failures:
        parts.append(f"{spent.failures:,} of them failed")
    if spent.cached:
        parts.append(f"{spent.cached:,} answered from the cache")
    parts.append(f"{_amount(spent.prompt)} + {_amount(spent.completion)} tokens")
    if spent.unpriced:
        replies = quantity(spent.unpriced, "reply", "replies")
        parts.append(f"${spent.cost:.2f} and {replies} of unknown price")
    else:
        parts.append(f"${spent.cost:.2f}")
    return ", ".join(parts)


def _amount(number: float) -> str:
    """A number, shortened: ``950``, ``12.3 k``, ``4.56 M``."""
    if number < 1000:
        return f"{number:.0f}"
    return f"{number / 1000:.1f} k" if number < 1_000_000 else f"{number / 1_000_000:.2f} M"


def print_estimate(found: UsageEstimate) -> None:
    """Prints what the sessions that are left to run are estimated to use."""
    if not found.sessions:
        say("the log holds all of these sessions: nothing is left to run")
        return
    screen().print(_table(found.total, found.sessions))
    say(
        f"Estimated from {quantity(found.sampled, 'session')} in which the task's rules took the "
        "models' place; "
        "models may take more steps than rules, or fewer."
    )
    if found.unpriced:
        say(f"No price is known for {', '.join(sorted(found.unpriced))}.")


def _table(total: dict[Share, Spending], sessions: int) -> Table:
    table = Table(
        title=f"about, for {quantity(sessions, 'session')}", title_justify="left", box=None
    )
    table.add_column("")
    table.add_column("model")
    for heading in ("calls", "prompt tokens", "completion tokens", "US$"):
        table.add_column(heading, justify="right")
    whole = Spending()
    for share, spent in sorted(total.items()):
        table.add_row(share.role, share.model, *_cells(spent))
        whole = plus(whole, spent)
    table.add_section()
    table.add_row("all", "", *_cells(whole))
    return table


def _cells(spent: Spending) -> tuple[str, ...]:
    cost = "< 0.01" if 0 < spent.cost < 0.01 else f"{spent.cost:.2f}"
    if spent.unpriced:
        cost = f"{cost} + ?" if spent.cost else "unknown"
    return _amount(spent.calls), _amount(spent.prompt), _amount(spent.completion), cost
