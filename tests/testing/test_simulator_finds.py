"""Runs in which the simulator has found a broken promise, reduced to the necessary operations."""

from __future__ import annotations

import msgspec
import pytest
from duolog.testing.simulator.machine.vfs import UnsupportedSqlite
from duolog.testing.simulator.scenario import Scenario
from duolog.testing.simulator.stage import prepared

FOUND = {
    "a cancelled append left the queue, and nobody who waited for room was woken": """
        {"store": "sqlite", "seed": 10113, "operations": [
        {"number": 0, "kind": "append", "worker": 3, "session": 0, "size": 9, "draw": 448533561},
        {"number": 1, "kind": "vacuum", "worker": 1, "session": 2, "size": 1, "draw": 25154026},
        {"number": 2, "kind": "stale", "worker": 2, "session": 2, "size": 9, "draw": 633247110},
        {"number": 4, "kind": "vacuum", "worker": 0, "session": 2, "size": 1, "draw": 365075659}],
        "faults": [{"kind": "cancel", "at": 29, "draw": 448801390}]}""",
    "a read that had begun went on in a fork of the process": """
        {"store": "sqlite", "seed": 9, "operations": [
        {"number": 1, "kind": "fork", "worker": 0, "session": 1, "size": 3, "draw": 7}],
        "faults": []}""",
    "a client that was gone when it was refused left an error": """
        {"store": "network", "seed": 11, "operations": [
        {"number": 0, "kind": "append", "worker": 0, "session": 0, "size": 1, "draw": 0}],
        "faults": [{"kind": "storm", "at": 1, "draw": 0}]}""",
    "after one failed read, a log was not followed any more until it was opened again": """
        {"store": "sqlite", "seed": 56, "operations": [
        {"number": 0, "kind": "conflict", "worker": 2, "session": 2, "size": 1, "draw": 230354396},
        {"number": 1, "kind": "tap", "worker": 2, "session": 2, "size": 1, "draw": 1004905774},
        {"number": 2, "kind": "append", "worker": 1, "session": 1, "size": 2, "draw": 828469202},
        {"number": 3, "kind": "append", "worker": 2, "session": 0, "size": 1, "draw": 824346658},
        {"number": 4, "kind": "reader", "worker": 2, "session": 2, "size": 1, "draw": 913883234}],
        "faults": [{"kind": "read", "at": 37, "draw": 32474956}]}""",
    "in a run that was cancelled, an actor acted in place of the environment, and closed the session": """
        {"store": "session", "seed": 700000129, "operations": [],
        "faults": [{"kind": "cancel", "at": 54, "draw": 268179047}]}""",
    "no broken promise: a body was delivered while forget was at work, and the simulator objected": """
        {"store": "sqlite", "seed": 700001737, "operations": [
        {"number": 2, "kind": "follow", "worker": 3, "session": 2, "size": 9, "draw": 312265523}],
        "faults": []}""",
}


@pytest.mark.parametrize("what", list(FOUND))
def test_what_was_found_stays_mended(what: str) -> None:
    scenario = msgspec.json.decode(FOUND[what], type=Scenario)
    try:
        with prepared() as stage:
            outcome = stage.run(scenario)
    except UnsupportedSqlite as error:
        pytest.skip(str(error))
    assert outcome.failure == ""
    assert outcome.happened == tuple(fault.kind for fault in scenario.faults)
