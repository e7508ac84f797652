"""Tests of folds as *given, when, then*: given a trace, when more records follow, then a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar, final

from ..engine import codec
from ..engine.events import Event, Role, Unknown
from ..engine.records import TRACE, Draft, Record
from .tools import require

__all__ = ("Fold", "Given", "When", "by", "given", "records_of")

T = TypeVar("T")
Out_co = TypeVar("Out_co", covariant=True)


class Fold(Protocol[Out_co]):
    """The interface of a fold: takes records in order, and returns a result or None."""

    def feed(self, record: Record, /) -> Out_co | None:
        """Takes the next record."""
        ...


def by(role: Role, event: Event | Unknown, *, actor: str | None = None, time: float = 0.0) -> Draft:
    """The draft of an event by a role: ``by("human", MessageSent(text="Hello"))``."""
    return Draft(event, actor or role, role, time)


def records_of(*facts: Event | Draft, session: str = "session", after: int = 0) -> list[Record]:
    """Trace records as a log would hold them; a bare event is by the environment."""
    drafts = [fact if isinstance(fact, Draft) else by("environment", fact) for fact in facts]
    records = []
    for version, draft in enumerate(drafts, after + 1):
        kind, schema = codec.kind_of(draft.event)
        records.append(
            Record(
                position=version,
                session=session,
                stream=TRACE,
                version=version,
                kind=kind,
                schema=schema,
                time=draft.time,
                actor=draft.actor,
                role=draft.role,
                cause=draft.cause,
                seen=draft.seen,
                caller_id=draft.id,
                body=codec.encode_body(draft.event),
            )
        )
    return records


@final
class Given:
    """A trace from before; made by ``given``."""

    def __init__(self, facts: Sequence[Event | Draft]) -> None:
        self._facts = facts

    def when(self, fold: Fold[T], *facts: Event | Draft) -> When[T]:
        """Feeds the trace to a fold, and then more records, whose results are kept.

        Without more, the results of the given trace are kept.
        """
        before = records_of(*self._facts)
        after = records_of(*facts, after=len(before))
        if not facts:
            before, after = [], before
        for record in before:
            fold.feed(record)
        return When([out for record in after if (out := fold.feed(record)) is not None])


@final
class When(Generic[T]):
    """The results of a fold."""

    def __init__(self, outputs: list[T]) -> None:
        self.outputs = outputs

    def then(self, *expected: T) -> None:
        """Compares the results with the expected ones."""
        require(self.outputs == list(expected), f"{self.outputs} is not {list(expected)}")

    def then_nothing(self) -> None:
        """Asserts that the fold gave nothing."""
        require(not self.outputs, f"{self.outputs} came of it")


def given(*facts: Event | Draft) -> Given:
    """Begins a test of a fold.

    For example::

        given(by("human", MessageSent(text="Hello")), by("agent", MessageSent(text="Hello")))
            .when(RoundProjector(), by("human", MessageSent(text="A trip, please")))
            .then(Round(number=1, first=1, last=2, ...))

    The facts are events by the environment, or drafts that name their role (see ``by``).
    """
    return Given(facts)
