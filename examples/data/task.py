"""Data analysis as a task: its parts put together; see ``kit.task``."""

from __future__ import annotations

from random import Random

from ...agents.rules_file import shipped_rules
from ..kit.briefs import load_brief
from ..kit.rule_agent import RuleAgent
from ..kit.rule_user import HumanAlone, RuleUser, changing
from ..kit.scorer import TaskScorer
from ..kit.task import Case, KitTask, TaskSpec, Witness
from .actions import World
from .database import Database
from .environment import DataEnvironment
from .facts import advice_on
from .language.messages import say_request
from .profile import profile_of, write_profile
from .report import say_advice, say_claim
from .report_dumper import REPORT_DUMPER, ReportDumper
from .rule_agent import HAND_OVER, LOOK, DataPlanner
from .rule_user import DataPerson
from .utility import DATA, data_utility, worth
from .world.instances import Instance, Wants, make_instance

__all__ = ("best_report", "data_scorer", "data_task")


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
        world=World(instance, Database(instance.survey.tables)),
    )


def best_report(instance: Instance) -> str:
    """The true findings on all that the analyst comes to want, and the recommendation that follows.

    To somebody who has understood all of it, which takes several looks, it is worth 1.
    """
    goal = instance.pivot or instance.interests[0]
    found = [say_claim(instance.truth[topic]) for topic in instance.interests]
    return "\n".join([*found, say_advice(advice_on(instance.truth[goal]))])


def _witness(name: str, seed: int) -> Witness:
    """What the best report is worth; no report shows it by itself, since it has to be understood."""
    instance = make_instance(seed, name)
    claims = {topic: instance.truth[topic] for topic in instance.interests}
    wants = Wants(instance.interests, instance.pivot or instance.interests[0])
    return Witness(worth(claims, advice_on(claims[wants.goal]), wants, instance.truth).value)


_SPEC: TaskSpec[World] = TaskSpec(
    name=DATA,
    description="analyse a survey together: a narrow question, findings that raise others",
    brief=load_brief(__package__),
    case=_case,
    environment=DataEnvironment,
    utility=lambda world: data_utility(world.instance),
    agent=lambda habits: RuleAgent(DataPlanner(habits), look=LOOK, hand_over=HAND_OVER),
    control=shipped_rules(__package__),
    others={
        REPORT_DUMPER: ("a bad example: a whole report at once, and no word on it", ReportDumper)
    },
    user=lambda: RuleUser(DataPerson()),
    alone=lambda: HumanAlone(DataPerson()),
    changing=lambda: changing(DataPerson()),
    witness=_witness,
)
