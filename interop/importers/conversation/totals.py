"""Running totals of tokens, as some programs write them, taken apart into calls."""

from __future__ import annotations

from typing import final

import msgspec

from ....engine.events import Tokens

__all__ = ("RunningTotal",)


@final
class RunningTotal:
    """A total that grows with every call, and begins again where a session is resumed."""

    def __init__(self) -> None:
        self._total = Tokens()

    def since(self, total: Tokens | None) -> Tokens | None:
        """What was used since the last count; None where nothing was.

        Args:
            total: the next count.
        """
        if total is None or total == self._total:
            return None
        counts = msgspec.structs.asdict(total)
        before = msgspec.structs.asdict(self._total)
        self._total = total
        if any(
            value is not None and value < (before[field] or 0) for field, value in counts.items()
        ):
            return total  # the session was resumed, and counts from nothing
        return Tokens(
            **{
                field: value - (before[field] or 0)
                for field, value in counts.items()
                if value is not None
            }
        )
