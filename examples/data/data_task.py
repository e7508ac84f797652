"""Data analysis as a task: its parts put together; see ``duolog.tasks.kit``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, final

import msgspec
from anyio import to_thread

from ...agents.rules_file import shipped_rules
from ...engine import codec
from ...engine.events import ActionResolved, ProfileChanged, SnapshotTaken
from ...engine.records import Record
from ...engine.rounds import Round, is_blank
from ...engine.scorers.protocol import Scorer
from ...engine.session.decisions import NOTHING, Act, Decision, Finish, Say, Submit
from ...engine.session.environment import Action, ActionSpec, Outcome
from ...engine.session.view import View
from ...engine.text import text_of
from ...scoring.display.cards import Part
from ...scoring.scorers.fold_utility import FoldUtility
from ...scoring.scorers.utility import Score, unreadable
from ...tasks.kit import BestOutput, Case, KitTask, TaskScorer, TaskSpec, load_brief
from ...tasks.rule_agent import RuleAgent
from ...tasks.rule_user import HumanAlone, RuleUser, changing
from ...tasks.views import nudged, owes_reply
from .actions import ACTIONS, World
from .analysis import SHEETS, query_for, sheet_of
from .attention import Reading
from .database import Database
from .facts import Advice, Claim, Topic, advice_on, agrees
from .instances import Instance, Wants, make_instance, opened_by
from .knowledge import Known, Memory
from .language.messages import say_request
from .parts import FORM
from .profile import profile_of, read_wants, write_profile
from .report import ReportReader, say_advice, say_claim
from .rule_agent import HAND_OVER, LOOK, DataPlanner
from .rule_user import DataPerson
from .truth import Answers

__all__ = (
    "REPORT_DUMPER",
    "DataEnvironment",
    "best_report",
    "data_scorer",
    "data_task",
    "data_utility",
    "worth",
)

DATA = "data"
"""Name of the task and of its scorer."""

_VERSION = "2"
_KNOWN: Final = 128
"""Results kept for an instance: its sessions make the same queries, and each query costs a change of threads."""
_UNDERSTOOD, _ADVISED, _MISLED = 0.8, 0.2, 0.5


def worth(
    believed: Mapping[Topic, Claim], advice: Advice | None, wants: Wants, truth: Answers
) -> Score:
    """The utility of an analyst's beliefs, given their wishes.

    Args:
        believed: the claim believed, by topic.
        advice: the recommendation that they go by.
        wants: their current wishes.
        truth: the true claims; a topic that the data do not decide neither helps nor misleads.
    """
    right = sum(1 for t in wants.topics if t in believed and agrees(believed[t], truth[t]))
    wrong = sum(1 for t, claim in believed.items() if t in truth and not agrees(claim, truth[t]))
    advised = advice is not None and advice == advice_on(truth[wants.goal])
    follows = (
        advice is None or advice.topic not in truth or advice == advice_on(truth[advice.topic])
    )
    understood = right / len(wants.topics)
    misled = min(1.0, (wrong + (not follows)) / len(wants.topics))
    value = _UNDERSTOOD * understood + _ADVISED * advised - _MISLED * misled
    return Score(
        min(1.0, max(0.0, value)),
        {"understood": understood, "advised": float(advised), "misled": misled},
    )


def data_utility(instance: Instance) -> Scorer:
    """The scorer of sessions on an instance; it scores every closed round."""
    return FoldUtility(DATA, _VERSION, lambda: _Fold(instance))


@final
class _Fold:
    """Follows the analyst's beliefs and wishes through the session."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._reading = Reading(instance.survey.names, instance.attention, instance.stamina)
        self._recorded: Wants | None = None
        self._report = ReportReader(instance.survey.names)
        self._readable = True

    def feed(self, record: Record) -> None:
        self._reading.feed(record)
        event = record.event
        if isinstance(event, ProfileChanged):
            self._recorded = read_wants(event.profile)
        elif isinstance(event, SnapshotTaken):
            lines = text_of(event.content).splitlines()
            self._readable = is_blank(event) or any(map(self._report.read, lines))

    def score(self, over: Round) -> Score:
        if not self._readable:
            return unreadable()
        now = self._reading.copy()
        now.catch_up()
        one = self._instance
        wants = self._recorded or opened_by(one.interests, one.opens, one.pivot, now.believed)
        return worth(now.believed, now.advice, wants, one.truth)


# --- data analysis as a task environment ----------------------------------------------------------


