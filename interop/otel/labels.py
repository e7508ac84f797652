"""The labels of a session's metrics: few values each, and none that tells sessions apart."""

from __future__ import annotations

from ...engine.events import SessionOpened
from . import names
from .signals import Value

__all__ = ("session_labels",)


def session_labels(opened: SessionOpened) -> dict[str, Value]:
    """The task, and the first agent: its policy, else its name."""
    labels: dict[str, Value] = {names.WORKFLOW: opened.task} if opened.task else {}
    first = next((one for one in opened.participants if one.role == "agent"), None)
    if first is not None:
        labels[names.AGENT] = first.policy or first.name
    return labels
