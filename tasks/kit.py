"""A task composed of its parts: instances, an environment, a utility, an agent, a person.

A `TaskSpec` lists the parts, and a `KitTask` makes sessions of them, with every kind of agent and
every persona, on rules or on models; with the baselines of the agent alone and of the human alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, final

import msgspec

from ..agents.habits import USUAL, Habits
from ..agents.kinds import KINDS
from ..agents.mind import AgentMind
from ..agents.players import Judged, agent_player
from ..engine import codec
from ..engine.errors import InvalidInput
from ..engine.events import JSON, ActionResolved, ActionTaken, Participant, SessionOpened
from ..engine.models.gateway import Models
from ..engine.models.prompting.conversation import ModelUse
from ..engine.models.prompting.prompts import load_prompts
from ..engine.problem import problem_key
from ..engine.scorers.protocol import Scorer, stream_of
from ..engine.session.actors import Player, Policy, playing_new
from ..engine.session.decisions import Decision, Finish
from ..engine.session.environment import Environment
from ..engine.session.runner import Session
from ..engine.session.time.timing import Timing
from ..engine.session.view import View
from ..engine.task import (
    Brief,
    Cell,
    OutputForm,
    Setting,
    kind_of_agent,
    opening,
    session_clock,
    session_id,
    session_seed,
)
from ..engine.text import count_words, text_of
from ..scoring.control_rules import ControlRules
from ..scoring.display.cards import CARD, Part
from ..scoring.scorers.registry import ScoringSetting
from ..users.personas import PERSONAS, Persona, find_persona
from ..users.players import user_player
from ..users.simulated import Changing, UserMind

__all__ = (
    "HUMAN_ALONE",
    "READ",
    "BestOutput",
    "Case",
    "KitTask",
    "LimitedAlone",
    "MeasuringTask",
    "TaskScorer",
    "TaskSpec",
    "generated",
    "index_of",
    "load_brief",
    "numbered",
)


W = TypeVar("W")

HUMAN_ALONE = "human-alone"
"""The kind of agent that is none: the human does all of it by themselves."""

_AUTO = "auto"
_DIGITS = 9  # of the largest number of an instance
_CASES = 64  # instances that are kept, once made


class Case(msgspec.Struct, Generic[W], frozen=True, kw_only=True):
    """One instance as it is played.

    Attributes:
        request: the human's first message.
        private: the hidden profile, which only the human sees.
        truth: visible only to scorers.
        world: the data behind this instance's actions and utility.
    """

    request: str
    private: JSON
    truth: JSON = None
    world: W


class BestOutput(msgspec.Struct, frozen=True):
    """The best utility that an instance allows, with an output as evidence.

    Attributes:
        value: the utility of the best reachable output; above 0, and at most 1.
        content: that output; None if no single output shows it.
    """

    value: float
    content: JSON = None


def numbered(count: int, seed: int) -> list[str]:
    """Names of instances: ``0`` and so on, without limit."""
    return [str(index) for index in range(count)]


def index_of(name: str) -> int:
    """The number of an instance, from its name.

    Raises:
        InvalidInput: it is not a number from 0.
    """
    if not name.isdecimal() or len(name) > _DIGITS:
        raise InvalidInput(f"unknown instance {name!r}; instances are numbered from 0")
    return int(name)


def generated(seed: int) -> str:
    """The identifier of generated data: ``generated/SEED``."""
    return f"generated/{seed}"


class TaskSpec(msgspec.Struct, Generic[W], frozen=True, kw_only=True):
    """The parts of a task.

    Attributes:
        name: as the command line has it; also that of the utility's scorer.
        description: one line on what it is.
        brief: describes the task to actors on models.
        case: makes an instance from its name and the seed, and refuses a name that there is not.
        environment: makes the actions of a session.
        utility: makes the scorer of a session.
        agent: makes the rules of an agent with these habits, e.g. a ``RuleAgent``.
        habits: that agents have, unless they are told otherwise.
        control: the rules of control of the adaptive agent, as ``duolog tune`` fits them; None for the
            defaults.
        others: the task's own agents that work with a human, by name: a line that describes each, and the
            function that makes its policy.
        user: makes the rules of a simulated user, e.g. a ``RuleUser``.
        changing: makes the function that derives changes of a user's goals, on rules and on models; e.g.
            ``changing`` of a person. None if goals are fixed.
        alone: makes the policy of a human without an agent, e.g. a ``HumanAlone``.
        best_output: the best reachable output of an instance, from its name and the seed.
        names: names of the first instances, from their number and the seed.
        source: identifies the data of a seed.
        version: the version of the problems: raise it if the same instance poses another problem
            than before.
        audit: makes the scorers that audit simulated users on models.
        part: the part of the human, for a real person who plays it; None for none.
        rules_only: why no model can be its agent; empty if one can.
        judged: has a model read what an agent on a model says, and adds what follows from it to the agent's
            decisions; None: what it says is only said.
        asking: makes the scorer of a session in which a model reads outputs; None: ``utility`` does.
    """

    name: str
    description: str
    brief: Brief
    case: Callable[[str, int], Case[W]]
    environment: Callable[[W], Environment]
    utility: Callable[[W], Scorer]
    agent: Callable[[Habits], AgentMind]
    user: Callable[[], UserMind]
    alone: Callable[[], Policy]
    changing: Callable[[], Changing] | None = None
    best_output: Callable[[str, int], BestOutput]
    habits: Habits = USUAL
    control: ControlRules | None = None
    others: Mapping[str, tuple[str, Callable[[], Policy]]] = {}
    names: Callable[[int, int], list[str]] = numbered
    source: Callable[[int], str] = generated
    version: str = "1"
    audit: Callable[[], Sequence[Scorer]] | None = None
    asking: Callable[[W, Models, ModelUse], Scorer] | None = None
    part: Part | None = None
    rules_only: str = ""
    judged: Judged | None = None


@final
class KitTask(Generic[W]):
    """A task made of its parts.

    Args:
        spec: the parts.
    """

    def __init__(self, spec: TaskSpec[W]) -> None:
        self._spec = spec
        self._case = lru_cache(maxsize=_CASES)(spec.case)
        self.name = spec.name
        self.description = spec.description
        self.brief = spec.brief
        self.agents: Mapping[str, str] = {
            **KINDS,
            **{name: line for name, (line, _) in spec.others.items()},
            HUMAN_ALONE: "no agent at all: the human does it by themselves, the other baseline",
        }
        self.users: Mapping[str, str] = {p.name: p.description for p in PERSONAS.values()}
        self.default_agents = (_AUTO, "one-stage", "two-stage")
        self.default_users = ("proactive",)

    @property
    def spec(self) -> TaskSpec[W]:
        """The parts that it is composed of."""
        return self._spec

    def automated(self, agent: str) -> bool:
        """Whether this is the agent that works alone."""
        return kind_of_agent(agent) == _AUTO

    def instances(self, count: int, seed: int) -> list[str]:
        """Names of the first ``count`` instances under a seed."""
        return self._spec.names(count, seed)

    def best_output(self, instance: str, seed: int) -> BestOutput:
        """The best utility that an instance allows, and an output that reaches it.

        Raises:
            InvalidInput: there is no such instance.
        """
        return self._spec.best_output(instance, seed)

    def session(self, cell: Cell, setting: Setting) -> Session:
        """The session of a cell.

        Raises:
            InvalidInput: there is no such agent, user or instance.
        """
        spec = self._spec
        case = self._case(cell.instance, cell.seed)
        source = spec.source(cell.seed)
        recorded = {**setting.recorded(cell), **setting.config}
        settings = [codec.digest(recorded)] if recorded else []
        ident = session_id(spec.name, cell, source, *settings)
        players = self._players(ident, cell, setting)
        alone = all(one.participant.role != "human" for one in players)
        by_human = all(one.participant.role == "human" for one in players)
        private: dict[str, JSON] = {spec.name: case.truth}
        for one in players:
            if one.participant.role == "human":
                private[one.participant.name] = self._private(case, setting)
        scorers = self._scorers(cell, setting, case.world, alone=alone)
        opened = opening(
            spec.name,
            cell,
            setting,
            [player.participant for player in players],
            request=case.request,
            private=private,
            utility=scorers.scored_by,
            judge=scorers.judged_by,
            seed=session_seed(cell, source),
            problem=problem_key(
                spec.name,
                request=case.request,
                profile=case.private,
                truth=case.truth,
                world=[source, cell.instance],
                version=spec.version,
            ),
            config={"source": source},
        )
        if by_human:  # no agent receives the request
            opened = msgspec.structs.replace(opened, request=case.request)
        return Session(
            id=ident,
            opened=opened,
            players=players,
            environment=spec.environment(case.world),
            request=None if alone or by_human else case.request,
            clock=session_clock(setting),
            timing=setting.timing,
            limits=setting.limits,
            scorers=scorers.all,
            stop=setting.stop(ident) if setting.stop else None,
        )

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        """The scorers that can measure a recorded session again without a model.

        Raises:
            InvalidInput: the session does not record how it was set up, or was run on other data.
        """
        try:
            cell = msgspec.convert(opened.config.get("cell"), Cell)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the session does not say how it was set up: {error}") from error
        if cell.judge_model is not None and self._spec.asking is not None:
            return ()
        source = self._spec.source(cell.seed)
        if source != opened.config.get("source"):
            raise InvalidInput(f"the session was run on other data than {source}")
        return (self._spec.utility(self._case(cell.instance, cell.seed).world),)

    def _players(self, ident: str, cell: Cell, setting: Setting) -> tuple[Player, ...]:
        if cell.agent == HUMAN_ALONE and cell.agent not in setting.agents:
            return (self._human_alone(ident, cell, setting),)
        agent = self._agent(ident, cell, setting)
        return (agent,) if self.automated(cell.agent) else (self._user(ident, cell, setting), agent)

    def _private(self, case: Case[W], setting: Setting) -> JSON:
        """The part that only the human sees; a real person also gets their role card."""
        part = self._spec.part
        if setting.person is None or part is None or not isinstance(case.private, Mapping):
            return case.private
        return {**case.private, CARD: msgspec.to_builtins(part)}

    def _agent(self, ident: str, cell: Cell, setting: Setting) -> Player:
        spec = self._spec
        other = spec.others.get(cell.agent) if cell.agent not in setting.agents else None
        if other is not None:
            if cell.model is not None:
                raise InvalidInput(f"{cell.agent} works by rules only; leave --models out")
            participant = Participant(name="agent", role="agent", policy=cell.agent)
            return Player(participant, playing_new(other[1]))
        if cell.model is not None and spec.rules_only:
            raise InvalidInput(
                f"{spec.name} is rules only: {spec.rules_only}; leave --models out, or choose another task"
            )
        return agent_player(
            ident,
            cell,
            setting,
            brief=spec.brief,
            rules=spec.agent,
            control=spec.control,
            habits=spec.habits,
            judged=spec.judged,
        )

    def _user(self, ident: str, cell: Cell, setting: Setting) -> Player:
        spec = self._spec
        return user_player(
            ident, cell, setting, brief=spec.brief, rules=spec.user, changing=spec.changing
        )

    def _human_alone(self, ident: str, cell: Cell, setting: Setting) -> Player:
        """A user who works without an agent: a human, or one simulated by a model or by rules."""
        own = setting.person is not None or cell.user in setting.users
        if own or cell.user_model is not None:
            return self._user(ident, cell, setting)
        persona = find_persona(cell.user)
        participant = Participant(name="user", role="human", policy="rules", persona=persona.name)
        alone = self._spec.alone
        return Player(participant, playing_new(lambda: LimitedAlone(alone(), persona)))

    def _scorers(self, cell: Cell, setting: Setting, world: W, *, alone: bool) -> _SessionScorers:
        """The scorers: utility always; a progress judge and an audit of the user if there are models."""
        spec = self._spec
        audit = () if cell.user_model is None or alone else self._audit()
        if cell.judge_model is None:
            judged_by = "none" if alone else "human"
            return _SessionScorers((spec.utility(world), *audit), spec.name, judged_by)
        models, use = setting.reach(cell.judge_model), setting.use(cell.judge_model)
        utility = spec.utility(world) if spec.asking is None else spec.asking(world, models, use)
        if alone:
            return _SessionScorers((utility,), stream_of(utility.ref), "none")
        from ..scoring.scorers.model_judge import model_judge  # rules need nothing of it

        judge = model_judge(models, use)
        scored_by, judged_by = stream_of(utility.ref), stream_of(judge.ref)
        return _SessionScorers((utility, judge, *audit), scored_by, judged_by)

    def _audit(self) -> Sequence[Scorer]:
        if self._spec.audit is not None:
            return self._spec.audit()
        from ..users.audit import SimulatorAudit  # rules need nothing of it

        return (SimulatorAudit(),)


class _SessionScorers(NamedTuple):
    """The scorers of a session, and whose utility and ratings count."""

    all: tuple[Scorer, ...]
    scored_by: str
    judged_by: str


# --- how a task is described to actors on models, from text files in its package ------------------


def load_brief(
    package: str,
    *,
    form: OutputForm | None = None,
) -> Brief:
    """The brief of a task: ``prompts/task.md`` describes it, ``prompts/output.md`` its output.

    Args:
        package: the package of the task: ``__package__``.
        form: how models give the output, if not as its content.

    Raises:
        InvalidInput: one of the files is not there.
    """
    prompts = load_prompts(package)
    return Brief(
        description=prompts.fill("task"),
        output=prompts.fill("output"),
        form=form,
    )


# --- the scorer of a task's recorded sessions, as the entry-point group ``duolog.scorers`` offers it ---


class MeasuringTask(Protocol):
    """A task that can measure its recorded sessions again."""

    @property
    def name(self) -> str:
        """Of the task."""
        ...

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        """Its scorers for a session; none if scoring would need a model."""
        ...


@final
class TaskScorer:
    """Scores sessions of a task that Duolog ran; keeps their worlds.

    Args:
        task: the task.
        otherwise: advice for users who want to score something else, for the error message.
    """

    asks_model = False

    def __init__(self, task: MeasuringTask, otherwise: str = "") -> None:
        self._task = task
        self._otherwise = f"; {otherwise}" if otherwise else ""

    def make(self, setting: ScoringSetting) -> Scorer:
        """The scorer of a session, on the data that it was run on.

        Raises:
            InvalidInput: the session is of another task, was run on data that are not available, or
                a model read its outputs.
        """
        opened = setting.opened
        if opened.task != self._task.name:
            raise InvalidInput(
                f"a session of the task {opened.task!r} does not hold what outputs of the task "
                f"{self._task.name!r} are judged by{self._otherwise}"
            )
        found = self._task.scorers(opened)
        if not found:
            raise InvalidInput("a model read the outputs of this session, and would have to again")
        return found[0]


READ: Final = 0.28
"""Share of the words of a result that is read: at most 28 % of those of an average page are (Nielsen
2008, on the data of Weinreich et al. 2008)."""

_OWN: Final = "SnapshotTaken"


@final
class LimitedAlone:
    """The policy of a person alone, within limits: they read what they find, tire, and settle.

    A first output is finished in any case. After that they stop once their ``stamina`` is used up;
    and each time they look at it again, one in whom ``contentment`` is c is satisfied with the chance 1 - c.

    Args:
        policy: their decisions without limits.
        persona: their persona.
    """

    def __init__(self, policy: Policy, persona: Persona) -> None:
        self._policy = policy
        self._persona = persona

    async def decide(self, view: View) -> Decision:
        """The next step, or the end."""
        pending = view.pending
        if pending is None and not view.in_flight and view.own_snapshot is not None:
            if view.now >= 60.0 * self._persona.stamina:
                return Decision((Finish("tired of it"),))
            content = view.random.random() >= self._persona.contentment
            if content and _looks_again(view):
                return Decision((Finish("good enough"),))
        decision = await self._policy.decide(view)
        reading = _found(view) * READ * 60.0
        if decision == pending or not decision.verbs or not reading:
            return decision
        timing = _timing(view)
        seconds = timing.working(view.role, view, decision) + reading / timing.read_wpm
        return msgspec.structs.replace(decision, seconds=seconds)


def _looks_again(view: View) -> bool:
    """Whether the last thing that they did was to put up a version of the output."""
    own = [record.kind for record in view.records if record.actor == view.me]
    return bool(own) and own[-1] == _OWN


def _found(view: View) -> int:
    """Number of words in the results of their last actions."""
    words = 0
    for record in reversed(view.records):
        event = record.event
        if isinstance(event, ActionResolved) and event.observation is not None:
            words += count_words(text_of(event.observation))
        elif (
            record.actor == view.me
            and isinstance(event, ActionTaken)
            and words
            or record.actor == view.me
            and record.kind == _OWN
        ):
            break
    return words


def _timing(view: View) -> Timing:
    """The pace of the session."""
    held = None if view.opened is None else view.opened.config.get("timing")
    try:
        return Timing() if held is None else msgspec.convert(held, Timing)
    except msgspec.ValidationError:
        return Timing()
