"""Prints a transcript round by round: all acts with their times, utility, progress and effort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from rich.console import Console
from rich.text import Text

from ...engine.events import Participant, SessionOpened
from ...engine.records import TRACE, Record
from ...engine.rounds import PRODUCTIVE, is_unproductive
from ...engine.text import quantity
from ...scoring.display.texts import clean, duration, has_times, is_virtual, moment, number, shorten
from ...scoring.display.updates import effort_words
from ...scoring.process import Process
from ...scoring.reviews import Reviews
from ...scoring.trajectory.points import NO_ROUND, Point, counted, missing_utility
from .page import Page
from .records import RecordFormatter, RecordText
from .transcript import SessionTranscript, TranscriptRound

__all__ = ("NAME", "ROLES", "opening_lines", "print_transcript", "round_text")

ROLES = {"human": "bold cyan", "agent": "bold green", "environment": "dim", "scorer": "dim"}
NAME = 14
"""Columns of an actor's name, at most."""


def print_transcript(console: Console, transcript: SessionTranscript, *, full: bool) -> None:
    """Prints a whole transcript."""
    _TranscriptPrinter(console, transcript, full=full).print()


@final
class _TranscriptPrinter:
    def __init__(self, console: Console, transcript: SessionTranscript, *, full: bool) -> None:
        self._transcript = transcript
        summary = transcript.summary
        self._utc = not is_virtual(summary.opened)
        self._timed = has_times(summary.opened, summary.last)
        records = [record for one in transcript.rounds for record in one.records]
        actors = [record.actor for record in records if record.role in ("human", "agent")]
        self._page = Page(
            console,
            numbers=len(str(max(record.version for record in records))),
            times=8 if self._utc else max(len(self._time(record.time)) for record in records),
            names=min(max((len(clean(name)) for name in actors), default=0), NAME),
        )
        self._formatter = RecordFormatter(full=full, ahead=records)
        self._day = ""

    def print(self) -> None:
        self._head()
        before: float | None = 0.0
        for one in self._transcript.rounds:
            self._page.blank()
            self._heading(one, before)
            before = one.point.utility
            for record in one.records:
                shown = self._formatter.format(record)
                if shown is not None:
                    self._record(record, shown)
        self._page.blank()

    # --- one record ------------------------------------------------------------------------------

    def _record(self, record: Record, shown: RecordText) -> None:
        if self._utc:
            self._new_day(record.time)
        self._page.line(
            shown.text,
            number=str(record.version) if record.stream == TRACE else "",
            time=self._time(record.time) if not shown.quiet else "",
            name="" if shown.quiet else shorten(record.actor, NAME),
            style=ROLES[record.role],
        )
        self._page.block(shown.block)

    def _time(self, time: float) -> str:
        if not self._timed:
            return ""
        return moment(time)[-8:] if self._utc else duration(time)

    def _new_day(self, time: float) -> None:
        day = moment(time)[:10]
        if day != self._day:
            if self._day:
                self._page.plain(Text(day, style="dim"))
            self._day = day

    # --- headings --------------------------------------------------------------------------------

    def _head(self) -> None:
        summary, opened = self._transcript.summary, self._transcript.opened
        page = self._page
        page.plain(Text(clean(summary.session), style="bold"))
        if opened is None:
            page.plain(
                Text(f"its opening is {'erased' if summary.state == 'forgotten' else 'not there'}")
            )
            return
        for line in opening_lines(opened, summary.opened):
            page.plain(line)
        page.plain(self._outcome())
        if lost := self._transcript.trajectory.lost:
            text = f"incomplete: {quantity(lost, 'event')} could not be recorded, so rounds and effort are too low"
            page.plain(Text(text, style="yellow"))
        process = self._transcript.trajectory.process
        if process is not None and process.human_initiatives is not None:
            page.plain(Text(process_text(process), style="dim"))
        if self._transcript.reviews:
            page.plain(Text(_reviews_text(self._transcript.reviews), style="dim"))

    def _outcome(self) -> Text:
        summary, trajectory = self._transcript.summary, self._transcript.trajectory
        rounds = len(self._transcript.rounds)
        text = Text.assemble((trajectory.state, "bold"))
        text.append(f" after {quantity(rounds, 'round')}")
        if self._timed:
            text.append(f" and {duration(summary.last - summary.opened)}")
        points = trajectory.points
        scored = [point.utility for point in counted(trajectory) if point.utility is not None]
        if scored:
            text.append(f", utility {scored[-1]:.3f}")
            if max(scored) > scored[-1]:
                text.append(f" (at best {max(scored):.3f})")
            if trajectory.scorer is not None:
                text.append(f" by {clean(trajectory.scorer)}")
            elif wanted := self._transcript.wanted:
                text.append(f" by {clean(wanted)}, which measured nothing here")
            else:
                text.append(" by no scorer")
        elif trajectory.candidates:
            text.append(
                f", utility by {clean(' or '.join(trajectory.candidates))}: choose by --utility"
            )
        elif points:
            text.append(f", utility {missing_utility(trajectory) or NO_ROUND}")
        stops = [f"τ = {tau} after round {n}" for tau, n in self._transcript.stops.items()]
        if stops:
            text.append(f"; tolerance used up: {', '.join(stops)}")
        return text

    def _heading(self, one: TranscriptRound, before: float | None) -> None:
        point = one.point
        title = Text.assemble((f"Round {one.number}", "bold"), (f" · {point.stage}", "dim"))
        if one.number in self._transcript.trajectory.late:
            title.append(" · holds events that were written late", style="yellow")
        self._page.rule(title, right=round_text(point, before))
        effort = effort_words(point.effort)
        if effort:
            self._page.plain(Text(f"   effort by its end: {effort}", style="dim"))


