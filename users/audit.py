"""Audits simulated users: counts copies from their profile, and inventions.

A faulty simulator distorts results, so its faults are measured: a scorer looks at each message of a
simulated user and records a ``SimulatorFlagged`` for each fault. The checks here are independent of
the task and look for plain signs; a task can add its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, final

import msgspec

from ..engine.events import (
    JSON,
    ActionResolved,
    MessageSent,
    ProfileChanged,
    ScorerRef,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
)
from ..engine.files import output_text
from ..engine.records import TRACE, Record
from ..engine.scorers.protocol import Measurement, SessionScorer
from ..engine.text import NUMBER_WORDS, text_of
from ..scoring.scorers.utility import reference
from .model_mind import profile_text

__all__ = (
    "CHECKS",
    "Check",
    "Fault",
    "SimulatorAudit",
    "Utterance",
    "find_inventions",
    "find_leaks",
)

NAME = "simulator-audit"

_COPIED = 6
"""Words in a row that are unlikely to match a text by chance. Names and numbers do not count,
because they cannot be put in other words.
"""
_SHORT = 4
"""Words in a row that count as a copy if they are the whole entry."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"(?<![.!?:;\"“(] )(?<=[a-z,;] )[A-Z][a-z]{2,}\b")  # within a sentence
_COMMON = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june "
    "july august september october november december".split()
)


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a simulated user, and everything that the user knew.

    Attributes:
        text: the message.
        profile: the user's private knowledge.
        request: the initial request.
        known: everything else that it could see: others' messages, outputs, outcomes of its own actions.
        before: the user's own messages so far, without the request.
    """

    text: str
    profile: JSON
    request: str
    known: Sequence[str]
    before: Sequence[str]


class Fault(msgspec.Struct, frozen=True):
    """A fault: what kind (``leak``, ``invention``, ...), and what shows it."""

    kind: str
    detail: str


Check: TypeAlias = Callable[[Utterance], Iterable[Fault]]
"""Finds faults of one kind in a message."""


def find_leaks(said: Utterance) -> Iterator[Fault]:
    """The parts of the message that copy the profile: several of its words in a row, or a whole short entry.

    Words that others had already used are not a leak.
    """
    words = _words(said.text)
    public = [_words(text) for text in (said.request, *said.known)]
    for entry in profile_text(said.profile).split("\n"):
        secret = _words(entry)
        fixed = _fixed(entry)
        needed = min(_COPIED, max(sum(word not in fixed for word in secret), _SHORT))
        run = _longest_run(words, secret)
        copied = sum(word not in fixed for word in run)
        if copied >= needed and not any(_contains(text, run) for text in public):
            yield Fault("leak", f"copies {' '.join(run)!r} from the profile")


def find_inventions(said: Utterance) -> Iterator[Fault]:
    """Numbers, and names within a sentence, that appear in nothing that the user knew."""
    sources = [profile_text(said.profile), said.request, *said.known, *said.before]
    numbers = {_plain(number) for text in sources for number in _NUMBER.findall(text)}
    numbers |= {str(NUMBER_WORDS[w]) for text in sources for w in _words(text) if w in NUMBER_WORDS}
    for number in dict.fromkeys(_NUMBER.findall(said.text)):
        if _plain(number) not in numbers:
            yield Fault("invention", f"nothing says {number}")
    words = {word for text in sources for word in _words(text)}
    for name in dict.fromkeys(_NAME.findall(said.text)):
        if name.lower() not in words and name.lower() not in _COMMON:
            yield Fault("invention", f"nothing mentions {name}")


CHECKS: tuple[Check, ...] = (find_leaks, find_inventions)
"""The checks that know no task."""


@final
class SimulatorAudit:
    """Looks at each message of each simulated user (a human participant with a persona).

    Args:
        checks: the faults to look for.
        version: raise it when the checks change.
    """

    def __init__(self, checks: Sequence[Check] = CHECKS, *, version: str = "1") -> None:
        self._checks = checks
        names = [getattr(check, "__qualname__", repr(check)) for check in checks]
        self.ref = reference(NAME, version, names)

    def begin(self, session: str) -> SessionScorer:
        """Starts to audit one session from its first record."""
        return _Auditing(self.ref, self._checks)


@final
class _Auditing:
    def __init__(self, ref: ScorerRef, checks: Sequence[Check]) -> None:
        self._ref = ref
        self._checks = checks
        self._profiles: dict[str, JSON] = {}
        self._request = ""
        self._seen: dict[str, list[str]] = {}
        self._before: dict[str, list[str]] = {}
        self._actions: dict[int, str] = {}

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        event = record.event
        measurements: Sequence[Measurement] = ()
        if isinstance(event, SessionOpened):
            self._open(event)
        elif isinstance(event, MessageSent):
            if record.actor in self._profiles:
                measurements = self._audit(record, event)
            self._show(event.text, event.to, by=record.actor)
        elif isinstance(event, SnapshotTaken):
            self._show(output_text(event))
        elif isinstance(event, ProfileChanged) and event.owner in self._profiles:
            self._profiles[event.owner] = event.profile
        elif record.kind == "ActionTaken":
            self._actions[record.version] = record.actor
        elif isinstance(event, ActionResolved):
            actor = self._actions.pop(event.action, "")
            if actor in self._seen and event.observation is not None:
                self._seen[actor].append(text_of(event.observation))
        return measurements

    def _open(self, event: SessionOpened) -> None:
        self._request = event.request or ""
        simulated = [p.name for p in event.participants if p.role == "human" and p.persona]
        self._profiles = {name: event.private.get(name) for name in simulated}
        self._seen = {name: [] for name in simulated}
        self._before = {name: [] for name in simulated}

    def _show(self, text: str, to: Sequence[str] = (), *, by: str = "") -> None:
        for name, seen in self._seen.items():
            if name != by and (not to or name in to):
                seen.append(text)

    def _audit(self, record: Record, event: MessageSent) -> Sequence[Measurement]:
        name = record.actor
        if not self._request:
            self._request = event.text
            return ()  # it is part of the task, and not in the user's words
        said = Utterance(
            text=event.text,
            profile=self._profiles[name],
            request=self._request,
            known=self._seen[name],
            before=self._before[name],
        )
        faults = [fault for check in self._checks for fault in check(said)]
        self._before[name].append(event.text)
        return [
            Measurement(
                SimulatorFlagged(
                    fault=fault.kind, of=record.version, detail=fault.detail, scorer=self._ref
                ),
                f"message/{record.version}/{number}",
            )
            for number, fault in enumerate(faults, start=1)
        ]


def _words(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def _fixed(entry: str) -> set[str]:
    """The words of an entry that cannot be paraphrased: numbers, and names but for its first word."""
    written = _WORD.findall(entry)[1:]
    return {word.lower().replace("’", "'") for word in written if not word[0].islower()}


def _plain(number: str) -> str:
    """A number without separators of thousands, and without decimals that say nothing."""
    return re.sub(r"\.0+$", "", number.replace(",", ""))


def _longest_run(words: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """The longest run of words that both have."""
    best: Sequence[str] = ()
    lengths = [0] * (len(others) + 1)
    for index, word in enumerate(words):
        now = [0] * (len(others) + 1)
        for place, other in enumerate(others, start=1):
            if word == other:
                now[place] = lengths[place - 1] + 1
                if now[place] > len(best):
                    best = words[index + 1 - now[place] : index + 1]
        lengths = now
    return best


def _contains(words: Sequence[str], run: Sequence[str]) -> bool:
    return any(words[i : i + len(run)] == run for i in range(len(words) - len(run) + 1))
