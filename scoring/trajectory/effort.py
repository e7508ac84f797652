"""Effort: the cost of a collaboration to the human, and the tokens that both sides generate.

All measures are cumulative. The paper (section 3) names the number of human-led rounds, the tokens
that the human processes, and the kind of act. All are folded from the trace; nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import (
    ApprovalAsked,
    ApprovalGiven,
    Event,
    Forgotten,
    MessageSent,
    Role,
    SessionOpened,
    SnapshotTaken,
    Unknown,
)
from ...engine.records import Record
from ...engine.rounds import is_requested
from ...engine.session.time.timing import Timing
from .generated_tokens import Generated
from .labels import has_agent
from .options import Options, plugged_counter, plugged_rule
from .output_lines import Lines, OutputLines, shown_lines, written

__all__ = ("MEASURES", "EffortMeter")

MEASURES: Final = (
    "rounds",
    "acts",
    "tokens_written",
    "tokens_read",
    "deferrals",
    "seconds",
    "agent_tokens",
    "human_tokens",
    "token_ratio",
)
"""Names of the measures, as in ``Point.effort``.

``rounds``: human-led rounds: those with a human act, and the first round if it has a given request.
``acts``: acts of humans, failed or refused ones too.
``tokens_written``: tokens of humans' messages, questions, comments, and of their changes to the
output (see ``text.new_words``). ``tokens_read``: tokens of agents' messages, questions and
comments, and of the lines that a diff adds to the output that the human last saw, file by file
(see ``text.new_lines``): several versions between two acts of the human are read once. If the human
was shown a diff, the lines that it adds count instead, once for each edit.
``deferrals``: vague asks, see ``turns.is_vague``.
``seconds``: session time the human spent. On a virtual clock: modelled reading and typing of those
texts, and the time spent on drafts that were dropped; between two acts of humans, and from the last
to the close, at most the time that passed. So the text of a request with which the session begins
takes none of it. The clock of an import without times never advances: its modelled reading and
typing count in full. On a real clock: from an agent's last act to the human's next, at
most ``Options.idle_cap`` each time. Without an agent: all of the session's time up to their last
act, on a real clock with the same cap between two acts. None if no opening says which clock is used.
``agent_tokens``, ``human_tokens``: tokens generated, see ``generated_tokens``. ``token_ratio``: agents'
over humans'; None where humans generated none.

