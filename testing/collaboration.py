"""Records a collaboration in a test, and asserts on it afterwards."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import NoReturn, TypedDict, Unpack, final

from rich.console import Console

from ..cli.text.transcript import SessionTranscript, make_transcript
from ..cli.text.transcript_view import print_transcript
from ..engine.errors import InvalidInput, SessionNotFound
from ..engine.events import CloseReason, ScorerFailed, UtilityScored
from ..engine.log.contract import SessionSummary
from ..engine.records import Record
from ..engine.scorers.protocol import Scorer
from ..scoring.trajectory.effort import MEASURES
from ..scoring.trajectory.options import Options
from ..scoring.trajectory.points import Trajectory
from ..scoring.trajectory.tolerance import PENDING, stop_rounds
from ..telemetry.log import open as open_embedded
from ..telemetry.receipt import Awaited, Receipt
from ..telemetry.session import About, Recording, check_about
from ..telemetry.sync import open_sync

__all__ = ("Collaboration", "CollaborationError", "RecordedSession")

_WIDTH = 100


@final
class CollaborationError(AssertionError):
    """A collaboration is not as a test expects.

    Attributes:
        transcript: the transcript of the session; the message ends with it.
    """

    def __init__(self, message: str, transcript: str) -> None:
        super().__init__(f"{message}\n\n{transcript}")
        self.transcript = transcript


class _SessionEnding(TypedDict):
    reason: CloseReason
    detail: str


@final
class Collaboration:
    """The value of the fixture ``duolog_session``: records sessions, and asserts on the last one.

    Args:
        name: the name of the test: the id of its first session; further ones have a number
            appended.
        where: URL of their log; ``memory://`` for one that exists only while they are recorded.
    """

    def __init__(self, name: str, where: str = "memory://") -> None:
        self._name = name
        self._where = where
        self._tapings: list[RecordedSession] = []

    def record(
        self,
        *,
        scorers: Sequence[Scorer] = (),
        options: Options | None = None,
        **about: Unpack[About],
    ) -> RecordedSession:
        """A session to be recorded: enter it with ``with``, or with ``async with``.

        Leaving it closes it, unless it is closed already: as ``ended``, or as ``failed`` if there is
        an exception. Close it yourself to record how it ended, e.g. ``session.close("finished")``. Then the scorers complete their measurements.

        Args:
            scorers: the scorers that measure it.
            options: how it is scored.
            about: facts about it, as for ``Log.session``.

        Raises:
            InvalidInput: ``about`` has a name that ``Log.session`` does not know.
        """
        check_about(about)
        taping = RecordedSession(
            self._name, self._where, tuple(scorers), options or Options(), about
        )
        self._tapings.append(taping)
        return taping

    # --- what came of it --------------------------------------------------------------------------

    @property
    def result(self) -> SessionTranscript:
        """The last session, complete and scored.

        Raises:
            InvalidInput: none has been recorded, or its recording is not over.
        """
        if not self._tapings:
            raise InvalidInput(
                "nothing was recorded: use 'with duolog_session.record() as session'"
            )
        found = self._tapings[-1].result
        if found is None:
            raise InvalidInput(
                "the session is not over: assert on it after the 'with' that records it"
            )
        return found

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory of the last session; raises as ``result``."""
        return self.result.trajectory

    @property
    def records(self) -> list[Record]:
        """The records of the last session, of all streams in order; raises as ``result``."""
        return [record for part in self.result.rounds for record in part.records]

    @property
    def utility(self) -> float | None:
        """Utility at its end; None if nothing was scored; raises as ``result``."""
        points = self.trajectory.points
        scored = any(point.value is not None for point in points)
        return points[-1].utility if scored else None

    @property
    def effort(self) -> Mapping[str, float | None]:
        """The human's total effort, by measure; raises as ``result``."""
        points = self.trajectory.points
        return points[-1].effort if points else {}

    @property
    def rounds(self) -> int:
        """The number of rounds; raises as ``result``."""
        return len(self.trajectory.points)

    def stop(self, tau: int) -> int | None:
        """The round after which a tolerance is used up; None if it is not.

        Raises:
            InvalidInput: the tolerance is below 1; or as ``result``.
        """
        ratings = [PENDING if p.pending else p.rating for p in self.trajectory.points]
        return stop_rounds(ratings, (tau,))[tau]

    # --- assertions -------------------------------------------------------------------------------

    def assert_utility(
        self, *, at_least: float | None = None, at_most: float | None = None
    ) -> None:
        """Asserts on the utility at the end.

        Raises:
            CollaborationError: it is not as expected, or nothing was scored.
            InvalidInput: as ``result``.
        """
        __tracebackhide__ = True
        if self.utility is None:
            self._fail(f"no utility was measured: {self._why_not()}")
        self._within("the utility", self.utility, at_least, at_most)

    def assert_effort(
        self, measure: str, *, at_least: float | None = None, at_most: float | None = None
    ) -> None:
        """Asserts on the human's total effort.

        Raises:
            CollaborationError: it is not as expected, or is not known.
            InvalidInput: there is no such measure, see ``scoring.effort``; or as ``result``.
        """
        __tracebackhide__ = True
        if measure not in MEASURES:
            raise InvalidInput(f"unknown effort {measure!r}; choose from {', '.join(MEASURES)}")
        value = self.effort.get(measure)
        if value is None:
            self._fail(f"the effort in {measure} is not known here")
        self._within(f"the effort in {measure}", value, at_least, at_most)

    def assert_rounds(
        self,
        exactly: int | None = None,
        *,
        at_least: int | None = None,
        at_most: int | None = None,
    ) -> None:
        """Asserts on the number of rounds; raises as ``assert_utility``."""
        __tracebackhide__ = True
        if exactly is not None and self.rounds != exactly:
            self._fail(f"the number of rounds is {self.rounds}, and not {exactly}")
        self._within("the number of rounds", self.rounds, at_least, at_most)

    def assert_stop(self, tau: int, *, after: int | None = None) -> None:
        """Asserts that a human of this tolerance would stop, at all or after a given round.

        Raises:
            CollaborationError: they would not.
            InvalidInput: as ``stop``.
        """
        __tracebackhide__ = True
        found = self.stop(tau)
        if found is None:
            self._fail(f"τ = {tau} is not used up: {self._ratings()}")
        if after is not None and found != after:
            self._fail(f"τ = {tau} is used up after round {found}, and not after round {after}")

    def assert_no_stop(self, tau: int) -> None:
        """Asserts that a human of this tolerance would stay to the end; raises as ``assert_stop``."""
        __tracebackhide__ = True
        found = self.stop(tau)
        if found is not None:
            self._fail(f"τ = {tau} is used up after round {found}: {self._ratings()}")

    def _within(
        self, what: str, value: float, at_least: float | None, at_most: float | None
    ) -> None:
        __tracebackhide__ = True
        if at_least is not None and not value >= at_least:
            self._fail(f"{what} is {value:g}, and not at least {at_least:g}")
        if at_most is not None and not value <= at_most:
            self._fail(f"{what} is {value:g}, and not at most {at_most:g}")

    def _why_not(self) -> str:
        """The reason why utility is missing."""
        for record in self.records:
            event = record.event
            if isinstance(event, ScorerFailed):
                return f"{record.stream} failed: {event.type}: {event.error}"
            if isinstance(event, UtilityScored):
                return f"{record.stream} has none: {event.missing}"
        return "give record() scorers that find one"

    def _ratings(self) -> str:
        points = self.trajectory.points
        told = ("–" if point.rating is None else str(point.rating) for point in points)
        return f"the rounds are rated {', '.join(told)}"

    def _fail(self, message: str) -> NoReturn:
        __tracebackhide__ = True
        raise CollaborationError(message, text_of(self.result))

    # --- the report -------------------------------------------------------------------------------

    def sections(self, error: BaseException) -> Iterator[tuple[str, str]]:
        """Title and transcript of each session, for the report of a failure, unless it has them."""
        for taping in self._tapings:
            if taping.result is not None:
                text = text_of(taping.result)
                if not (isinstance(error, CollaborationError) and error.transcript == text):
                    yield f"duolog session {taping.result.summary.session}", text


