"""The common case of a task: two who write a text together, of which a function says what it is worth."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, cast, final

import msgspec

from ..agents.kinds import KINDS
from ..agents.players import agent_player
from ..engine import codec
from ..engine.errors import InvalidInput
from ..engine.events import JSON, Participant, SessionOpened, SnapshotTaken
from ..engine.files import output_text
from ..engine.problem import problem_key
from ..engine.scorers.protocol import Scorer, stream_of
from ..engine.session.actors import Part, Player, actor_of
from ..engine.session.environment import Environment, NoEnvironment
from ..engine.session.runner import Session
from ..engine.task import Brief, Cell, Setting, opening, session_clock, session_id, session_seed
from ..engine.text import suggestion
from ..scoring.scorers.utility import Missing, Score, SnapshotUtility, as_score
from ..users.personas import PERSONAS
from ..users.players import user_player

__all__ = ("Instance", "SimpleTask", "Utility", "Worth")

_TAKEN = ("agent", "user", "engine", "environment")
_AUTO = "auto"


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One instance of a task.

    Attributes:
        name: as the command line has it.
        request: the user's first message; at first, the agent knows nothing else.
        private: known only to the user, e.g. a list of wishes; it is in ``view.private``.
        data: known only to the utility, e.g. the right answer.
    """

    name: str
    request: str
    private: JSON = None
    data: JSON = None


Worth: TypeAlias = float | Score | Missing
"""The utility of an output: a number in [0, 1], a ``Score`` with named parts, or ``Missing``."""

Utility: TypeAlias = (
    Callable[[str], Worth | Awaitable[Worth]] | Callable[[str, Instance], Worth | Awaitable[Worth]]
)
"""Says what an output is worth, from its text, and from the instance if it takes two arguments."""


