"""The participants of a study: consent, assignment and answers, folded from their log.

Each participant is a session of that log, under their pseudonym, with one stream, ``review``. The sessions in
which they work are in another log, so that reports hold nothing but collaborations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, final

import anyio
import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import (
    JSON,
    AnswersGiven,
    ConditionAssigned,
    ConditionBegun,
    ConsentGiven,
    Event,
    ParticipantWithdrew,
)
from ...engine.log.contract import Store
from ...engine.records import REVIEW, Draft, Record
from ...engine.redacting import redact_secrets
from ...engine.text import suggestion
from ...scoring.index.erasure import erase
from .assigning import assign
from .instruments import checked_answers
from .plan import Questionnaire, Study

__all__ = ("Answered", "Counts", "People", "Person", "Step", "next_step", "read_people")


class Answered(NamedTuple):
    """A questionnaire that was answered, and when, in seconds since 1970."""

    event: AnswersGiven
    at: float


@final
class Person(msgspec.Struct, kw_only=True):
    """A participant, as their records say.

    Attributes:
        name: their pseudonym.
        agreed: what they said to the consent text; None if they did not answer.
        since: when they agreed, in seconds since 1970.
        assigned: their conditions.
        begun: the session of each place that they began.
        answers: their questionnaires, by name and place.
        withdrew: they withdrew.
    """

    name: str
    agreed: bool | None = None
    since: float = 0.0
    assigned: ConditionAssigned | None = None
    begun: dict[int, ConditionBegun] = {}
    answers: dict[tuple[str, int | None], Answered] = {}
    withdrew: bool = False

    def take(self, record: Record) -> None:
        """Takes the next record."""
        if record.body is None:  # erased: its envelope says that they withdrew
            self.withdrew = self.withdrew or record.kind == ParticipantWithdrew.__name__
            return
        match record.event:
            case ConsentGiven(agreed=agreed):
                self.agreed, self.since = agreed, record.time
            case ConditionAssigned() as event:
                self.assigned = event
            case ConditionBegun() as event:
                self.begun[event.place] = event
            case AnswersGiven() as event:
                self.answers[event.questionnaire, event.place] = Answered(event, record.time)
            case ParticipantWithdrew():
                self.withdrew = True
            case _:
                pass


class Step(NamedTuple):
    """The next step of a participant.

    Attributes:
        kind: ``consent``, ``declined``, ``full``, ``questions``, ``begin``, ``working``, ``done``, or
            ``withdrawn``.
        place: number of the condition that it is about, from 1; None if it is about none.
        questionnaire: to answer.
        at: how many steps they have behind them.
        of: how many steps there are.
    """

    kind: str
    place: int | None = None
    questionnaire: Questionnaire | None = None
    at: int = 0
    of: int = 0


def next_step(study: Study, person: Person, over: Callable[[str], bool]) -> Step:
    """The next step of a participant.

    Args:
        study: the study.
        person: the participant.
        over: whether a session is closed.
    """
    if person.withdrew:
        return Step("withdrawn")
    if person.assigned is None:
        return Step("declined" if person.agreed is False else "consent")
    places = range(1, len(person.assigned.conditions) + 1)
    steps = [Step("questions", None, one) for one in study.asked("before")]
    for place in places:
        steps.append(Step("working", place))
        steps += [Step("questions", place, one) for one in study.asked("condition")]
    steps += [Step("questions", None, one) for one in study.asked("end")]
    for number, step in enumerate(steps):
        if step.questionnaire is not None:
            done = (step.questionnaire.name, step.place) in person.answers
        else:
            begun = person.begun.get(step.place or 0)
            done = begun is not None and over(begun.session)
            if begun is None:
                step = step._replace(kind="begin")
        if not done:
            return step._replace(at=number, of=len(steps))
    return Step("done", at=len(steps), of=len(steps))


@final
class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How far a study is.

    Attributes:
        consented: people who agreed and did not withdraw.
        declined: people who did not agree.
        withdrawn: people who withdrew; nothing else is kept of them.
        finished: people who did all that there is to do.
        working: people who began and did not finish.
        orders: how many were assigned to each order of conditions.
        begun: how many began each condition.
    """

    consented: int
    declined: int
    withdrawn: int
    finished: int
    working: int
    orders: Mapping[str, int]
    begun: Mapping[str, int]


