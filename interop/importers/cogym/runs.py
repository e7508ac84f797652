"""The importer for Collaborative Gym: result directories, or an event log on its own.

Each record of a log is an act with its outcome, and holds the whole state after it. The acts become
events; the shared editor's text after an edit that succeeded is a snapshot. The initial request,
which the log does not record, is the session's request. Acts that failed, or that answer nothing,
are actions. ``task_performance.json`` becomes the utility of the final output, and the token counts
in ``info.json`` one model call for each model, at the end: the time of use is unknown. Results of
the published evaluation (``evaluation``) become utility and ratings by round.

Times are local times of the machine that ran the session, and name no zone: ``Reading.zone`` gives
it (UTC by default). A log without readable times is on a virtual clock that does not advance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, final

from ....engine.events import JSON, SessionOpened
from ..json_files import files_in
from ..json_sniff import Shape
from ..protocol import Diagnostic, Foreign, Found, Reading
from ..timestamps import zone_name
from ..trace_builder import TraceBuilder
from .evaluation import Evaluation, EvaluationIndex, TurnRounds
from .files import (
    LOG_NAMES,
    Differences,
    Row,
    Run,
    Survey,
    is_log,
    loose_logs,
    row_of,
    rows_of,
    runs_at,
    survey,
)
from .outcome import SCORER, Info, calls_of, closing, infos_of, participants_of, score_of
from .sessions import FINISH, SessionReader, call_of, role_of, succeeded

__all__ = ("CogymImporter",)

_NAME: Final = "cogym"


@final
class CogymImporter:
    """Reads results of Collaborative Gym."""

    name = _NAME
    about = "results of Collaborative Gym: a directory with event_log.jsonl below it, or a log"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether there is an event log below a directory, or a file has records of one."""
        if not source.is_dir():
            return is_log(shape)
        results = any(files_in(source, f"**/{name}") for name in LOG_NAMES)
        return results or bool(loose_logs(source))

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads all sessions.

        Raises:
            InvalidInput: there is no event log, or one that cannot be read.
        """
        evaluations = EvaluationIndex(source)
        for run in runs_at(source):
            if isinstance(run, Diagnostic):
                yield run
            else:
                yield from _Reader(run, reading, evaluations).read()
        yield from evaluations.left()


@final
class _Reader:
    """Reads one session."""

    def __init__(self, run: Run, reading: Reading, evaluations: EvaluationIndex) -> None:
        self._run = run
        self._reading = reading
        self._survey: Survey = survey(run)
        self._builder = TraceBuilder(self._survey.session)
        self._differences = Differences(self._survey.session)
        self._reader = SessionReader(self._builder, reading, self._differences)
        self._infos: dict[str, Info] = {}
        self._scored, self._unscored = score_of(run)
        self._evaluations = evaluations
        self._evaluation: Evaluation | None = None
        self._rounds = TurnRounds()

    def read(self) -> Iterator[Found]:
        """The events of the session, its measurements, and what there is to report."""
        for evaluation in self._evaluations.of(self._run, self._survey.session):
            if isinstance(evaluation, Diagnostic):
                yield evaluation
            else:
                self._evaluation = evaluation
        for found in self._read():
            if isinstance(found, Foreign):
                self._rounds.take(found)
            yield found
        if not self._builder.version:
            return
        if self._evaluation is not None:
            session, time = self._survey.session, self._builder.time
            yield from self._evaluation.measure(session, self._rounds.rounds, time)
        yield from self._differences.diagnostics()

    def _read(self) -> Iterator[Found]:
        for info in infos_of(self._run, self._survey.members):
            if isinstance(info, Diagnostic):
                yield info
            else:
                self._infos[info.member] = info
        rows = self._rows()
        first = next(rows, None)
        while isinstance(first, Diagnostic):
            yield first
            first = next(rows, None)
        if first is None:
            yield Diagnostic("problem", "an event log without records", str(self._run.log))
            return
        opens = role_of(first.role) == "environment"
        yield self._open(first if opens else None, first)
        held = None if opens else first
        for row in rows:
            if isinstance(row, Diagnostic):
                yield row
                continue
            if held is not None:
                yield from self._reader.read(held)
            held = row
        yield from self._end(held)

    def _rows(self) -> Iterator[Row | Diagnostic]:
        return map(row_of, rows_of(self._run.log))

    def _open(self, start: Row | None, first: Row) -> Foreign:
        """The opening; the first record describes it, if it is the environment's."""
        call = call_of(start) if start is not None else None
        arguments: Mapping[str, str] = {} if call is None else call.values
        description = arguments.get("task_description", "").strip()
        request = arguments.get("query", "").strip() or description
        time = self._reader.begin(first)
        imported: dict[str, JSON] = {"format": _NAME}
        if time is not None:
            imported["zone"] = zone_name(self._reading.zone)
        config: dict[str, JSON] = {"imported": imported}
        agent = next((name for name in self._survey.members if role_of(name) == "agent"), None)
        if self._run.group and agent is not None:  # agents of several experiments share a name
            config["group"] = {"agent": f"{agent} ({self._run.group})"}
        if description and description != request:
            config["task_description"] = description
        if self._scored is not None or (self._evaluation and self._evaluation.scores):
            config["utility"] = SCORER
        members = self._survey.members
        if not self._survey.complete:  # members who never acted may have been present
            config["baseline"] = False
        task, instance = self._run.numbered or (_NAME, self._run.name)
        opened = SessionOpened(
            task=task,
            instance=instance,
            problem=instance if self._run.numbered else None,
            participants=participants_of(members, self._infos),
            clock="virtual" if time is None else "utc",
            request=request or None,
            config=config,
        )
        return self._reader.opened(opened, start, time or 0.0)

    def _end(self, last: Row | None) -> Iterator[Found]:
        """The last record, and the other files of the session."""
        finisher = None
        if last is not None:
            if (
                call_of(last).name == FINISH
                and succeeded(last)
                and role_of(last.role) != "environment"
            ):
                finisher = last.role
                yield from self._reader.end(last)
            else:
                yield from self._reader.read(last)
        time = self._builder.time if last is None else self._reader.time_of(last.timestamp)
        for info in self._infos.values():
            for called in calls_of(info):
                yield self._builder.put(called, info.member, role_of(info.member), time)
        if self._unscored is not None:
            yield self._unscored
        closed = closing(finisher, self._scored is not None, self._reader.acts)
        if closed is not None:
            by = role_of(closed.by) if finisher is not None else "environment"
            yield from self._builder.close(closed, by, time)
        if self._scored is not None:
            yield self._builder.measure(self._scored)