All humans of a session are one party: their reading and writing is added up once. Messages that
agents send only to each other are not read by a human. Arguments of actions do not count as text.
"""


_ADDRESSED = (MessageSent, ApprovalAsked)


@final
class EffortMeter:
    """Folds the acts of one session into effort, one at a time, in constant memory.

    Args:
        options: token counter, timing, deferrals, idle cap.
        output: the lines of the output, if other folds of the session share them.
    """

    def __init__(self, options: Options, output: OutputLines | None = None) -> None:
        self._output = output or OutputLines()
        self._count = plugged_counter(options)
        self._vague = plugged_rule(options)
        self._idle_cap = options.idle_cap
        self._timing = options.timing
        self._virtual: bool | None = None
        self._humans: frozenset[str] = frozenset()
        self._led = False
        self._rounds = 0
        self._acts = 0
        self._written = 0
        self._read = 0
        self._deferrals = 0
        self._seconds = 0.0  # up to the latest act of a human that something has followed
        self._modelled = 0.0  # reading and typing since then
        self._since = self._now = 0.0  # session time: that act, and the latest that is known
        self._acted: float | None = None  # time of a human's act, as long as nothing has followed
        self._timed = False
        self._alone = False
        self._per_read = self._per_typed = 0.0
        self._handed_over: float | None = None
        self._seen: Lines = {}  # the output in lines, as a human last saw it
        self._latest: Lines = self._seen
        self._digest: str | None = None
        self._version = 0  # of the latest output
        self._unread: tuple[int, float] | None = (0, 0.0)
        self._unread_coarse = False
        self._coarse: set[int] = set()
        self.generated = Generated()

    @property
    def acts(self) -> int:
        """How many acts of humans there were."""
        return self._acts

    @property
    def coarse(self) -> int:
        """How many versions of the output were not compared in full with what went before them."""
        return len(self._coarse)

    def opened(self, event: SessionOpened) -> None:
        """Takes the opening of the session.

        Raises:
            InvalidInput: its ``config["timing"]`` is not a valid timing.
        """
        self._virtual = event.clock == "virtual"
        self._alone = not has_agent(event)
        if self._alone:
            self._handed_over = 0.0 if self._virtual else None
        elif self._virtual:
            self._per_read, self._per_typed = _pace_of(event, self._timing)
            self._timed = "imported" not in event.config
        self._humans = frozenset(p.name for p in event.participants if p.role == "human")
        if is_requested(event):
            self._lead()

    def reach(self, time: float) -> None:
        """Notes that session time has come to ``time``: so much can have been spent."""
        self._now = max(self._now, time)

    def next_round(self) -> None:
        """A new round begins; the next human act leads it."""
        self._led = False

    def closed(self) -> None:
        """Closes the session: counts unread text as read, and drops the stored texts."""
        self._catch_up()
        self._seen = self._latest = {}
        self._output.clear()

    def human(self, record: Record) -> None:
        """Takes a human's act; the round that it opens has begun already."""
        self._acts += 1
        if not self._led:
            self._lead()
        if self._acted is not None and record.time > self._acted:
            self._settle()
        self.reach(record.time)
        if self._seen is not self._latest:
            self._catch_up()
        if self._handed_over is not None:
            waited = max(record.time - self._handed_over, 0.0)
            self._seconds += waited if self._virtual else min(waited, self._idle_cap)
            self._handed_over = None
        if self._alone:
            self._handed_over = record.time
        self._acted = self._now
        kind = record.kind
        if kind == "SnapshotTaken":
            before = self._take(record)
            text = ""
            if before is not None:
                text, coarse = written(before, self._latest)
                self._note(coarse)
            self._seen = self._latest
            self._unread = (0, 0.0)
        else:
            text = _said(record.event) if kind != "ActionTaken" else ""
        if text:
            tokens = self._count(text)
            self._written += tokens
            self.generated.produced(record.actor, "human", tokens)
            if self._per_typed:
                self._modelled += _words_of(text) * self._per_typed
            if kind == "MessageSent" and self._vague(text):
                self._deferrals += 1

    def dropped(self, seconds: float, time: float) -> None:
        """Takes what a human was at work on and gave up: time, and no words."""
        self._follow(time)
        if self._virtual and not self._alone:  # alone, all that passes counts
            self._modelled += seconds

    def agent_acted(self, time: float) -> None:
        """Takes an agent's act without text: an action."""
        self._follow(time)
        if self._virtual is False:
            self._handed_over = time

    def agent(self, record: Record) -> None:
        """Takes an agent's act."""
        self._follow(record.time)
        if self._virtual is False:
            self._handed_over = record.time
        if record.kind == "SnapshotTaken":
            self._draft(record)
            return
        event = record.event
        text = _said(event)
        if text:
            tokens = self._count(text)
            self.generated.produced(record.actor, "agent", tokens)
            if self._reaches_human(event):
                self._read += tokens
                if self._per_read:
                    self._modelled += _words_of(text) * self._per_read

    def called(self, record: Record) -> None:
        """Takes a model call of a human's or an agent's."""
        role: Role = record.role
        if role == "agent" or role == "human":
            self.generated.called(record.actor, role, record)

    def measures(self) -> dict[str, float | None]:
        """The effort so far, by measure; includes text that the human has yet to read."""
        unread, seconds = self._unread or self._compare()
        agent = self.generated.tokens("agent")
        human = self.generated.tokens("human")
        return {
            "rounds": self._rounds,
            "acts": self._acts,
            "tokens_written": self._written,
            "tokens_read": self._read + unread,
            "deferrals": self._deferrals,
            "seconds": None if self._virtual is None else self._spent(seconds),
            "agent_tokens": agent,
            "human_tokens": human,
            "token_ratio": agent / human if human else None,
        }

    def _follow(self, time: float) -> None:
        """Something follows the latest acts of humans: reading and typing from now on happen after them."""
        self._settle()
        self.reach(time)

    def _settle(self) -> None:
        """Ends the time between two acts of humans, if one has just acted."""
        if self._acted is not None:
            self._seconds = self._spent(0.0)
            self._modelled, self._since, self._acted = 0.0, self._acted, None

    def _spent(self, unread: float) -> float:
        """The seconds so far, if the unread text takes so many more."""
        modelled = self._modelled + unread
        if not self._timed:
            return self._seconds + modelled
        until = self._now if self._acted is None else self._acted
        return self._seconds + min(modelled, until - self._since)

    def _lead(self) -> None:
        self._led = True
        self._rounds += 1

    def _reaches_human(self, event: Event | Unknown | Forgotten) -> bool:
        to = event.to if isinstance(event, _ADDRESSED) else ()
        return not to or not self._humans or not self._humans.isdisjoint(to)

    def _take(self, record: Record) -> Lines | None:
        """Takes a new version of the output; returns the previous one; None if nothing is new."""
        event = record.event
        if not isinstance(event, SnapshotTaken) or event.digest == self._digest:
            return None
        before, self._latest = self._latest, self._output.of(event)
        self._digest = event.digest
        self._version = record.version
        self._unread_coarse = False
        return before

    def _draft(self, record: Record) -> None:
        """Takes an agent's version of the output, to be read when a human acts again.

        A diff that the human was shown is read at once.
        """
        before = self._take(record)
        event = record.event
        if before is None or not isinstance(event, SnapshotTaken):
            return
        shown = {
            path: lines
            for path, now in self._latest.items()
            if now is not before.get(path) and (lines := shown_lines(event, path)) is not None
        }
        if shown:
            self._show(record.actor, before, shown)
            return
        text = self._output.new(before, self._latest)
        self._note(self._output.coarse)
        tokens = self._count(text)
        self.generated.produced(record.actor, "agent", tokens)
        self._unread = (tokens, self._reading(text)) if before is self._seen else None

    def _show(self, agent: str, before: Lines, shown: Mapping[str, list[str]]) -> None:
        """Takes the diffs that a human was shown, and the unread changes before them."""
        latest, seen = self._latest, dict(self._seen)
        others = {path: lines for path, lines in latest.items() if path not in shown}
        made = [line for lines in shown.values() for line in lines]
        made += self._output.new(before, others).splitlines()
        self._note(self._output.coarse)
        self.generated.produced(agent, "agent", self._count("\n".join(made)))
        for path, lines in shown.items():
            known, earlier = seen.get(path, []), before.get(path, [])
            text = "\n".join(lines)
            if known is not earlier and known != earlier:
                text = "\n".join([self._output.new({path: known}, {path: earlier}), *lines])
                self._note(self._output.coarse)
            self._read += self._count(text)
            self._modelled += self._reading(text)
            seen[path] = latest[path]
        behind = any(seen.get(path) is not lines for path, lines in latest.items())
        self._seen = seen if behind else latest
        self._unread = None if behind else (0, 0.0)

    def _note(self, coarse: bool) -> None:
        if coarse:
            self._coarse.add(self._version)

    def _reading(self, text: str) -> float:
        return _words_of(text) * self._per_read if self._per_read else 0.0

    def _compare(self) -> tuple[int, float]:
        text = self._output.new(self._seen, self._latest)
        self._unread = (self._count(text), self._reading(text))
        self._unread_coarse = self._output.coarse
        return self._unread

    def _catch_up(self) -> None:
        """Notes that the human has read the current output."""
        if self._seen is self._latest:
            return
        tokens, seconds = self._unread or self._compare()
        self._note(self._unread_coarse)
        self._unread_coarse = False
        self._read += tokens
        self._modelled += seconds
        self._seen = self._latest
        self._unread = (0, 0.0)


