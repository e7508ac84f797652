"""What of a hidden profile people and models read: words. What rules go by besides is left out."""

from __future__ import annotations

from collections.abc import Mapping

from ..engine.events import JSON

__all__ = ("in_words",)


def in_words(private: JSON) -> JSON:
    """A private part without what only rules can use.

    Where it has a ``profile``, which says in words who somebody is, its other parts that are objects
    say the same in numbers.
    """
    if not isinstance(private, Mapping) or "profile" not in private:
        return private
    return {name: part for name, part in private.items() if not isinstance(part, Mapping)}
