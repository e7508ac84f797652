"""A real PostgreSQL server keeps what the simulator holds every log to, while parts of it are killed."""

from __future__ import annotations

import pytest
from duolog.testing.postgres_server import missing, running_postgres
from duolog.testing.simulator.postgres import run_on_postgres
from duolog.testing.simulator.scenario import draw


def _failures(first: int, count: int) -> tuple[list[tuple[int, str]], set[str]]:
    if why := missing():
        pytest.skip(why)
    failures: list[tuple[int, str]] = []
    happened: set[str] = set()
    with running_postgres(durable=False) as server:
        for seed in range(first, first + count):
            outcome = run_on_postgres(draw("postgres", seed), server)
            happened.update(outcome.happened)
            if outcome.failure:
                failures.append((seed, outcome.failure))
    return failures, happened


@pytest.mark.slow
def test_a_server_whose_backends_are_killed_and_that_is_killed_keeps_its_word() -> None:
    failures, happened = _failures(0, 6)
    assert failures == []
    assert happened >= {"backend", "server"}


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_fresh_seeds_on_a_server(seed: int) -> None:
    failures, _ = _failures(seed * 1_000_000, 200)
    assert failures == []
