"""All drills, and which of them a run ends with: the drills of this package, and the test kit's own checks."""

from __future__ import annotations

from typing import Final

from ....engine.log.leases import Leasing
from ...contracts import log as checks
from ...contracts import subscriptions as live
from ...contracts.leases import check_leases
from ...contracts.log import Check
from ..around import check_closed
from ..reading import check_refusals
from ..scenario import Store
from .exchange import exchange, mend, restore
from .files import chain, fail, hold, lose, mark, open_files, outlive, overtake
from .following import consume, deliver, hurry, leave, outrun, resume
from .forgetting import copy, forget, race, search
from .ground import Drill, Ground
from .staging import keep_states, stage, write_staged
from .writing import answer, repeat

__all__ = ("DRILLS", "drill_of")


def _checked(check: Check) -> Drill:
    async def drill(ground: Ground) -> None:
        async with ground.open(check.__name__) as log:
            await check(log)

    return drill


async def lease(ground: Ground) -> None:
    """Leases keep their contract."""
    async with ground.open("leases") as one:
        if isinstance(one, Leasing):
            if ground.directory is None:
                await check_leases(one.leases(), one.leases())
                return
            async with ground.open("leases") as other:
                assert isinstance(other, Leasing)
                await check_leases(one.leases(), other.leases())


async def refuse(ground: Ground) -> None:
    """A log refuses what no log takes, and everything before it is open and after it is closed."""
    log = ground.open("refused")
    await check_closed(log)
    async with log:
        await check_refusals(log)
    await check_closed(log)
    await checks.check_closing(ground.open("closing"))


_CHECKS: Final = (
    checks.check_order,
    checks.check_envelopes,
    checks.check_expected_version,
    checks.check_bad_input,
    checks.check_idempotence,
    checks.check_checkpoints,
    checks.check_closed_sessions,
    checks.check_summaries,
    checks.check_derived,
    checks.check_derived_input,
    checks.check_forgotten_derived,
    live.check_competing_writers,
    live.check_future_subscription,
    live.check_competing_consumers,
)

DRILLS: Final[tuple[Drill, ...]] = (
    answer,
    forget,
    leave,
    fail,
    resume,
    answer,
    outlive,
    stage,
    outrun,
    race,
    hurry,
    answer,
    copy,
    write_staged,
    exchange,
    lease,
    fail,
    deliver,
    race,
    search,
    mark,
    consume,
    restore,
    lose,
    repeat,
    mend,
    fail,
    chain,
    hold,
    refuse,
    open_files,
    overtake,
    keep_states,
    *map(_checked, _CHECKS),
)
"""In the order of the seeds that run them; one of them has chances, and comes more often."""


def drill_of(store: Store, seed: int) -> Drill | None:
    """The drill with which a run ends; every second one has one.

    Runs of seeds that follow each other go through all of them, of files from another one on.
    """
    number = seed // 2 + (len(DRILLS) // 2 if store == "sqlite" else 0)
    return DRILLS[number % len(DRILLS)] if store in ("memory", "sqlite") and seed % 2 else None