@final
class DataEnvironment:
    """The actions of one session, without side effects; the world keeps the results for all of
    its sessions.

    Args:
        world: the instance's.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """Schema, Query and Chart."""
        return ACTIONS.specs

    async def perform(self, action: Action) -> Outcome:
        """Selects; the message of an error says how to continue."""
        found = ACTIONS.find(action.name, action.role)
        known, asked = self._world.known, f"{action.name} {codec.digest(action.arguments)}"
        told = known.get(asked)
        if told is None:
            observation = await to_thread.run_sync(found.perform, self._world, action.arguments)
            told = msgspec.json.encode(observation)
            if len(known) >= _KNOWN:
                known.clear()
            known[asked] = told
        # Each session gets its own: what one does to it must not reach another.
        return Outcome(
            observation=msgspec.json.decode(told), seconds=found.seconds(action.arguments)
        )

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """Does nothing, since no action has an effect."""


# --- a bad example --------------------------------------------------------------------------------


REPORT_DUMPER: Final = "report-dumper"
"""Its name among the agents of the task."""

_DONE: Final = "The full report is up, with all queries and findings."
_AGAIN: Final = "All of that is in the report."


@final
class ReportDumper:
    """The policy of the agent; one for each session."""

    def __init__(self) -> None:
        self._memory = Memory()

    async def decide(self, view: View) -> Decision:
        """Lists the tables, queries all of them, and puts the report up; then refers to it."""
        known = self._memory.recall(view)
        if view.in_flight:
            return NOTHING
        if known.names is None:
            return Decision((Act("Schema"),))
        queries = [query_for(sheet, known.rulings) for sheet in SHEETS]
        missing = [sql for sql in queries if sql not in known.findings.rows]
        if missing:
            return Decision(tuple(Act("Query", {"sql": sql}) for sql in missing))
        if view.own_snapshot is None:
            return Decision((Submit("\n".join(_dump(known))), Say(_DONE)))
        if owes_reply(view):
            return Decision((Say(_AGAIN),))
        return Decision((Finish("the report is there"),)) if nudged(view) else NOTHING


def _dump(known: Known) -> Iterator[str]:
    """The queries, each with its result."""
    claims = known.claims()
    for sheet in SHEETS:
        yield f"Method: {query_for(sheet, known.rulings)}"
        yield from (
            say_claim(claim) for topic, claim in claims.items() if sheet_of(topic.kind) == sheet
        )


# --- data analysis as a task ----------------------------------------------------------------------


def data_task() -> KitTask[World]:
    """Analyse a survey together: a narrow question, findings, and the interests that they raise."""
    return KitTask(_SPEC)


def data_scorer() -> TaskScorer:
    """The scorer of recorded sessions of this task."""
    return TaskScorer(data_task())


def _case(name: str, seed: int) -> Case[World]:
    instance = make_instance(seed, name)
    first, subject = instance.interests[0], instance.survey.names.subject
    return Case(
        request=say_request(first, subject, Random(instance.seed)),
        private=write_profile(profile_of(instance)),
        world=World(instance, Database(instance.survey.tables), {}),
    )


def best_report(instance: Instance) -> str:
    """The true findings on all that the analyst comes to want, and the recommendation that follows.

    It is worth 1 to an analyst who has understood all of it, which takes several looks.
    """
    goal = instance.pivot or instance.interests[0]
    found = [say_claim(instance.truth[topic]) for topic in instance.interests]
    return "\n".join([*found, say_advice(advice_on(instance.truth[goal]))])


def _best_output(name: str, seed: int) -> BestOutput:
    """The best report's utility; it has no output, since a report must also be understood."""
    instance = make_instance(seed, name)
    claims = {topic: instance.truth[topic] for topic in instance.interests}
    wants = Wants(instance.interests, instance.pivot or instance.interests[0])
    return BestOutput(worth(claims, advice_on(claims[wants.goal]), wants, instance.truth).value)


_SPEC: TaskSpec[World] = TaskSpec(
    name=DATA,
    description="analyse a survey together: a narrow question, findings that raise others",
    brief=load_brief(__package__, form=FORM),
    part=Part(
        role="You are an analyst with a question about a survey. An agent analyses it for you.",
        goal="To understand the survey well enough to decide, and a report that says on what your decision rests.",
    ),
    case=_case,
    environment=DataEnvironment,
    utility=lambda world: data_utility(world.instance),
    agent=lambda habits: RuleAgent(
        DataPlanner(habits), look=LOOK, settled=("",), hand_over=HAND_OVER
    ),
    control=shipped_rules(__package__),
    others={
        REPORT_DUMPER: ("a bad example: a whole report at once, and no word on it", ReportDumper)
    },
    user=lambda: RuleUser(DataPerson()),
    alone=lambda: HumanAlone(DataPerson()),
    changing=lambda: changing(DataPerson()),
    best_output=_best_output,
)