@final
class People:
    """The participants of a study, read from their log. One process writes it at a time.

    Args:
        study: the study, see ``resolved``.
        log: the log of the participants.
        sessions: the log of their sessions; their state is looked up there.
        now: the time in seconds since 1970.
    """

    def __init__(
        self,
        study: Study,
        log: Store,
        sessions: Store,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.study = study
        self._log = log
        self.sessions = sessions
        self._now = now
        self._people: dict[str, Person] = {}
        self._over: set[str] = set()
        self._assigning = anyio.Lock()

    async def read(self) -> None:
        """Reads all participants.

        Raises:
            InvalidInput: somebody was assigned to a condition that the plan does not have any more.
        """
        async for record in self._log.read_all():
            self._person(record.session).take(record)
        known = self.study.conditions()
        for person in self._people.values():
            for name in () if person.assigned is None else person.assigned.conditions:
                if name not in known:
                    raise InvalidInput(
                        f"{person.name} was assigned to condition {name!r}, which the plan does not have: "
                        f"leave the conditions of a study as they are{suggestion(name, known)}"
                    )
        async for one in self.sessions.sessions():
            if one.state != "open":
                self._over.add(one.session)

    async def complete(self) -> None:
        """Completes the withdrawals that a killed process left undone."""
        for person in tuple(self._people.values()):
            if person.withdrew and person.assigned is not None:
                await self._erase(person)

    def all(self) -> Sequence[Person]:
        """All participants, in the order of their first records."""
        return list(self._people.values())

    def person(self, name: str) -> Person:
        """A participant; one without any record if there is none yet."""
        return self._people.get(name) or Person(name=name)

    async def step(self, name: str) -> Step:
        """The next step of a participant; asks the log whether the session that they work in is over."""
        person = self.person(name)
        for begun in person.begun.values():
            if begun.session not in self._over:
                summary = await self.sessions.summary(begun.session)
                if summary.state != "open" and summary.position:
                    self._over.add(begun.session)
        found = next_step(self.study, person, self._over.__contains__)
        return Step("full") if found.kind == "consent" and self._is_full() else found

    async def consent(self, name: str, *, agreed: bool, text: str) -> None:
        """Records an answer to the consent text, and assigns people who agree.

        Raises:
            InvalidInput: the study has all its participants.
        """
        # One after the other, so that people who arrive at once are balanced, too.
        async with self._assigning:
            person = self.person(name)
            if person.assigned is not None or person.withdrew:
                return
            if agreed and self._is_full():
                raise InvalidInput("this study has all the participants that it needs")
            events: list[Event] = [ConsentGiven(study=self.study.name, agreed=agreed, text=text)]
            if agreed:
                before = [
                    one.assigned
                    for one in self._people.values()
                    if one.assigned is not None and not one.withdrew
                ]
                events.append(assign(self.study, name, before))
            elif person.agreed is False:
                return
            await self._append(name, events)

    async def begun(self, name: str, place: int, condition: str, session: str) -> None:
        """Records the session in which a participant is at a place."""
        if place not in self.person(name).begun:
            event = ConditionBegun(place=place, condition=condition, session=session)
            await self._append(name, [event])

    async def answer(
        self, name: str, questionnaire: str, place: int | None, answers: Mapping[str, JSON]
    ) -> None:
        """Records the answers to a questionnaire that is due; the first ones count.

        Raises:
            InvalidInput: it is not due, or an answer is not one of its items.
        """
        if (questionnaire, place) in self.person(name).answers:
            return
        step = await self.step(name)
        due = step.questionnaire
        if due is None or (due.name, step.place) != (questionnaire, place):
            raise InvalidInput(f"questionnaire {questionnaire!r} cannot be answered now")
        given = checked_answers(due.items, answers)
        await self._append(
            name, [AnswersGiven(questionnaire=questionnaire, place=place, answers=given)]
        )

    async def withdraw(self, name: str) -> None:
        """Records that a participant withdraws, and erases what is recorded of them."""
        person = self.person(name)
        if person.withdrew:
            return
        await self._append(name, [ParticipantWithdrew(study=self.study.name)])
        await self._erase(self.person(name))

    def counts(self) -> Counts:
        """How far the study is, as of the latest record."""
        there = [one for one in self._people.values() if not one.withdrew]
        agreed = [one for one in there if one.assigned is not None]
        done = [
            one
            for one in agreed
            if next_step(self.study, one, self._over.__contains__).kind == "done"
        ]
        orders: dict[str, int] = {}
        begun: dict[str, int] = {one.name: 0 for one in self.study.condition}
        for one in agreed:
            order = ", ".join(one.assigned.conditions if one.assigned else ())
            orders[order] = orders.get(order, 0) + 1
            for each in one.begun.values():
                begun[each.condition] = begun.get(each.condition, 0) + 1
        return Counts(
            consented=len(agreed),
            declined=sum(one.agreed is False for one in there),
            withdrawn=len(self._people) - len(there),
            finished=len(done),
            working=len(agreed) - len(done),
            orders=dict(sorted(orders.items())),
            begun=begun,
        )

    def _is_full(self) -> bool:
        most = self.study.participants
        count = sum(one.assigned is not None and not one.withdrew for one in self._people.values())
        return most > 0 and count >= most

    def _person(self, name: str) -> Person:
        return self._people.setdefault(name, Person(name=name))

    async def _append(self, name: str, events: Sequence[Event]) -> None:
        now = self._now()
        drafts = [redact_secrets(Draft(event, name, "human", now)) for event in events]
        records = await self._log.append(name, drafts, stream=REVIEW)
        for record in records:
            self._person(name).take(record)

    async def _erase(self, person: Person) -> None:
        sessions = [one.session for one in person.begun.values()]
        if sessions:
            await erase(self.sessions, sessions)
        await erase(self._log, [person.name])
        self._people[person.name] = Person(name=person.name, withdrew=True)


async def read_people(study: Study, log: Store, sessions: Store) -> People:
    """The participants of a study as of now."""
    people = People(study, log, sessions)
    await people.read()
    return people