@final
class RecordedSession:
    """A session while it is recorded: a context manager, synchronous and asynchronous.

    Attributes:
        result: the transcript; None until it is over.
    """

    def __init__(
        self, name: str, where: str, scorers: tuple[Scorer, ...], options: Options, about: About
    ) -> None:
        self.result: SessionTranscript | None = None
        self._name = name
        self._where = where
        self._scorers = scorers
        self._options = options
        self._about = about
        self._sync = ExitStack()
        self._async = AsyncExitStack()

    def _ids(self) -> Iterator[str]:
        yield self._name
        number = 1
        while True:
            number += 1
            yield f"{self._name} ({number})"

    def _keep(self, records: Sequence[Record], summary: SessionSummary) -> None:
        self.result = make_transcript(records, summary, self._options)

    # --- for synchronous tests --------------------------------------------------------------------

    def __enter__(self) -> Recording[Receipt]:
        with ExitStack() as entered:
            log = entered.enter_context(open_sync(self._where, durable=True))
            for name in self._ids():
                try:
                    log.summary(name)
                except SessionNotFound:
                    break
            watch = log.watch(scorers=self._scorers, session=name, options=self._options)
            session = log.session(name, **self._about)

            def end(
                kind: type[BaseException] | None,
                error: BaseException | None,
                traceback: TracebackType | None,
            ) -> None:
                session.close(**_ending(error))
                watch.settle()
                self._keep(log.read_all(name), log.summary(name))

            entered.push(end)
            self._sync = entered.pop_all()
        return session

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._sync.__exit__(kind, error, traceback)

    # --- for asynchronous ones --------------------------------------------------------------------

    async def __aenter__(self) -> Recording[Awaited]:
        async with AsyncExitStack() as entered:
            log = await entered.enter_async_context(open_embedded(self._where, durable=True))
            for name in self._ids():
                try:
                    await log.summary(name)
                except SessionNotFound:
                    break
            watch = log.watch(scorers=self._scorers, session=name, options=self._options).start()
            session = await log.session(name, **self._about)

            async def end(
                kind: type[BaseException] | None,
                error: BaseException | None,
                traceback: TracebackType | None,
            ) -> None:
                await session.close(**_ending(error))
                await watch.settle()
                records = [record async for record in log.read_all(session=name)]
                self._keep(records, await log.summary(name))

            entered.push_async_exit(end)
            self._async = entered.pop_all()
        return session

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._async.__aexit__(kind, error, traceback)


def _ending(error: BaseException | None) -> _SessionEnding:
    """The ending of a session that is left with this exception."""
    if error is None:
        return {"reason": "ended", "detail": ""}
    return {"reason": "failed", "detail": type(error).__name__}


def text_of(transcript: SessionTranscript) -> str:
    """A transcript as plain text."""
    out = io.StringIO()
    console = Console(
        file=out, width=_WIDTH, color_system=None, markup=False, highlight=False, emoji=False
    )
    print_transcript(console, transcript, full=False)
    return out.getvalue().strip("\n")
