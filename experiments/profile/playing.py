"""Plays a suite with a model, an address or a shipped agent, and profiles it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import anyio.to_thread
import msgspec
import numpy as np

from ...agents.external.address import names_external
from ...agents.kinds import KINDS
from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.loading import names_code
from ...engine.log.open import open_log
from ...engine.models.gateway import Models
from ...engine.models.rehearsal import Rehearsal
from ...scoring.metrics.results import Estimate
from ..manifest import make_manifest
from ..parts import kind_of, names_variant
from ..plan import PROBLEMS, Plan, make_plans
from ..running import Run, RunProgress, run_plans
from ..sources import load
from ..spec import RULES
from .advice import ALONE, AUTOMATED, PRICE, Recommendation, recommend
from .diagnosis import Diagnosis, diagnose, estimated, over_problems
from .signs import Signs, read_signs
from .suite import Suite, secret_seed, shortened, suite_digest, suite_named

if TYPE_CHECKING:
    from ...scoring.columns.table import Columns

__all__ = (
    "Profile",
    "ProfilePlan",
    "Sensitivity",
    "columns_of_profile",
    "plan_profile",
    "profile",
    "read_profile",
    "session_ids",
)

_PATIENT: Final = "proactive"
"""The persona that others are compared with."""


class ProfilePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a profile.

    Attributes:
        subject: the model, address or agent.
        suite: as it is played, perhaps with some of its tasks only.
        digest: the digest of the whole suite as it is here.
        scaffolds: the agents that work with a human.
        secret: the seed of the secret half; None without one.
        plans: the sessions, by task and half; the baselines are among them.
        log: where they are recorded.
    """

    subject: str
    suite: Suite
    digest: str
    scaffolds: tuple[str, ...]
    secret: int | None
    plans: tuple[Plan, ...]
    log: str

    @property
    def sessions(self) -> int:
        """How many sessions these are."""
        return sum(len(plan.cells) for plan in self.plans)


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """How much utility changes with another persona, on the same problems.

    Attributes:
        scaffold: the agent.
        user: the persona.
        difference: mean final utility with it less that with a proactive user.
    """

    scaffold: str
    user: str
    difference: Estimate


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The profile of a collaborator.

    Attributes:
        subject: the model, address or agent.
        suite: name of the suite.
        digest: the digest of the suite as it was played.
        published: whether that is the digest that was published with the suite.
        tasks: the tasks that were played.
        planned: how many sessions the suite has.
        played: how many of them are in the log, and were scored.
        failed: how many of these an actor that failed ended: their utility counts, and nothing else of them.
        diagnoses: by scaffold.
        recommendation: what to do; None without sessions.
        sensitivity: to other people than patient ones.
        halves: final utility in the public and in the secret half, and the difference; empty without
            a secret half.
        resamples: of problems, for intervals and certainty.
        seed: the seed of the draws.
    """

    subject: str
    suite: str
    digest: str
    published: bool
    tasks: tuple[str, ...]
    planned: int
    played: int
    failed: int = 0
    diagnoses: Mapping[str, Diagnosis]
    recommendation: Recommendation | None
    sensitivity: tuple[Sensitivity, ...] = ()
    halves: Mapping[str, Estimate] = {}
    resamples: int = 1000
    seed: int = 0


def plan_profile(
    subject: str,
    *,
    tasks: Sequence[str] | None = None,
    suite: str | Suite = "suite-1",
    secret: str | None = None,
    budget: float | None = None,
    log: str | None = None,
    concurrency: int | None = None,
    user_model: str | None = None,
    judge_model: str | None = None,
    api_base: str | None = None,
    cache: str | None = None,
    agent_timeout: float | None = None,
    agent_env: Sequence[str] | None = None,
    text_actions: bool = False,
) -> ProfilePlan:
    """Plans a profile, and checks the plan.

    Args:
        subject: a model as LiteLLM names it, ``rules`` for the rules of the tasks, a kind of agent that
            ships with Duolog, ``file.py:Name``, or the address of an agent.
        tasks: some of the suite's; None for all.
        suite: the name of a suite, or your own suite.
        secret: generates a second half of the suite; None for the public one only.
        budget: US dollars for all calls together.
        log: path or URL; None for a file named after the subject.
        concurrency: how many sessions run at the same time.
        user_model: behind the users; None for rules.
        judge_model: behind the judges; None for none.
        api_base: address of a model server.
        cache: directory of the response cache.
        agent_timeout: seconds that an external agent has for a turn.
        agent_env: environment variables that the program of an external agent gets too.
        text_actions: the model cannot call tools.

    Raises:
        InvalidInput: something is not valid.
    """
    if not subject.strip():
        raise InvalidInput("name what to profile: a model, an address, or an agent such as looper")
    whole = suite_named(suite) if isinstance(suite, str) else suite
    chosen = shortened(whole, tasks)
    by_itself = names_external(subject) or names_code(subject) or names_variant(subject)
    by_itself = by_itself or subject in KINDS
    agents = (subject,) if by_itself else chosen.scaffolds
    model = RULES if by_itself else subject
    automated = () if names_external(subject) or names_code(subject) else (AUTOMATED,)
    seeds = [chosen.seed]
    hidden = None if secret is None else secret_seed(whole, secret)
    if hidden is not None:
        seeds.append(hidden)
    where = log or f"profile-{_file_name(subject)}.db"
    plans: list[Plan] = []
    for name in chosen.tasks:
        for seed in seeds:
            for players, on in (((*automated, *agents), model), ((ALONE,), RULES)):
                plans += make_plans(
                    name,
                    agents=tuple(dict.fromkeys(players)),
                    users=chosen.users,
                    models=(on,),
                    user_model=user_model,
                    judge_model=judge_model,
                    sessions=chosen.problems,
                    seed=seed,
                    repeats=chosen.repeats,
                    log=where,
                    concurrency=concurrency,
                    agent_timeout=agent_timeout,
                    agent_env=None if agent_env is None else tuple(agent_env),
                    api_base=api_base,
                    cache=cache,
                    text_actions=(on,) if text_actions and on != RULES else None,
                    limits={"rounds": chosen.rounds, "actions": chosen.actions},
                    budget={"cost": budget},
                )
    digest = suite_digest(whole)
    design = codec.digest([whole.name, digest, subject, user_model, judge_model, text_actions])
    plans = [msgspec.structs.replace(one, design=design, pool=True) for one in plans]
    return ProfilePlan(
        subject=subject,
        suite=chosen,
        digest=digest,
        scaffolds=tuple(kind_of(agent) for agent in agents if agent != AUTOMATED),
        secret=hidden,
        plans=tuple(plans),
        log=where,
    )


async def profile(
    plan: ProfilePlan,
    *,
    price: float = PRICE,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: RunProgress | None = None,
) -> tuple[Profile, Run]:
    """Plays what the log does not hold yet, and profiles what it then holds.

    Args:
        plan: what to play.
        price: utility that a minute of the human's time is worth.
        bootstrap: how often problems are resampled.
        seed: the seed of the draws.
        progress: shows how far it has come.

    Raises:
        InvalidInput: a session cannot be set up.
        MissingExtra: a model is named, and the extra ``llm`` is not installed.
    """
    manifest = make_manifest(
        [one.experiment for one in plan.plans],
        [opened for one in plan.plans for opened in one.sample(PROBLEMS)],
        design=plan.plans[0].design,
        suite={"name": plan.suite.name, "digest": plan.digest},
    )
    done = await run_plans(plan.plans, progress, manifest=manifest)
    return await read_profile(plan, price=price, bootstrap=bootstrap, seed=seed), done


async def read_profile(
    plan: ProfilePlan, *, price: float = PRICE, bootstrap: int = 1000, seed: int = 0
) -> Profile:
    """Profiles the sessions of a plan that the log holds; plays nothing.

    Raises:
        LogError: the log cannot be read.
    """
    mine = await anyio.to_thread.run_sync(session_ids, plan)
    async with open_log(plan.log, create=False) as log:
        signs = [one for one in await read_signs(log) if one.session in mine]
    diagnoses = {
        name: diagnose([one for one in signs if one.agent == name], resamples=bootstrap, seed=seed)
        for name in plan.scaffolds
    }
    return Profile(
        subject=plan.subject,
        suite=plan.suite.name,
        digest=plan.digest,
        published=plan.digest == plan.suite.digest,
        tasks=plan.suite.tasks,
        planned=plan.sessions,
        played=len(signs),
        failed=sum(one.failed for one in signs),
        diagnoses=diagnoses,
        recommendation=recommend(signs, diagnoses, price=price, resamples=bootstrap, seed=seed),
        sensitivity=tuple(_sensitivity(plan, signs, bootstrap, seed)),
        halves=_halves(plan, signs, bootstrap, seed),
        resamples=bootstrap,
        seed=seed,
    )


def session_ids(plan: ProfilePlan, agents: Sequence[str] | None = None) -> frozenset[str]:
    """The ids of the sessions of a plan.

    Args:
        plan: what is played.
        agents: the kinds of agents that they are with; None for all sessions.
    """
    found: set[str] = set()
    for one in plan.plans:
        models = Models(Rehearsal(price=lambda *_: None)) if one.experiment.named_models else None
        setting = one.setting(models)
        found.update(
            one.session(cell, setting).id
            for cell in one.cells
            if agents is None or cell.agent in agents
        )
    return frozenset(found)


def columns_of_profile(plan: ProfilePlan) -> Columns:
    """The columns of the sessions of a plan that the log holds to their end, for a report on them."""
    from ...scoring.trajectory.options import Options

    mine = session_ids(plan)
    columns = load([plan.log], Options())
    rows = [
        row
        for row, session in enumerate(columns.session)
        if session in mine and columns.state.of(row) != "open"
    ]
    return columns.take(np.array(rows, np.int64))


def _sensitivity(
    plan: ProfilePlan, signs: Sequence[Signs], resamples: int, seed: int
) -> list[Sensitivity]:
    found: list[Sensitivity] = []
    if _PATIENT not in plan.suite.users:
        return found
    for scaffold in plan.scaffolds:
        here = [one for one in signs if one.agent == scaffold]
        if not here:
            continue
        problems = [f"{one.task}/{one.problem}" for one in here]
        means = over_problems(
            problems,
            {
                user: [one.final if one.user == user else None for one in here]
                for user in plan.suite.users
            },
            resamples,
            seed,
        )
        found += [
            Sensitivity(
                scaffold=scaffold,
                user=user,
                difference=estimated(means[user] - means[_PATIENT], len(here)),
            )
            for user in plan.suite.users
            if user != _PATIENT
        ]
    return found


def _halves(
    plan: ProfilePlan, signs: Sequence[Signs], resamples: int, seed: int
) -> dict[str, Estimate]:
    """Final utility with the scaffolds, by half; their problems are drawn apart."""
    if plan.secret is None:
        return {}
    mine = [one for one in signs if one.agent in plan.scaffolds]
    means = {}
    for half, wanted in (("public", plan.suite.seed), ("secret", plan.secret)):
        here = [one for one in mine if one.seed == wanted]
        if not here:
            return {}
        means[half] = over_problems(
            [f"{one.task}/{one.problem}" for one in here],
            {"final": [one.final for one in here]},
            resamples,
            seed,
        )["final"]
    means["difference"] = means["public"] - means["secret"]
    return {name: estimated(column, len(mine)) for name, column in means.items()}


def _file_name(subject: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in subject).strip("-")
