"""The contract of the log, on every store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.testing.contracts.log import CHECKS, Check, check_closing, check_event_log

Factory = Callable[[], Store]


@pytest.fixture(
    params=[
        "memory",
        "sqlite",
        "sqlite, chained",
        pytest.param("postgres", marks=pytest.mark.slow),
    ]
)
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> Factory:
    urls: dict[str, Callable[[], str]] = {
        "memory": lambda: "memory://",
        "sqlite": lambda: f"sqlite:///{tmp_path}/{uuid4().hex}.db",
        "sqlite, chained": lambda: f"sqlite:///{tmp_path}/{uuid4().hex}.db?chain=yes",
        "postgres": lambda: request.getfixturevalue("postgres").url(chain="yes", partition="100"),
    }
    return lambda: open_log(urls[request.param]())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_promise(factory: Factory, check: Check) -> None:
    async with factory() as log:
        await check(log)


async def test_closing(factory: Factory) -> None:
    await check_closing(factory())


async def test_the_checks_run_as_one() -> None:
    await check_event_log(lambda: open_log("memory://"))
