"""A small task for external agents, and the records of its sessions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from duolog import Decision, Finish, Instance, Rate, Say, SimpleTask, View
from duolog.agents.external.seat import external_agent
from duolog.engine.events import Forgotten, ModelCalled
from duolog.engine.loading import LoadedFrom
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record
from duolog.engine.session.decisions import Approve
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session, SessionResult, run_session
from duolog.engine.task import Cell, OwnPart, Setting

__all__ = ("LONG", "SECRET", "TASK", "calls", "program", "record", "session")

SECRET = "raisins-with-cinnamon"
"""What only the user knows until it is said."""


class Eater:
    """Allows what it is asked, answers a question, and is content with any toast."""

    async def decide(self, view: View) -> Decision:
        if view.open_approvals:
            return Decision((Approve(view.open_approvals[0].version, True, "go on"),))
        if view.snapshot is not None:
            return Decision((Rate(5), Finish("lovely")))
        if view.messages and view.messages[-1].role == "agent":
            return Decision((Say("Butter, please."),))
        return Decision()


def _worth(output: str) -> float:
    return 1.0 if "butter" in output else 0.5


TASK = SimpleTask(
    "toast",
    "make toast together",
    instances=[Instance(name="one", request="Toast, please.", private=SECRET)],
    utility=_worth,
    agents={"none": Eater},
    users={"eater": Eater},
)


def program(folder: Path, text: str) -> str:
    """The command of a script with this text."""
    path = folder / "agent.py"
    path.write_text(text, encoding="utf-8")
    return f"{sys.executable} -E -S {path}"


LONG = 600.0
"""Seconds that any machine answers in."""


def session(
    address: str,
    *,
    timeout: float = LONG,
    until: Callable[[], object] = lambda: False,
    seed: int = 1,
    passed: Sequence[str] = (),
) -> Session:
    """A session of the toast task with an external agent.

    Args:
        address: of the agent.
        timeout: seconds that it has to answer.
        until: once this holds, it has a long time: another try is not to be late too.
        seed: of the session.
        passed: names of variables that it may see.
    """
    agent = external_agent(address, timeout=timeout, passed=passed)
    terms = agent._models.terms
    agent._models.terms = lambda model: (  # type: ignore[method-assign]
        msgspec.structs.replace(terms(model), timeout=LONG) if until() else terms(model)
    )
    part = OwnPart(agent.actor(TASK.brief), LoadedFrom(address, ""))
    cell = Cell(agent=agent.address.name, user="eater", instance="one", seed=seed)
    return TASK.session(
        cell, Setting(agents={agent.address.name: part}, limits=Limits(actions=20, rounds=5))
    )


async def record(made: Session, held: Sequence[Record] = ()) -> tuple[SessionResult, list[Record]]:
    """Runs a session in a log that holds this of it already; returns its result and records."""
    async with open_log("memory://") as log:
        if held:
            await log.append(
                made.id,
                [
                    Draft(one.event, one.actor, one.role, one.time, None, one.cause, one.seen)
                    for one in held
                    if not isinstance(one.event, Forgotten)
                ],
            )
        result = await run_session(log, made)
        return result, [one async for one in log.read_all(session=made.id)]


def calls(records: list[Record]) -> list[ModelCalled]:
    """The agent's requests and answers."""
    return [one.event for one in records if isinstance(one.event, ModelCalled)]
