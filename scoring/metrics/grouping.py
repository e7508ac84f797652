"""By which labels sessions are grouped, and which of them a row shares with what it is compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...engine.errors import InvalidInput

__all__ = ("LABELS", "bucket_labels", "chosen_labels", "compared_labels")

LABELS = ("agent", "model", "user", "task")
"""The labels by which sessions are grouped unless said otherwise, as far as they occur."""

_BESIDE = frozenset({"agent", "user"})
"""Labels in which an automated run may differ from the row that it is compared with."""


def chosen_labels(
    present: Collection[str], group_by: Sequence[str] | None, *, some: bool
) -> tuple[str, ...]:
    """The labels to group by.

    Args:
        present: the labels that sessions have.
        group_by: those that are asked for; None for those of ``LABELS`` that occur.
        some: whether there is any session.

    Raises:
        InvalidInput: no session has a label that is asked for.
    """
    if group_by is None:
        return tuple([name for name in LABELS if name in present])
    for name in group_by:
        if some and name not in present:
            known = ", ".join(sorted(present)) or "none"
            raise InvalidInput(f"no session has a label {name!r} to group by; there are: {known}")
    return tuple(dict.fromkeys(group_by))


def compared_labels(labels: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The labels of a row that an automated run must not contradict to be compared with it."""
    return tuple([(name, value) for name, value in labels if name not in _BESIDE])


def bucket_labels(labels: Iterable[str]) -> list[str]:
    """The labels by which sessions are pooled for buckets: all agents of a model together."""
    found = [name for name in labels if name != "agent"]
    return found if "model" in found else ["model", *found]
