"""The pages of the tour: every number and every line of the session comes from its log."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, final

from rich.console import Console
from rich.text import Text

from ...engine.events import SessionOpened
from ...engine.records import Record
from ...engine.rounds import is_unproductive
from ...engine.text import quantity
from ...scoring.display.texts import clean, duration, number, shorten
from ...scoring.report import TerminalDocument, fork_document
from ...scoring.report.document import Heading, Table, texts
from ...scoring.report.terminal import drawn_table
from ..output import command_name
from ..text.page import Page
from ..text.records import RecordFormatter
from ..text.transcript_view import ROLES, opening_lines, round_text
from .session import TourSession

__all__ = ("TourPage", "pages")

_BAR: Final = 20
_LEFT: Final = frozenset({"", "Why"})
_COUNTS: Final = ("acts", "tokens_written", "tokens_read")
_NAME: Final = 5
_ROUNDS: Final = 2
"""Rounds that the page on rounds shows, at the end of which something went wrong."""


class TourPage(NamedTuple):
    """One page.

    Attributes:
        title: its heading.
        print: prints what is under the heading.
    """

    title: str
    print: Callable[[Console], None]


def pages(session: TourSession, log: str | None) -> tuple[TourPage, ...]:
    """The pages, in order.

    Args:
        session: what they show.
        log: where it was kept; None if it is gone after the tour.
    """
    return _Pages(session, log).all()


@final
class _Pages:
    def __init__(self, session: TourSession, log: str | None) -> None:
        self._session = session
        self._transcript = session.transcript
        self._points = session.transcript.trajectory.points
        self._said = _said([record for one in self._transcript.rounds for record in one.records])
        self._log = log

    def all(self) -> tuple[TourPage, ...]:
        tau = self._session.stop.tau
        return (
            TourPage("One collaboration", self._opening),
            TourPage("Rounds: from handoff to handoff", self._rounds),
            TourPage("Utility: what it is worth so far", self._utility),
            TourPage("Effort: what it costs the human", self._effort),
            TourPage(f"A stop: tolerance τ = {tau} is used up", self._stop),
            TourPage("Advice: what the agent should do", self._advice),
            TourPage("A fork: the same moment, another agent", self._fork),
            TourPage("Try it yourself", self._next),
        )

    # --- the pages --------------------------------------------------------------------------------

    def _opening(self, console: Console) -> None:
        records = sum(len(one.records) for one in self._transcript.rounds)
        _say(
            console,
            "Duolog has just simulated a session: an agent plans a trip with a user, who alone "
            "knows what is wanted. Both run on rules, offline. All that they did is in a log, as "
            f"{quantity(records, 'record')} that never change:",
        )
        opened = self._transcript.opened
        if opened is not None:
            for line in opening_lines(opened, self._transcript.summary.opened):
                console.print(Text("  ").append_text(line))
            self._wishes(console, opened)
        first = next((text for record, text in self._said if record.role == "human"), None)
        if first is not None:
            _say(console, f"The user begins: {first.plain}")
        _say(
            console,
            "Rounds, effort and tolerance are computed from the log. Scores are recorded with it. So "
            "a replay gives the same numbers as the live session, and asks no model.",
        )

    def _wishes(self, console: Console, opened: SessionOpened) -> None:
        """Prints the user's private knowledge, hidden from agents."""
        user = opened.private.get("user")
        wishes = user.get("profile") if isinstance(user, dict) else None
        if not isinstance(wishes, list):
            return
        console.print()
        console.print(Text("  known to the user alone:", style="bold"))
        for wish in wishes:
            console.print(Text(f"  - {shorten(str(wish), console.width - 6)}", style="cyan"))
        console.print()

    def _rounds(self, console: Console) -> None:
        _say(
            console,
            "A round ends at the handoff: when the human acts again after the agent has acted. Each "
            "closes with a utility and a rating of progress, from 1 to 5.",
        )
        last = self._session.stop.rounds[0]
        before = self._before(max(last - _ROUNDS, 0))
        for one in self._transcript.rounds[max(last - _ROUNDS, 0) : last]:
            page = Page(console, numbers=3, times=5, names=_NAME)
            page.rule(
                Text(f"Round {one.number}", style="bold"), right=round_text(one.point, before)
            )
            before = one.point.utility
            for record, text in self._said:
                if record in one.records:
                    page.line(
                        text,
                        number=str(record.version),
                        time=duration(record.time),
                        name=shorten(record.actor, _NAME),
                        style=ROLES[record.role],
                    )
        console.print()

    def _utility(self, console: Console) -> None:
        scored = [update for update in self._session.scores if update.parts]
        _say(
            console,
            "A scorer gives each new version of the output a utility from 0 to 1. Here it is the "
            "mean of two pass rates: of the constraints that any plan has, and of the wishes.",
        )
        rows = []
        for point in self._points:
            own = [update for update in scored if update.round == point.round]
            why = "no new version" if point.utility else "no output yet"
            if own:
                why = ", ".join(f"{name} {number(part, 2)}" for name, part in own[-1].parts.items())
            rows.append((str(point.round), number(point.utility), _bar(point.utility or 0.0), why))
        _table(console, ("Round", "Utility", "", "Why"), rows)
        best = max(self._points, key=lambda point: point.utility or 0.0)
        final_ = self._points[-1]
        _say(
            console,
            f"Best after round {best.round} ({number(best.utility)}), {number(final_.utility)} in the "
            "end. To score your own work, write a function: docs/write-a-scorer.md.",
        )

    def _effort(self, console: Console) -> None:
        _say(
            console,
            "Effort is what the human spends: rounds, acts, words written and read, time. It is "
            "computed from the log, so it costs nothing to know.",
        )
        rows = []
        for point in self._points:
            counts = [number(point.effort.get(name), 0) for name in _COUNTS]
            seconds = duration(point.effort.get("seconds") or 0.0)
            rows.append((str(point.round), *counts, seconds, number(point.utility)))
        _table(console, ("Round", "Acts", "Tokens written", "Tokens read", "Time", "Utility"), rows)
        first = self._session.stop.rounds[0]
        then, now = self._points[first - 2 if first > 1 else 0], self._points[-1]
        spent = (now.effort.get("seconds") or 0.0) - (then.effort.get("seconds") or 0.0)
        gain = (now.utility or 0.0) - (then.utility or 0.0)
        _say(
            console,
            "All of it is cumulative. Collaborative effort scaling asks how utility rises with it. "
            f"From round {then.round} to round {now.round} the human spent {duration(spent)} more, and "
            f"utility changed by {number(gain)}.",
        )

    def _stop(self, console: Console) -> None:
        stop = self._session.stop
        _say(
            console,
            "People give up at some point. A round rated below 3 is unproductive, and the "
            f"tolerance τ says how many of these in a row a user accepts. For τ = {stop.tau}:",
        )
        rows = []
        for point in self._points:
            text = "unproductive" if is_unproductive(point.rating) else ""
            if point.round == stop.round:
                text = f"{text}  ← the user is about to give up"
            rows.append((str(point.round), _rating(point.rating), text))
        _table(console, ("Round", "Progress", ""), rows)
        left, final_ = self._points[stop.round - 1].utility, self._points[-1].utility
        lost = None if left is None or final_ is None else left - final_
        _say(
            console,
            f"A user who quits there ends with {number(left)} instead of {number(final_)}: a drop of "
            f"{number(lost)} at τ = {stop.tau}. In a product, on_stop calls you back the moment that "
            "this is known, while something can still be done about it.",
        )

    def _advice(self, console: Console) -> None:
        _say(
            console,
            "The same numbers say who should lead. A controller follows them, and advises the agent; "
            "the agent of this session did not follow it:",
        )
        last = {one.round: one for one in self._session.advice}
        page = Page(console, numbers=5, times=4, names=9)
        heads = Text("Because", style="bold")
        page.line(heads, number="Round", time="Left", name="The agent", style="bold")
        for one in last.values():
            page.line(Text(one.why), number=str(one.round), time=str(one.left), name=one.move)
        console.print()
        _say(
            console,
            "Left: the unproductive rounds that the human is expected to tolerate still. "
            "duolog.Controller gives this advice to any agent, live.",
        )

    def _fork(self, console: Console) -> None:
        at = self._session.stop.rounds[0]
        _say(
            console,
            "A recorded session can be continued from any point with another agent, user, model or "
            f"seed. Here, the adaptive agent, which follows the controller, takes over at round {at}:",
        )
        console.print(TerminalDocument(fork_document(self._session.fork, at_round=at)))
        console.print()
        for title, trajectory in (
            ("then", self._transcript.trajectory),
            ("now", self._session.forked.trajectory),
        ):
            rated = " ".join(_rating(point.rating) for point in trajectory.points)
            console.print(Text(f"  progress by round, {title:<5}{rated}", style="dim"))
        console.print()
        stop = self._session.stop
        left = self._points[stop.round - 1].utility
        stays = "stays to the end" if self._session.stays else "leaves too"
        _say(
            console,
            f"A user with τ = {stop.tau} left the first session with {number(left)}. With this agent the same "
            f"user {stays}, and has {number(self._session.rescued)}.",
        )

    def _next(self, console: Console) -> None:
        name = self._transcript.summary.session
        duolog, log = command_name(), shlex.quote(self._log or "tour.db")
        commands = [
            ("this session in full", f"{duolog} show {log} {name}"),
            ("the session and its fork, side by side", f"{duolog} report {log} --forks"),
            ("the same task, you in the human's seat", f"{duolog} chat travel"),
            ("three agents, 20 sessions each", f"{duolog} run travel --sessions 20"),
        ]
        if self._log is None:
            keep = "this tour, its session and its fork kept in a log"
            commands.insert(0, (keep, f"{duolog} tour --log {log}"))
        for what, command in commands:
            console.print(Text(f"  {what}:", style="dim"))
            console.print(Text(f"    {command}", style="bold"), soft_wrap=True)
        console.print()
        _say(console, "README.md shows how to record your product, in a dozen lines.")

    # --- what they share --------------------------------------------------------------------------

    def _before(self, round_: int) -> float | None:
        return self._points[round_ - 1].utility if round_ else 0.0


def _said(records: Sequence[Record]) -> list[tuple[Record, Text]]:
    """What people and agents did, a line each, without the text of outputs."""
    formatter = RecordFormatter(full=False, ahead=records)
    shown = [(record, formatter.format(record)) for record in records]
    return [
        (record, text.text)
        for record, text in shown
        if text is not None and not text.quiet and record.role in ("human", "agent")
    ]


def _say(console: Console, text: str) -> None:
    for line in Text(clean(text)).wrap(console, min(console.width, 80)):
        line.rstrip()
        console.print(line)
    console.print()


def _table(console: Console, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    first, *others = (
        texts(name, [row[at] for row in rows], left=name in _LEFT) for at, name in enumerate(names)
    )
    table = Table(labels=(first,), headings=tuple([Heading(columns=(one,)) for one in others]))
    console.print(drawn_table(table, gap=3))


def _rating(rating: int | None) -> str:
    return "–" if rating is None else f"{rating}/5"


def _bar(share: float) -> str:
    filled = round(share * _BAR)
    return "█" * filled + "░" * (_BAR - filled)
