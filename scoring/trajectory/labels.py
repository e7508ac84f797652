"""Reads an opening: the session's labels, its participants, and whether it poses an output."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from ...engine import codec
from ...engine.events import Participant, SessionOpened

__all__ = ("STAMPS", "has_agent", "is_baseline", "labels_of", "poses_output", "simulator_of")

STAMPS: Final = ("manifest", "simulator")
"""Labels that are digests: of the design of an experiment, and of the simulated user. They tell nothing
about who played, so that no list shows them and no group goes by them of itself."""

_SHOWN: Final = 12  # digits of a digest in a label

_TASKS: Final = frozenset({"cogym"})
"""Import formats whose sessions are of tasks that pose an output, as all sessions of our own do."""


def labels_of(opened: SessionOpened) -> Mapping[str, str]:
    """Labels of a session: ``task``, ``agent``, ``model``, ``user``, and its own ones before them.

    The agent is the policy of the first agent (its name if it has none), the user the persona,
    or policy, of the first human (``person`` for a real one). ``config["group"]`` adds labels and
    replaces these. A session with a simulated user has its stamp as ``simulator``, always; see
    ``simulator_of``.
    """
    labels = {"task": opened.task}
    agent = _first(opened, "agent")
    if agent is not None:
        labels["agent"] = agent.policy or agent.name
        if agent.model is not None:
            labels["model"] = agent.model
    human = _first(opened, "human")
    if human is not None:
        labels["user"] = human.persona or human.policy or "person"
    group = opened.config.get("group")
    if isinstance(group, Mapping):
        labels |= {name: str(value) for name, value in group.items() if value is not None}
    if stamp := simulator_of(opened):
        labels["simulator"] = stamp[:_SHOWN]
    return labels


def simulator_of(opened: SessionOpened) -> str:
    """The stamp of the simulated user: a digest of its persona, its prompts, its model with how that is asked, and
    the engine, as far as the opening tells them. Users of one stamp decide alike.

    Returns:
        Empty for a person, for nobody, and if nothing tells how the human is simulated.
    """
    human = _first(opened, "human")
    if human is None:
        return ""
    loaded = opened.config.get("loaded_from")
    origin = loaded.get("user") if isinstance(loaded, Mapping) else None
    rules = human.policy in ("rules", "model") or origin is not None
    if human.persona is None and human.model is None and not rules:
        return ""
    models = opened.config.get("models")
    asked = models.get("user") if isinstance(models, Mapping) and human.model is not None else None
    settings = msgspec.json.encode([origin, asked])
    return _stamp(human.persona, human.policy, human.model, human.prompt, opened.engine, settings)


@lru_cache(maxsize=1024)
def _stamp(*parts: str | int | bytes | None) -> str:
    return codec.digest(parts)


def is_baseline(opened: SessionOpened) -> bool:
    """Whether a session is an automated run: ``config["baseline"]``, or else without a human."""
    said = opened.config.get("baseline")
    return said if isinstance(said, bool) else _first(opened, "human") is None


def has_agent(opened: SessionOpened) -> bool:
    """Whether an agent takes part, or may: false if all named participants are human."""
    return not opened.participants or any(one.role != "human" for one in opened.participants)


def poses_output(opened: SessionOpened) -> bool | None:
    """Whether a session is about a shared output.

    ``config["output"]`` says so: null if there is none. A session that says nothing poses one; but
    an imported conversation only if it holds a snapshot.

    Returns:
        None if the snapshots of the session decide.
    """
    if "output" in opened.config:
        return opened.config["output"] is not None
    imported = opened.config.get("imported")
    if isinstance(imported, Mapping) and imported.get("format") not in _TASKS:
        return None
    return True


def _first(opened: SessionOpened, role: str) -> Participant | None:
    return next((one for one in opened.participants if one.role == role), None)
