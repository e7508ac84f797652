"""Numbers stay what they were, for sessions that were made up at random.

``expected/`` holds the sessions and their numbers. Those of ``paper`` are what a program computed session
by session before there were columns (commit 3587471), but that round 1 is never closing. So were those of
``formal``, until the definitions changed in version 3. Hazards are by definitions of version 5.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from duolog.scoring.comparison.agreement import agreement
from duolog.scoring.comparison.pairs import compare
from duolog.scoring.comparison.sensitivity import change_warnings, sensitivity
from duolog.scoring.metrics import Convention, aggregate, effort_curve
from duolog.scoring.metrics.counterfactual import counterfactual_drops, stops_of
from duolog.scoring.metrics.forks import compare_forks, without_forks
from duolog.scoring.report import report_data
from duolog.scoring.trajectory.files import decode_trajectory
from duolog.scoring.trajectory.points import Trajectory

EXPECTED = Path(__file__).parent / "expected"


class Case:
    """Sessions, and the numbers of them."""

    def __init__(self, name: str) -> None:
        self.numbers: dict[str, Any] = json.loads(
            gzip.decompress((EXPECTED / f"{name}.json.gz").read_bytes())
        )
        self.sessions: Sequence[Trajectory] = [
            decode_trajectory(line) for line in self.numbers["sessions"]
        ]


@pytest.fixture(params=["effort", "plain", "odd"])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def differences(one: object, other: object, where: str = "") -> Iterator[str]:
    """Where two results differ by more than 1e-12."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from differences(one.get(key), other.get(key), f"{where}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{where}/{at}")
    elif isinstance(one, float) and isinstance(other, int | float):
        if not math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12):
            yield f"{where}: {one!r} and {other!r}"
    elif one != other:
        yield f"{where}: {one!r} and {other!r}"


def wrong(expected: object, found: object) -> list[str]:
    return list(differences(expected, json.loads(msgspec.json.encode(found))))


@pytest.mark.parametrize("convention", ["formal", "paper"])
@pytest.mark.parametrize("taus", ["1,2,3", "1,5"])
def test_reports(case: Case, convention: Convention, taus: str) -> None:
    asked = [int(tau) for tau in taus.split(",")]
    report = aggregate(case.sessions, convention=convention, taus=asked, bootstrap=0)
    expected = case.numbers["reports"][f"{convention}/{taus}"]
    found: Any = report_data(report)
    assert (found.pop("axis"), found.pop("simulators")) == ("rounds", {})
    for group in found["groups"]:
        group.pop("variance")  # what follows was not computed then
        for name in ("coarse_sessions", "coarse_versions"):
            del group["counts"][name]
        for point in group["completion"]["survival"]:
            for name in ("finished", "incidence", "incidence_low", "incidence_high"):
                del point[name]
    assert wrong(expected, found) == []


def test_sensitivity_and_warnings(case: Case) -> None:
    found = sensitivity({"a": case.sessions})
    assert wrong(case.numbers["sensitivity"], found.rows) == []
    kept = sensitivity({"": without_forks(case.sessions)})
    assert wrong(case.numbers["warnings"], change_warnings(kept.changes)) == []


def test_forks_pairs_and_curves(case: Case) -> None:
    assert wrong(case.numbers["forks"], compare_forks(case.sessions, bootstrap=0)) == []
    agents = sorted({one.group["agent"] for one in case.sessions})
    assert wrong(case.numbers["pairs"], compare(case.sessions, agents, bootstrap=0)) == []
    whole = [one for one in case.sessions if not one.baseline]
    for measure, curve in case.numbers["curves"].items():
        assert wrong(curve, effort_curve(whole, measure)) == []


def test_counterfactual_drops(case: Case) -> None:
    stops = stops_of(case.sessions, (1, 2, 3))
    continuations = {
        (one.session, k): [case.sessions[(at * 7 + j) % len(case.sessions)] for j in range(3)]
        for at, (one, mine) in enumerate(zip(case.sessions, stops, strict=True))
        for k in set(mine.values())
    }
    found = counterfactual_drops(case.sessions, continuations, bootstrap=0)
    assert wrong(case.numbers["counterfactual"], found.drops) == []


def test_agreement() -> None:
    rounds, expected = Case("plain").numbers["agreement"]
    assert wrong(expected, agreement(rounds, resamples=0)) == []


def gaps(one: object, other: object, where: str = "") -> Iterator[tuple[float, str]]:
    """How far the ends of intervals are apart, as a share of their width."""
    if isinstance(one, dict) and isinstance(other, dict):
        low, high = one.get("low"), one.get("high")
        if isinstance(low, float) and isinstance(high, float) and one.get("sessions", 0) >= 10:
            apart = max(abs(low - other["low"]), abs(high - other["high"]))
            yield apart / max(high - low, 1e-9), where
        for key in one.keys() & other.keys() - {"rel", "ratio"}:  # whose tails are heavy
            yield from gaps(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, list) and isinstance(other, list):
        for at, (left, right) in enumerate(zip(one, other, strict=False)):
            yield from gaps(left, right, f"{where}/{at}")


def test_intervals_differ_by_the_chance_of_resampling_alone() -> None:
    case = Case("odd")
    alone = [msgspec.structs.replace(one, problem=None) for one in case.sessions]
    report = report_data(aggregate(alone, bootstrap=4000, seed=1))
    found = list(gaps(case.numbers["resampled"], report))
    assert len(found) > 40
    assert max(found) < (0.12, "")
