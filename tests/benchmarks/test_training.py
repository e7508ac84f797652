"""The example of training: it plays, its gradient climbs, and the same seed gives the same policy."""

from __future__ import annotations

import anyio
import numpy as np
from duolog.benchmarks.training import MOVES, Played, always, gradient, learn, play
from duolog.engine.log.open import open_log


def test_a_seed_gives_one_policy() -> None:
    def run(seed: int) -> bytes:
        return anyio.run(lambda: learn(seed, updates=1, batch=2, problems=1)).weights.tobytes()

    assert run(0) == run(0)


def test_the_gradient_favours_the_moves_of_the_better_episode() -> None:
    known = np.ones(9)
    better = Played(1.0, 1.0, 0.0, [known], [MOVES.index("work")])
    worse = Played(0.0, 0.0, 0.0, [known], [MOVES.index("praise")])
    found = gradient(np.zeros((len(MOVES), 9)), [better, worse])
    assert (found[MOVES.index("work")] > 0).all()
    assert (found[MOVES.index("praise")] < 0).all()


def test_asking_without_end_costs_more_than_it_brings() -> None:
    async def main() -> tuple[float, float]:
        async with open_log("memory://") as log:
            once = await play(log, "1000", "bounded", always("finish"))
            flood = await play(log, "1000", "bounded", always("ask"))
            return once.reward, flood.reward

    once, flood = anyio.run(main)
    assert flood < once