def _said(event: Event | Unknown | Forgotten) -> str:
    """The text of a message, question or comment; empty for what holds none."""
    if isinstance(event, MessageSent):
        return event.text
    if isinstance(event, ApprovalAsked):
        return event.question
    if isinstance(event, ApprovalGiven):
        return event.comment
    return ""


def _pace_of(opened: SessionOpened, timing: Timing) -> tuple[float, float]:
    """Seconds per word read, and per word typed.

    Args:
        opened: the opening; its ``config["timing"]`` goes before ``timing``, field by field.
        timing: the rates otherwise.

    Raises:
        InvalidInput: a rate is not a positive number.
    """
    settings = opened.config.get("timing")
    if settings is not None:
        known = msgspec.structs.asdict(timing)
        try:
            timing = msgspec.convert(
                known | dict(settings) if isinstance(settings, dict) else settings, Timing
            )
        except msgspec.ValidationError as error:
            raise InvalidInput(f'config["timing"] of a session is not valid: {error}') from error
    if not (timing.read_wpm > 0 and timing.type_wpm > 0):
        raise InvalidInput(
            "reading and typing speed are words a minute and must be above 0, not "
            f"{timing.read_wpm} and {timing.type_wpm}"
        )
    return 60.0 / timing.read_wpm, 60.0 / timing.type_wpm


def _words_of(text: str) -> int:
    """About how many words a text has: one more than blanks and line ends; 0 for the empty text."""
    return text.count(" ") + text.count("\n") + 1 if text else 0
