"""Numbers as other programs write them, if they can be counted with."""

from __future__ import annotations

from typing import Final, final

import msgspec

from ....engine.events import Tokens

__all__ = ("RunningTotal", "amount_of", "count_of", "counted", "share_of")

_LARGEST: Final = 2**53
"""As far as whole numbers are the same in every program."""


def count_of(value: object) -> int | None:
    """A whole number from 0, such as of tokens; None for anything else."""
    return value if type(value) is int and 0 <= value <= _LARGEST else None


def amount_of(value: object) -> float | None:
    """A finite number from 0, e.g. of seconds or dollars; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _LARGEST else None


def share_of(value: object) -> float | None:
    """A number in [0, 1], such as a reward; None for anything else."""
    amount = amount_of(value)
    return amount if amount is not None and amount <= 1 else None


def counted(tokens: Tokens) -> Tokens:
    """Tokens without impossible counts."""
    counts = msgspec.structs.asdict(tokens)
    return Tokens(**{field: count_of(count) for field, count in counts.items()})


# --- running totals of tokens, as some programs write them, taken apart into calls ----------------


@final
class RunningTotal:
    """A total that grows with every call, and begins again when a session is resumed."""

    def __init__(self) -> None:
        self._total = Tokens()

    def since(self, total: Tokens | None) -> Tokens | None:
        """Tokens used since the last count; None if there are none.

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