@final
class SimpleTask:
    """A task made of a utility, instances, and agents and users that run on your rules or on prompts.

    For example::

        from duolog.engine.session.decisions import Decision, Finish, Rate, Submit
        from duolog.engine.task import Cell, Setting

        class Poet:
            "Writes what it is asked for."

            async def decide(self, view: duolog.View) -> Decision:
                if view.snapshot_text:
                    return Decision()  # waits for news
                return Decision((Submit("Append, and append"),))

        class Reader:
            "Is content with any poem."

            async def decide(self, view: duolog.View) -> Decision:
                if not view.snapshot_text:
                    return Decision()
                return Decision((Rate(5), Finish("lovely")))

        def brevity(output: str) -> float:
            return 1 / len(output.split())

        task = duolog.SimpleTask(
            "haiku",
            "write a haiku together",
            instances=[duolog.Instance(name="logs", request="A haiku about logs, please.")],
            utility=brevity,
            agents={"poet": Poet},
            users={"reader": Reader},
        )
        cell = Cell(agent="poet", user="reader", instance="logs", seed=1)
        result = await duolog.run_session(log, task.session(cell, Setting()))
        print(result.utility)

    Args:
        name: as a log has it; also that of the scorer.
        description: one line on what it is about. Models read it.
        instances: at least one.
        utility: returns the worth of an output. If it raises, the error is recorded and the score is
            missing.
        agents: your rules, by kind: the class of a policy, or an async function of a context. The
            docstring's first line describes it.
        users: likewise. A user rates progress with ``Rate``.
        output: describes the output and its form to models. If it is given, Duolog's agents
            (``duolog.agents.kinds.KINDS``) and personas can also take part, on any model. None if the
            participants share no output; such sessions have no first update.
        alone: the agents that work without a human, as the automated baseline.
        environment: makes the actions available on an instance; None if there are none.
        version: the version of the utility; raise it when the function changes.

    Attributes:
        brief: describes the task to actors on models and to external agents.

    Raises:
        InvalidInput: something is missing, or named twice.
    """

    def __init__(
        self,
        name: str,
        description: str,
        *,
        instances: Sequence[Instance],
        utility: Utility,
        agents: Mapping[str, Part] | None = None,
        users: Mapping[str, Part] | None = None,
        output: str | None = "",
        alone: Sequence[str] = (),
        environment: Callable[[Instance], Environment] | None = None,
        version: str = "1",
    ) -> None:
        if not name or name in _TAKEN:
            raise InvalidInput(f"a task needs a name, other than {', '.join(_TAKEN)}: not {name!r}")
        self.name = name
        self.description = description
        self._version = version
        self._instances = {one.name: one for one in instances}
        if not instances or len(self._instances) < len(instances):
            raise InvalidInput(f"task {name!r} needs instances with unique names")
        self._utility = SnapshotUtility(name, version, _scored(name, utility))
        self.brief = Brief(description=description, output=output or "")
        self._config: Mapping[str, JSON] = {"output": None} if output is None else {}
        self._agents = {kind: actor_of(part, kind) for kind, part in (agents or {}).items()}
        self._users = {kind: actor_of(part, kind) for kind, part in (users or {}).items()}
        self._brief = self.brief if output else None
        for role, own in (("agents", self._agents), ("users", self._users)):
            if not own and not output:
                raise InvalidInput(
                    f"task {name!r} has no {role}; pass rules as {role}=, or output= for models"
                )
        if strange := [kind for kind in alone if kind not in self._agents]:
            raise InvalidInput(f"task {name!r} lacks an agent {strange[0]!r} that can work alone")
        self._alone = frozenset([*alone, *(() if _AUTO in self._agents else (_AUTO,))])
        self._environment = environment
        shipped = KINDS if output else {}
        personas = PERSONAS.values() if output else ()
        self.agents: Mapping[str, str] = {**shipped, **_described(agents)}
        self.users: Mapping[str, str] = {
            **{persona.name: persona.description for persona in personas},
            **_described(users),
        }
        self.default_agents = tuple(self._agents) or ("auto", "one-stage", "two-stage")
        self.default_users = tuple(self._users) or ("proactive",)

    def automated(self, agent: str) -> bool:
        """Whether an agent works without a human."""
        return agent in self._alone

    def instances(self, count: int, seed: int) -> list[str]:
        """Names of the first ``count`` instances, or of all of them if there are fewer."""
        return list(self._instances)[:count]

    def session(self, cell: Cell, setting: Setting) -> Session:
        """The session of a cell.

        Raises:
            InvalidInput: there is no such agent, user or instance; or a model is named for rules.
        """
        instance = self._instances.get(cell.instance)
        if instance is None:
            raise InvalidInput(
                f"unknown instance {cell.instance!r}{suggestion(cell.instance, self._instances)}"
            )
        recorded = {**setting.recorded(cell), **setting.config}
        posed: dict[str, JSON] = msgspec.to_builtins(instance)
        ident = session_id(self.name, cell, codec.digest([recorded, posed]))
        alone = self.automated(cell.agent)
        players = [self._agent(ident, cell, setting)]
        private: dict[str, JSON] = {self.name: posed}
        if not alone:
            human = self._user(ident, cell, setting)
            players = [human, *players]
            private[human.participant.name] = instance.private
        scorers, judge = self._scorers(cell, setting, alone=alone)
        return Session(
            id=ident,
            opened=opening(
                self.name,
                cell,
                setting,
                [player.participant for player in players],
                request=instance.request,
                private=private,
                utility=self.name,
                judge=judge,
                seed=session_seed(cell, self.name),
                problem=problem_key(
                    self.name,
                    request=instance.request,
                    profile=instance.private,
                    truth={name: part for name, part in posed.items() if name != "name"},
                    version=self._version,
                ),
                config=self._config,
            ),
            players=tuple(players),
            environment=NoEnvironment()
            if self._environment is None
            else self._environment(instance),
            request=None if alone else instance.request,
            clock=session_clock(setting),
            timing=setting.timing,
            limits=setting.limits,
            scorers=scorers,
            stop=setting.stop(ident) if setting.stop else None,
        )

    def scorers(self, opened: SessionOpened) -> Sequence[Scorer]:
        """The scorers that can measure a recorded session again without a model."""
        return (self._utility,)

    def _agent(self, session: str, cell: Cell, setting: Setting) -> Player:
        actor = self._agents.get(cell.agent)
        if actor is not None and cell.agent not in setting.agents:
            _check_rules(cell.agent, cell.model, "--models")
            return Player(Participant(name="agent", role="agent", policy=cell.agent), actor)
        if self._brief is None and cell.agent not in setting.agents:
            raise InvalidInput(f"unknown agent {cell.agent!r}{suggestion(cell.agent, self.agents)}")
        return agent_player(session, cell, setting, brief=self._brief or _NO_BRIEF)

    def _user(self, session: str, cell: Cell, setting: Setting) -> Player:
        actor = self._users.get(cell.user)
        own = setting.person is not None or cell.user in setting.users
        if actor is not None and not own:
            _check_rules(cell.user, cell.user_model, "--user-model")
            return Player(
                Participant(name="user", role="human", policy="rules", persona=cell.user), actor
            )
        if self._brief is None and not own:
            raise InvalidInput(f"unknown user {cell.user!r}{suggestion(cell.user, self.users)}")
        return user_player(session, cell, setting, brief=self._brief or _NO_BRIEF)

    def _scorers(
        self, cell: Cell, setting: Setting, *, alone: bool
    ) -> tuple[tuple[Scorer, ...], str]:
        """The scorers, and whose ratings count."""
        scorers: list[Scorer] = [self._utility]
        judge = "human"
        if cell.user_model is not None and not alone:
            from ..users.audit import SimulatorAudit  # rules need nothing of it

            scorers.append(SimulatorAudit())
        if cell.judge_model is not None and not alone:
            from ..scoring.scorers.model_judge import model_judge

            rater = model_judge(setting.reach(cell.judge_model), setting.use(cell.judge_model))
            scorers.append(rater)
            judge = stream_of(rater.ref)
        return tuple(scorers), judge


