"""``duolog oversight``: how people approve, interrupt and correct agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..app import app
from ..arguments import example
from ..lookup import existing_log
from ..output import print_json, print_text, say
from ..runtime import run
from .sessions import FILTERS

if TYPE_CHECKING:
    from ...scoring.oversight import OversightSummary, Quantiles

__all__ = ("oversight_command",)


@app.command(
    "oversight",
    short_help="Prints how people approve, interrupt and correct agents.",
    epilog=example(
        "duolog oversight telemetry.db",
        "duolog oversight telemetry.db task=support --by release --json",
        note=f"docs/measures.md gives the formula and source of each number.\n\n{FILTERS}",
    ),
)
def oversight_command(
    log: Annotated[str, typer.Argument(metavar="LOG", help="Path or URL of the log.")],
    filters: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILTER", help="Only sessions that meet all of these, below."),
    ] = None,
    by: Annotated[str, typer.Option(metavar="LABEL", help="Label to group sessions by.")] = "agent",
    as_json: Annotated[bool, typer.Option("--json", help="JSON, for programs.")] = False,
) -> None:
    """Prints interruptions, approvals, autonomous stretches, pushback and attended time of a log.

    A number that the log does not say is shown as –, and is null in JSON.
    """
    from ...scoring.index.query import parse_query
    from ...scoring.index.select import check_labels, select
    from ...scoring.oversight import fold_oversight, summarise

    query = parse_query(filters or ())

    async def main() -> dict[str, OversightSummary]:
        async with existing_log(log) as opened:
            await check_labels(opened, query, None)
            if query.needs_lines:
                chosen = {one.session: one.group.get(by, "") async for one in select(opened, query)}
            else:
                listed = (one async for one in opened.sessions() if query.admits(one))
                chosen = {one.session: one.group.get(by, "") async for one in listed}
            found = await fold_oversight(opened.read_all(), wanted=chosen.__contains__)
        groups: dict[str, list[str]] = {}
        for session in found:
            groups.setdefault(chosen[session], []).append(session)
        return {
            group: summarise(found[session] for session in sessions)
            for group, sessions in sorted(groups.items())
        }

    summaries = run(main)
    if as_json:
        print_json({"by": by, "groups": summaries})
    elif not summaries:
        say(f"{log} has no session that meets this")
    else:
        print_text("\n".join(_text(group, by, one) for group, one in summaries.items()))


def _text(group: str, by: str, one: OversightSummary) -> str:
    from ...engine.text import quantity
    from ...scoring.display.texts import clean

    asked = one.approvals
    pushback = (
        f"{_number(one.pushback_by_turn)} (corrections {_number(one.corrections_by_turn)}, "
        f"failures reported {_number(one.failures_by_turn)})"
    )
    decided = (
        f"{asked.asked}: by persons {asked.approved_by_person} approved, "
        f"{asked.rejected_by_person} rejected; by rules {asked.by_rule}; by settings "
        f"{asked.by_setting}; by unknown {asked.by_unknown}; expired {asked.expired}; "
        f"open {asked.unanswered}"
    )
    questions = quantity(one.questions, "question")
    attended = f"{_number(one.attended, 0)} s by {quantity(one.persons, 'person')}"
    if one.unattributed:
        attended += f"; {quantity(one.unattributed, 'session')} without a person"
    rows = {
        "agent turns": str(one.agent_turns),
        "interruptions by turn": _number(one.interruptions_by_turn),
        "pushback by turn": pushback,
        "questions by interruption": f"{_number(one.questions_by_interruption)} ({questions})",
        "stretch, acts": _quantiles(one.stretch_acts),
        "stretch, seconds": _quantiles(one.stretch_seconds),
        "approvals asked": decided,
        "actions never asked about": f"{asked.never_asked} of {asked.actions}",
        "approve everything": (
            f"{_number(one.approve_everything)} of {quantity(one.decided, 'session')}"
        ),
        "approval latency, seconds": _quantiles(one.latency),
        "latency trend": f"{_number(one.latency_trend)} s a decision",
        "attended": attended,
    }
    title = f"{by} {group or '–'}, {quantity(one.sessions, 'session')}"
    lines = [title, *(f"  {name:<26}{value}" for name, value in rows.items())]
    return "".join(f"{clean(line)}\n" for line in lines)


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _quantiles(found: Quantiles | None) -> str:
    if found is None:
        return "–"
    return f"p50 {found.p50:.1f}, p90 {found.p90:.1f}, p99 {found.p99:.1f}"
