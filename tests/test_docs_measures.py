"""The page on measures: it names every number of a report, and its worked example is right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from documents import code_spans, prose, snippets
from duolog.scoring.comparison.agreement import weighted_kappa
from duolog.scoring.metrics import Numbers, aggregate
from duolog.scoring.metrics.forks import Fork, ForkGroup
from duolog.scoring.metrics.results import SessionScore
from duolog.scoring.metrics.survival import survival_curve
from duolog.scoring.process import Process, initiative_entropy
from duolog.scoring.report import report_data
from duolog.scoring.trajectory.effort import MEASURES
from duolog.scoring.trajectory.files import read_trajectories
from duolog.scoring.trajectory.points import Trajectory


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "measures.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def named(root: Path) -> set[str]:
    return set(code_spans(prose(root / "docs" / "measures.md")))


@pytest.fixture(scope="module")
def worked(page: str, tmp_path_factory: pytest.TempPathFactory) -> list[Trajectory]:
    [block] = [snippet for snippet in snippets(page) if snippet.file == "worked.jsonl"]
    file = tmp_path_factory.mktemp("measures") / "worked.jsonl"
    file.write_text(block.text, encoding="utf-8")
    return list(read_trajectories(file))


def report(worked: list[Trajectory], convention: str) -> Numbers:
    assert convention in ("formal", "paper")
    return aggregate(
        worked, convention="formal" if convention == "formal" else "paper", taus=(1, 2), bootstrap=0
    )


def paths(value: object, *above: str) -> Iterator[str]:
    """The paths to the numbers of a report, with τ for tolerances."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from paths(inner, *above, "τ" if re.fullmatch(r"\d+", key) else key)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield from paths(value[0], *above)
    else:
        yield ".".join(above)


def is_within(path: str, named: set[str]) -> bool:
    """Whether a mapping that a path leads into is named, such as counts by kind."""
    above = path.rpartition(".")[0]
    return "." in above and above in named or above == "bootstrap"


def test_it_names_every_number_of_a_report(named: set[str], worked: list[Trajectory]) -> None:
    effort = dict.fromkeys(MEASURES, 1.0)
    full = [
        msgspec.structs.replace(
            item,
            session=f"{item.session}{tokens}",
            points=tuple(msgspec.structs.replace(point, effort=effort) for point in item.points),
            agent_tokens=tokens,
            human_tokens=100,
        )
        for tokens in range(100, 1100, 100)
        for item in worked
    ]
    data = report_data(aggregate(full, bootstrap=10))
    found = {path.removeprefix("groups.") for path in paths(data)}
    found = {re.sub(r"(?<=outcomes\.)\w+\.", "", path) for path in found}
    found = {path for path in found if not path.startswith(("intervals.", "group.", "reasons."))}
    assert len(found) > 40
    missing = {path for path in found if path not in named and path.rpartition(".")[0] not in named}
    assert missing == set()


@pytest.mark.parametrize("shown", [SessionScore, Process, ForkGroup, Fork])
def test_it_names_every_field(named: set[str], shown: type[msgspec.Struct]) -> None:
    named = named | {path.rpartition(".")[2] for path in named}
    who = {"session", "group", "origin", "version", "state", "baseline"}
    beside = {"played_then", "played_now", "rounds_then", "rounds_now"}
    assert set(shown.__struct_fields__) - who - beside - named == set()


def test_the_worked_example_is_right(worked: list[Trajectory]) -> None:
    [group] = report(worked, "formal").groups
    assert group.first.value == pytest.approx(0.5)
    assert group.final.value == pytest.approx(0.7)
    assert group.overall.value == pytest.approx(0.75)
    assert group.gain_abs.value == pytest.approx(0.25)
    assert group.gain_rel.value == pytest.approx(0.5)
    assert [drop.abs.value for drop in group.drops] == [pytest.approx(-0.25), pytest.approx(-0.15)]
    assert group.drops[0].rel.value == pytest.approx(-0.25 / 0.7)
    assert group.counts.total_rounds == 7
    assert group.counts.missing_ratings == 1
    assert group.curve[3].mean == pytest.approx(0.7)
    assert group.curve[3].reached == 1
    [paper] = report(worked, "paper").groups
    assert paper.max_step == 3
    assert paper.drops[0].abs.value == pytest.approx(-0.1)


def test_the_example_of_initiative_is_right() -> None:
    assert initiative_entropy([3, 1]) == pytest.approx(0.811, abs=5e-4)


def test_the_examples_of_survival_and_agreement_are_right() -> None:
    points = survival_curve([(1, True), (1, False), (2, True), (3, False)])
    assert [point.survival for point in points[:2]] == [pytest.approx(0.75), pytest.approx(0.375)]
    assert weighted_kappa([(2, 2), (4, 5)]) == pytest.approx(0.857, abs=5e-4)
