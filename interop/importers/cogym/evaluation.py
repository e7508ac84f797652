"""The results of the published evaluation: performance and progress, round by round.

``agent_progress_eval.json`` and ``likert_score.json`` lie in the directory of results. Both are
objects of lists by session name, an element per round, numbered from 0 in ``user_step`` as human
turns count. An empty list says that the human took no turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import JSON, ProgressRated, ScorerRef, UtilityScored
from ....engine.records import TRACE, Draft, Record
from ....engine.rounds import Round, RoundProjector
from ....engine.scorers.protocol import measurement_id, stream_of
from ..conversation.numbers import share_of
from ..json_files import decode, load, read_bytes
from ..protocol import Diagnostic, Foreign, Found
from .files import Run
from .outcome import PARTS, RATING, SCORER, parts_of

__all__ = ("FEWER", "UNNAMED", "Evaluation", "EvaluationIndex", "TurnRounds")

_PERFORMANCE: Final = "agent_progress_eval.json"
_PROGRESS: Final = "likert_score.json"

_SCORER: Final = ScorerRef(
    name=SCORER, version="2", config=codec.digest({"value": RATING, "parts": sorted(PARTS)})
)
"""A newer version than that of the final performance, so that these scores count before it."""

_JUDGE: Final = ScorerRef(
    name="cogym-likert", version="1", config=codec.digest({"value": "rating"})
)

UNNAMED: Final = (
    "the published analysis leaves the session out, since its evaluation does not name it; here it "
    "has its final performance"
)
FEWER: Final = (
    "the published analysis has no rounds beyond those evaluated; here they carry forward"
)
_NO_LOG: Final = "evaluated, but without an event log here; left out"


_Items = TypeVar("_Items")


class _Performance(msgspec.Struct):
    """A round in ``agent_progress_eval.json``."""

    user_step: int
    has_result_updates: bool = False
    performance_rating: JSON = None
    evaluation: JSON = None


class _Progress(msgspec.Struct):
    """A round in ``likert_score.json``."""

    user_step: int
    rating: JSON = None
    explanation: JSON = None


@final
class TurnRounds:
    """The rounds of one session by human turns, as its trace is read."""

    def __init__(self) -> None:
        self._projector = RoundProjector("human-turn")
        self._over: list[Round] = []

    def take(self, found: Foreign) -> None:
        """Takes the next event of the session."""
        if found.stream != TRACE:
            return
        draft = found.draft
        kind, schema = codec.kind_of(draft.event)
        version = self._projector.current.last + 1
        over = self._projector.feed(
            Record(
                position=version,
                session=found.session,
                stream=TRACE,
                version=version,
                kind=kind,
                schema=schema,
                time=draft.time,
                actor=draft.actor,
                role=draft.role,
                cause=draft.cause,
                seen=None,
                caller_id=None,
                body=None,
                _event=draft.event,
            )
        )
        if over is not None and over.number < self._projector.number:
            self._over.append(over)

    @property
    def rounds(self) -> list[Round]:
        """All rounds so far."""
        return [*self._over, self._projector.current]


class Evaluation(NamedTuple):
    """The evaluation of one session; None for a list that does not name it.

    Attributes:
        performance: the elements of ``agent_progress_eval.json``.
        progress: the elements of ``likert_score.json``.
        directory: where the files are.
    """

    performance: tuple[_Performance, ...] | None
    progress: tuple[_Progress, ...] | None
    directory: Path

    @property
    def scores(self) -> bool:
        """Whether it says what each round is worth."""
        return bool(self.performance)

    def measure(self, session: str, rounds: list[Round], time: float) -> Iterator[Found]:
        """The measurements of a session, each about a round of its log.

        Args:
            session: id of the session.
            rounds: its rounds by human turns.
            time: the time of the measurements: that of the session's last event.
        """
        yield from self._scores(session, rounds, time)
        yield from self._ratings(session, rounds, time)

    def _scores(self, session: str, rounds: list[Round], time: float) -> Iterator[Found]:
        path = self.directory / _PERFORMANCE
        listed = self.performance or ()
        scored = [item for item in listed if _is_scored(item)]
        if listed and not scored and all(one.snapshot is None for one in rounds):
            # Without any submission, the performance is 0 by definition, whatever the other files
            # say.
            scored = [_Performance(user_step=0, performance_rating=0)]
        places = _Places(rounds, path, session)
        for item in scored:
            over = places.of(item.user_step)
            if isinstance(over, Diagnostic):
                yield over
                continue
            value = share_of(item.performance_rating)
            held = item.evaluation if isinstance(item.evaluation, Mapping) else {}
            event = UtilityScored(
                scorer=_SCORER,
                round=over.number,
                until=over.last_act or over.first,
                rounds="human-turn",
                value=value,
                parts=parts_of(held),
                missing=None if value is not None else f"{RATING} is {item.performance_rating!r}",
            )
            yield _measured(session, _SCORER, event, over.number, time)
        if self.performance is not None and len(listed) < len(rounds) - (len(rounds) == 1):
            yield Diagnostic("difference", FEWER, f"{path}, {len(listed)} rounds", session)

    def _ratings(self, session: str, rounds: list[Round], time: float) -> Iterator[Found]:
        places = _Places(rounds, self.directory / _PROGRESS, session)
        for item in self.progress or ():
            over = places.of(item.user_step)
            if isinstance(over, Diagnostic):
                yield over
                continue
            rating = _likert(item.rating)
            event = ProgressRated(
                round=over.number,
                rating=rating,
                until=over.last_act or over.first,
                rounds="human-turn",
                explanation=item.explanation if isinstance(item.explanation, str) else "",
                missing=None if rating is not None else _unrated(item.rating),
                scorer=_JUDGE,
            )
            yield _measured(session, _JUDGE, event, over.number, time)


@final
class EvaluationIndex:
    """The evaluations for the sessions of one import; reads each file once.

    Args:
        source: what is imported. Only files in it or below are searched for sessions without a log.
    """

    def __init__(self, source: Path) -> None:
        self._source = source.resolve()
        self._files: dict[Path, Mapping[str, msgspec.Raw] | None] = {}
        self._seen: set[tuple[Path, str]] = set()

    def of(self, run: Run, session: str) -> Iterator[Evaluation | Diagnostic]:
        """The evaluation of a session, if there is any; and what there is to report.

        Args:
            run: its files.
            session: its id.
        """
        if run.directory is None:
            return
        directory = run.directory.parent
        performance, progress = directory / _PERFORMANCE, directory / _PROGRESS
        self._seen |= {(performance, run.name), (progress, run.name)}
        for path in (performance, progress):
            yield from self._load(path)
        scores = self._lists(performance, run.name, tuple[_Performance, ...])
        ratings = self._lists(progress, run.name, tuple[_Progress, ...])
        if isinstance(scores, Diagnostic):
            yield scores
            scores = None
        elif scores is None and self._files[performance] is not None:
            yield Diagnostic("difference", UNNAMED, str(performance), session)
        if isinstance(ratings, Diagnostic):
            yield ratings
            ratings = None
        yield Evaluation(scores, ratings, directory)

    def left(self) -> Iterator[Diagnostic]:
        """Reports evaluations whose log was not read; call it once all sessions are read."""
        for path, lists in self._files.items():
            if lists is not None and path.parent.is_relative_to(self._source):
                for name in lists:
                    if (path, name) not in self._seen:
                        yield Diagnostic("difference", _NO_LOG, f"{path}, {name}")

    def _load(self, path: Path) -> Iterator[Diagnostic]:
        if path in self._files:
            return
        self._files[path] = None
        if not path.exists():
            return
        try:
            self._files[path] = load(read_bytes(path), dict[str, msgspec.Raw], str(path))
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid evaluation: {error}", str(path))

    def _lists(self, path: Path, name: str, type: type[_Items]) -> _Items | Diagnostic | None:
        lists = self._files[path]
        raw = None if lists is None else lists.get(name)
        if raw is None:
            return None
        try:
            return decode(raw, type)
        except InvalidInput as error:
            return Diagnostic(
                "problem", f"invalid evaluation of a session: {error}", f"{path}, {name}", name
            )


def _is_scored(item: _Performance) -> bool:
    """Whether a round has a new result: a performance, or an update whose performance is missing."""
    return item.performance_rating is not None or item.has_result_updates


@final
class _Places:
    """Finds the round of each element of a list, which names every round once at most."""

    def __init__(self, rounds: list[Round], path: Path, session: str) -> None:
        self._rounds = rounds
        self._path = path
        self._session = session
        self._taken: set[int] = set()

    def of(self, step: int) -> Round | Diagnostic:
        """The round; a problem if the log has none, or the list named it before."""
        if not 0 <= step < len(self._rounds):
            return self._problem(f"the log has no round for user_step {step}")
        if step in self._taken:
            return self._problem(f"user_step {step} is listed twice")
        self._taken.add(step)
        return self._rounds[step]

    def _problem(self, what: str) -> Diagnostic:
        return Diagnostic("problem", what, str(self._path), self._session)


def _likert(said: JSON) -> int | None:
    """A rating from 1 to 5, as a number or as text; None if it is neither."""
    if isinstance(said, str):
        try:
            said = float(said)
        except ValueError:
            return None
    if isinstance(said, bool) or not isinstance(said, (int, float)):
        return None
    return int(said) if said in (1, 2, 3, 4, 5) else None


def _unrated(said: JSON) -> str:
    return "no rating" if said is None else f"the rating is {said!r}, and not from 1 to 5"


def _measured(
    session: str, ref: ScorerRef, event: UtilityScored | ProgressRated, number: int, time: float
) -> Foreign:
    identity = measurement_id(ref, f"round/{number}")
    return Foreign(session, stream_of(ref), Draft(event, ref.name, "scorer", time, id=identity))
