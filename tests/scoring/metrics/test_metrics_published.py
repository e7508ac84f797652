"""Agreement with the published analysis, on experiments computed with its code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from duolog.scoring.metrics import Estimate, Numbers, aggregate
from duolog.scoring.trajectory.files import read_trajectories

_HOME = Path(__file__).parents[4] / "shared" / "data"
DATA = Path(os.environ.get("DUOLOG_TEST_DATA", _HOME)) / "metrics"
EXPERIMENTS = sorted(path.stem for path in DATA.glob("*.jsonl")) if DATA.is_dir() else []

pytestmark = pytest.mark.skipif(not EXPERIMENTS, reason=f"no test data in {DATA}")


def same(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) <= 1e-9


def load(name: str) -> tuple[Numbers, Mapping[str, Any]]:
    trajectories = read_trajectories(DATA / f"{name}.jsonl")
    expected = json.loads((DATA / f"{name}.expected.json").read_text(encoding="utf-8"))
    return aggregate(trajectories, convention="paper", bootstrap=0), expected


@pytest.mark.parametrize("name", EXPERIMENTS or ["none"])
def test_groups_agree(name: str) -> None:
    report, expected = load(name)
    groups = {tuple(item.group.items()): item for item in report.groups if not item.baseline}
    assert len(groups) == len(expected["groups"])
    for want in expected["groups"]:
        group = groups[tuple(want["group"].items())]
        assert group.sessions == want["sessions"]
        assert same(group.first.value, want["utility"]["first"])
        assert same(group.final.value, want["utility"]["final"])
        assert same(group.overall.value, want["utility"]["overall"])
        assert same(group.gain_abs.value, want["gain"]["abs"])
        assert same(group.gain_rel.value, want["gain"]["rel"])
        for drop in group.drops:
            assert same(drop.abs.value, want["drop"][str(drop.tau)]["abs"])
            assert same(drop.rel.value, want["drop"][str(drop.tau)]["rel"])
            assert drop.sessions == want["drop"][str(drop.tau)]["sessions"]
        assert len(group.curve) == len(want["curve"])
        for point, there in zip(group.curve, want["curve"], strict=True):
            assert point.x == there["round"]
            assert same(point.mean, there["mean"])
            assert same(point.sem, there["sem"])
            assert (point.sessions, point.reached) == (there["sessions"], there["reached"])
        assert same(group.effort.agent_tokens.value, want["effort"]["agent_tokens"])
        assert same(group.effort.human_tokens.value, want["effort"]["human_tokens"])
        assert same(group.effort.ratio.value, want["effort"]["ratio"])


@pytest.mark.parametrize("name", EXPERIMENTS or ["none"])
def test_baselines_agree(name: str) -> None:
    report, expected = load(name)
    found: dict[str, Estimate] = {
        item.group["model"]: item.final for item in report.groups if item.baseline
    }
    assert found.keys() == expected["baselines"].keys()
    for model, value in expected["baselines"].items():
        assert same(found[model].value, value)
        for group in report.groups:
            if not group.baseline and group.group["model"] == model:
                assert same(group.reference.value, value)


@pytest.mark.parametrize("name", EXPERIMENTS or ["none"])
def test_buckets_agree(name: str) -> None:
    report, expected = load(name)
    found = {tuple(item.group.items()): item for item in report.buckets}
    wanted = {tuple(item["group"].items()): item for item in expected["buckets"]}
    assert wanted.keys() <= found.keys()
    for key, buckets in found.items():
        if key not in wanted:  # the published code raised here
            assert expected["errors"]
            assert buckets.edges is None
            assert buckets.reason
            continue
        assert buckets.edges == tuple(wanted[key]["edges"])
        assert buckets.stats is not None
        for bucket, there in zip(buckets.stats, wanted[key]["stats"], strict=True):
            assert (bucket.low, bucket.high) == (there["low"], there["high"])
            assert same(bucket.mean.value, there["mean"])
            assert bucket.mean.sessions == there["count"]
