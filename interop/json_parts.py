"""Parts of JSON that another program wrote, if they have the expected shape; else empty ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..engine.events import JSON

__all__ = ("items_at", "items_of", "mapping_at", "text_at")


def text_at(of: JSON, name: str) -> str:
    """The text under a name; empty if there is none."""
    value = of.get(name) if isinstance(of, Mapping) else None
    return value if isinstance(value, str) else ""


def mapping_at(of: JSON, name: str) -> Mapping[str, JSON]:
    """The object under a name; empty if there is none."""
    value = of.get(name) if isinstance(of, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items_at(of: JSON, name: str) -> Sequence[JSON]:
    """The list under a name; empty if there is none."""
    return items_of(of.get(name) if isinstance(of, Mapping) else None)


def items_of(value: JSON) -> Sequence[JSON]:
    """The items of a list; none of anything else."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
