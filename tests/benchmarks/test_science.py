"""``make science`` on a few sessions: it plays, tests and writes its pages, the same each time."""

from __future__ import annotations

from pathlib import Path

import pytest
from duolog.benchmarks.science.__main__ import main
from duolog.benchmarks.science.phenomena import Finding
from duolog.scoring.metrics.results import Estimate


@pytest.mark.slow
def test_a_tiny_study_writes_its_pages_and_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["--tiny", "--logs", str(tmp_path / "logs"), "--docs", str(tmp_path)]
    agents = tmp_path / "agents.md"
    agents.write_text("Before.\n<!-- goal -->\noutdated\n<!-- end of goal -->\nBetween.\n", "utf-8")
    assert main(run) == 0
    assert "travel: 27 sessions: 27 run\ndata: 29 sessions: 29 run" in capsys.readouterr().err
    pages = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    assert pages.keys() == {"agents.md", "science.md"}
    for task in ("travel", "data"):
        page = (tmp_path / "gallery" / f"{task}.md").read_text(encoding="utf-8")
        assert page.startswith("<!-- numbers -->\n| who | first utility |")
        assert "| human alone (`human-alone`) | 0.00 |" in page
        assert "The drop under 6 readings of the ratings" in page
        assert "<!-- forks -->\nOf 2 `two-stage` sessions, " in page
        assert "<svg" in (tmp_path / "gallery" / f"{task}.svg").read_text(encoding="utf-8")
    assert "`careful`" in (tmp_path / "gallery" / "travel.md").read_text(encoding="utf-8")
    assert pages["agents.md"].startswith("Before.\n<!-- goal -->\n2 instances per task and person")
    assert "outdated" not in pages["agents.md"]
    assert "\nBetween.\n" in pages["agents.md"]
    assert "| travel | 90% | " in pages["agents.md"]
    assert (
        "<!-- asking -->\nOne question at a share of the work, compared with none: 1 instances"
        in pages["agents.md"]
    )
    assert "**The goal is " in pages["agents.md"]
    assert "\nNon-inferior to both in everything, under every rating rule: " in pages["agents.md"]
    assert "| travel | `goals` (off as shipped) |" in pages["agents.md"]
    for hypothesis in (
        "Two-stage starts slower",
        "With an opaque agent",
        "With a weak agent",
        "There is a sweet",
    ):
        assert f"| {hypothesis}" in pages["science.md"]
    assert main(run) == 0
    assert "travel: 27 sessions: 0 run, 27 in the log already" in capsys.readouterr().err
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")} == pages


@pytest.mark.parametrize(
    ("low", "high", "sign", "verdict"),
    [
        (0.1, 0.3, 1, "holds"),
        (-0.3, -0.1, 1, "does not hold"),
        (-0.1, 0.3, 1, "not shown"),
        (-0.3, -0.1, -1, "holds"),
        (0.1, 0.3, -1, "does not hold"),
        (0.0, 0.3, 1, "not shown"),
        (None, None, 1, "not shown"),
    ],
)
def test_the_verdict_goes_by_the_side_of_the_whole_interval(
    low: float | None, high: float | None, sign: int, verdict: str
) -> None:
    estimate = Estimate(value=0.1, low=low, high=high, sessions=3)
    assert Finding("it rises", "travel", "rise", estimate, sign).verdict == verdict


def test_a_finding_on_the_drop_holds_only_if_it_does_under_all_readings_of_the_ratings() -> None:
    below, around = (
        Estimate(value=-0.1, low=-0.2, high=high, sessions=3) for high in (-0.05, 0.05)
    )
    finding = Finding("it drops", "travel", "D@1", below, -1, readings=(below, below))
    assert (finding.verdict, finding.counted) == ("holds", "holds in all 2")
    other = finding._replace(readings=(below, around))
    assert (other.verdict, other.counted) == ("depends", "holds in 1, not shown in 1")


def test_a_finding_with_a_limit_is_compared_with_it() -> None:
    share = Estimate(value=-0.3, low=-0.4, high=-0.2, sessions=3)
    small = Estimate(value=-0.07, low=-0.15, high=-0.02, sessions=3)
    finding = Finding("it drops", "travel", "D@1", share, -1, limit=-0.1)
    assert finding.verdict == "holds"
    assert finding._replace(estimate=small).verdict == "not shown"
    assert finding._replace(estimate=small, limit=-0.2).verdict == "does not hold"
