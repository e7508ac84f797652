"""The example of training: it plays, its gradient climbs, and the same seed gives the same policy."""

from __future__ import annotations

import anyio
import numpy as np
from duolog.benchmarks.training import MOVES, Played, Policy, always, gradient, learn, play
from duolog.engine.log.open import open_log

WORK, PRAISE = MOVES.index("work"), MOVES.index("praise")


def test_a_seed_gives_one_policy() -> None:
    def run(seed: int) -> bytes:
        found = anyio.run(lambda: learn(seed, updates=1, batch=4, problems=1))
        return b"".join(one.tobytes() for one in found.policy)

    assert run(0) == run(0) != run(1)


def test_the_gradient_favours_the_moves_that_bring_rewards_later() -> None:
    policy = Policy.new(0)
    known = np.zeros((2, len(policy.direct)))
    known[:, 0] = 1.0
    better = Played(1.0, 1.0, 0.0, known, [WORK, WORK], [0.0, 1.0])
    worse = Played(0.0, 0.0, 0.0, known, [PRAISE, PRAISE], [0.0, 0.0])
    found = gradient(policy, [better, worse], 2)
    assert found.direct[0, WORK] > 0 > found.direct[0, PRAISE]
    climbed = Policy(*(one + change for one, change in zip(policy, found, strict=True)))
    assert climbed.odds(known[0])[WORK] > policy.odds(known[0])[WORK]


def test_asking_without_end_costs_more_than_it_brings() -> None:
    async def main() -> tuple[float, float]:
        async with open_log("memory://") as log:
            once = await play(log, "1000", "bounded", always("finish"))
            flood = await play(log, "1000", "bounded", always("ask"))
            assert sum(flood.rewards) == flood.reward
            return once.reward, flood.reward

    once, flood = anyio.run(main)
    assert flood < once
