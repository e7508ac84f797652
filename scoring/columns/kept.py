"""Rows of sessions as a log keeps them, so that no session is folded twice."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from ...engine.log.contract import Derived
from ..process import Process
from ..trajectory.effort import MEASURES
from ..trajectory.options import Options
from ..trajectory.points import NO_SCORE, NOT_EVALUATED
from ..trajectory.token_estimate import estimate_tokens
from ..trajectory.tolerance import PENDING, Rating, longest_run
from ..turns import annotate, is_vague
from .rows import FOLD_VERSION, Folded, RoundRow, SessionRow

__all__ = (
    "COST",
    "LATENCY",
    "LOST",
    "MISSING",
    "REVIEWED",
    "ROUNDS",
    "TOLERANCE",
    "UTILITY",
    "WHY_MISSING",
    "counted_ratings",
    "kind_of",
    "pack",
    "unpack",
)

MISSING: Final = (None, NOT_EVALUATED, NO_SCORE)
"""Why the utility of a readable session is missing; None if it has one."""

# Positions of the numbers in a kept row.
ROUNDS: Final = 0
"""How many rounds there are."""

UTILITY: Final = 1
"""The utility after the last round."""

WHY_MISSING: Final = 2
"""Why it is missing, as the index in ``MISSING``."""

LOST: Final = 3
"""Events that could not be recorded."""

COST: Final = 4
"""The agent's cost, in US dollars."""

LATENCY: Final = 5
"""Median seconds until the agent answers."""

TOLERANCE: Final = 6
"""The greatest tolerance that is used up; 0 for none."""

REVIEWED: Final = 7
"""How many have reviewed the session."""

_WINDOW: Final = -12  # 4 kB, without a header
_MEMORY: Final = 5

_encode = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Folded).decode

_NAMES: Final = _encode(
    (
        dict.fromkeys(SessionRow.__struct_fields__),
        Process(initiatives={}),
        RoundRow(round=1, effort=dict.fromkeys(MEASURES, 0)),
    )
)
"""The names of all columns, which compression knows beforehand: rows shrink to a quarter by that."""


def kind_of(options: Options) -> str:
    """The kind of the rows that these options give; empty if they cannot be kept.

    The tolerances do not matter, since rows hold the ratings. If the options hold a user's
    function, its behaviour is unknown, so the rows are not kept.
    """
    plugged = options.vague is not is_vague or options.annotator is not annotate
    if options.count is not estimate_tokens or plugged:
        return ""
    deciding = (options.rounds, options.utility, options.judge, options.timing, options.idle_cap)
    return f"columns/{sha256(msgspec.json.encode(deciding) + _NAMES).hexdigest()[:16]}"


def pack(folded: Folded, position: int, kind: str) -> Derived:
    """Rows as a log keeps them, with the numbers by which sessions are ordered and selected.

    Args:
        folded: the rows.
        position: the position of the last record that they rest on.
        kind: from ``kind_of``.
    """
    why = folded.utility_missing
    missing = MISSING.index(why) if why in MISSING else None
    row = folded.session
    packing = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=_NAMES)
    return Derived(
        session=row.session,
        kind=kind,
        version=FOLD_VERSION,
        position=position,
        payload=packing.compress(_encode(folded)) + packing.flush(),
        numbers=(
            len(folded.rounds),
            folded.utility,
            missing,
            row.lost,
            row.cost,
            row.latency,
            longest_run(counted_ratings(folded.rounds)),
            len(row.reviewers),
        ),
    )


def unpack(kept: Derived) -> Folded:
    """The rows that ``pack`` packed."""
    return _decode(zlib.decompressobj(_WINDOW, zdict=_NAMES).decompress(kept.payload))


def counted_ratings(rounds: Sequence[RoundRow]) -> Iterator[Rating]:
    """The ratings that tolerance counts: of all rounds but a closing one."""
    counted = rounds[:-1] if rounds and rounds[-1].closing else rounds
    return (PENDING if point.pending else point.rating for point in counted)
