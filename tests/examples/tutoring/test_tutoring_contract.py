"""Tutoring keeps the contract of tasks."""

from __future__ import annotations

from duolog.examples.tutoring.tutoring_task import tutoring_task
from duolog.testing import check_task


async def test_tutoring_keeps_the_contract_of_tasks() -> None:
    await check_task(tutoring_task(), instances=2)