_NO_BRIEF = Brief(description="", output="")


def _check_rules(kind: str, model: str | None, option: str) -> None:
    if model is not None:
        raise InvalidInput(f"{kind!r} works by rules only; leave {option} out")


def _described(parts: Mapping[str, Part] | None) -> dict[str, str]:
    texts = {kind: inspect.getdoc(part) or "" for kind, part in (parts or {}).items()}
    return {kind: text.partition("\n")[0].rstrip(".") or "rules" for kind, text in texts.items()}


def _scored(
    name: str, utility: Utility
) -> Callable[[SnapshotTaken, SessionOpened], Awaitable[Score | Missing]]:
    """The utility as a function of a snapshot and of the session's opening, which names the instance.

    Raises:
        InvalidInput: it is not a function of one or two arguments.
    """
    if not 1 <= _arguments(utility) <= 2:
        raise InvalidInput(
            f"the utility of task {name!r} is not a function (output) or (output, instance)"
        )
    takes_instance = _arguments(utility) > 1

    async def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
        output = output_text(snapshot)
        try:
            instance = msgspec.convert(opened.private.get(name), Instance)
        except msgspec.ValidationError:
            return Missing(f"the session is of no instance of the task {name!r}")
        if takes_instance:
            found = cast("Callable[[str, Instance], object]", utility)(output, instance)
        else:
            found = cast("Callable[[str], object]", utility)(output)
        worth = await found if inspect.isawaitable(found) else found
        return as_score(worth, f"the utility of task {name!r}")

    return score


def _arguments(function: object) -> int:
    """The number of required arguments of a function; 0 if it is not a function."""
    if not callable(function):
        return 0
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return sum(one.kind in kinds and one.default is one.empty for one in parameters)