def opening_lines(opened: SessionOpened, time: float) -> Iterator[Text]:
    """The task, setup and participants of a session.

    Args:
        opened: its opening.
        time: when it was opened, on its own clock.
    """
    facts = [f"task {clean(opened.task)}"]
    if opened.instance:
        facts.append(f"instance {clean(opened.instance)}")
    if opened.seed is not None:
        facts.append(f"seed {opened.seed}")
    facts.append(f"{opened.clock} clock")
    if not is_virtual(time):
        facts.append(f"opened {moment(time)}")
    yield Text(", ".join(facts), style="dim")
    for participant in opened.participants:
        yield _participant(participant)
    origin = opened.forked_from
    if origin is not None:
        yield Text(f"forked from {clean(origin.session)} after version {origin.version}")
    if opened.request:
        yield Text.assemble(("request: ", "bold"), clean(opened.request))


def round_text(point: Point, before: float | None) -> Text:
    """Utility (unless missing) and rating of a round, for its heading."""
    text = Text()
    if point.utility is not None and before is not None:
        text.append("utility ", style="dim")
        text.append(number(point.utility), style="bold")
        change = point.utility - before
        if abs(change) >= 0.0005:
            text.append(f" {change:+.3f}", style="green" if change > 0 else "red")
        if point.stale:
            text.append(" (stale)", style="yellow")
        text.append("  ")
    text.append("progress ", style="dim")
    if point.rating is None:
        return text.append("pending" if point.pending else "–", style="dim")
    style = "red" if is_unproductive(point.rating) else "green" if point.rating > PRODUCTIVE else ""
    return text.append(f"{point.rating}/5", style=style)


def _reviews_text(reviews: Reviews) -> str:
    """The reviewers, their tags and mean rating; the comments are records of the last round."""
    parts = [f"reviewed by {', '.join(map(clean, reviews.reviewers))}"]
    if reviews.names:
        parts.append(f"tags {', '.join(map(clean, reviews.names))}")
    if reviews.rating is not None:
        parts.append(f"rated {reviews.rating:.3g}")
    return "; ".join(parts)


def process_text(process: Process) -> str:
    """How the parties worked together, in words, without what is not known."""
    parts = []
    if process.agent_initiatives is not None and process.human_initiatives is not None:
        initiatives = quantity(process.agent_initiatives, "initiative")
        entropy = process.initiative_entropy
        balance = "" if entropy is None else f" (entropy {entropy:.2f})"
        parts.append(
            f"{initiatives} of the agent, {process.human_initiatives} of the human{balance}"
        )
    if process.confirmations_asked is not None:
        parts.append(f"{quantity(process.confirmations_asked, 'confirmation')} asked")
    if process.approved is not None:
        parts.append(f"{quantity(process.approved, 'approval')} given, {process.denied} denied")
    for number_of, what in ((process.halts, "halt"), (process.interruptions, "interruption")):
        if number_of is not None:
            parts.append(quantity(number_of, what))
    parts += _strain(process)
    return f"process: {'; '.join(parts)}"


def _strain(process: Process) -> Iterator[str]:
    """The strains on the human and the agent's repetitions, if there were any."""
    if process.peak_reading:
        yield f"at most {quantity(process.peak_reading, 'word')} to read at once"
    if process.hesitation is not None and process.hesitation >= 1:
        yield f"{duration(process.hesitation)} of hesitation"
    if process.reworked_lines:
        yield f"{quantity(process.reworked_lines, 'line')} reworked"
    if process.inquiries:
        yield quantity(process.inquiries, "inquiry", "inquiries")
    if process.loops and process.looping_acts is not None:
        acts = quantity(process.looping_acts, "repeated act")
        yield f"{quantity(process.loops, 'loop')} of the agent with {acts}"


def _participant(participant: Participant) -> Text:
    facts: list[str] = [participant.role]
    for what, value in (
        ("", participant.policy),
        ("persona ", participant.persona),
        ("model ", participant.model),
    ):
        if value:
            facts.append(f"{what}{clean(value)}")
    return Text.assemble(
        (clean(participant.name), ROLES[participant.role]), (f" ({', '.join(facts)})", "dim")
    )
