"""The opening of a session with the private parts as they stand, once goals have changed."""

from __future__ import annotations

import msgspec

from ...engine.events import ProfileChanged, SessionOpened

__all__ = ("with_profile",)


def with_profile(opened: SessionOpened, changed: ProfileChanged) -> SessionOpened:
    """The opening as if its owner had held the changed profile from the start.

    A function that scores by the private parts in the opening scores by what the human wants now.

    Args:
        opened: the opening, perhaps with earlier changes.
        changed: the change.
    """
    private = {**opened.private, changed.owner: changed.profile}
    return msgspec.structs.replace(opened, private=private)
