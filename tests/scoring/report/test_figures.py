"""Figures: their contents, their layout without cuts or overlaps, and their repeatable files."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.errors import InvalidInput, MissingExtra
from duolog.engine.installation import install_command
from duolog.scoring.comparison.pairs import compare
from duolog.scoring.metrics import Numbers, aggregate
from duolog.scoring.report.document import Figure
from duolog.scoring.report.drawings import (
    AUTOMATED,
    Panels,
    colours,
    curves,
    forest,
    log_ticks,
    quintiles,
    ratio_lines,
    report_figures,
    survival,
    tokens,
)
from duolog.scoring.report.plots import SETTINGS, draw_figure, write_figures
from duolog.scoring.trajectory.points import Point, Trajectory
from later import imported_later

pytestmark = pytest.mark.slow

figure = imported_later("matplotlib.figure")
matplotlib = imported_later("matplotlib")


@pytest.fixture(autouse=True)
def _styled() -> Iterator[None]:
    with matplotlib.rc_context(dict(SETTINGS)):
        yield


def saved(report: Numbers, directory: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    return write_figures(report_figures(report, Panels(report)), directory, formats)


def sessions(
    agents: tuple[str, ...] = ("one-stage", "two-stage"),
    models: tuple[str, ...] = ("m",),
    count: int = 12,
) -> list[Trajectory]:
    chance = random.Random(4)
    made = []
    for model in models:
        for agent in (*agents, "auto"):
            for number in range(count):
                utility, points = 0.0, []
                for k in range(1, 1 + (1 if agent == "auto" else chance.randint(1, 9))):
                    utility = min(1.0, utility + chance.random() / 4)
                    points.append(
                        Point(
                            round=k,
                            value=utility,
                            utility=utility,
                            updated=True,
                            rating=chance.randint(1, 5),
                            effort={"tokens_read": 120.0 * k, "acts": float(k)},
                        )
                    )
                made.append(
                    Trajectory(
                        session=f"{agent}{number}",
                        group={"agent": agent, "model": model},
                        points=tuple(points),
                        agent_tokens=chance.randint(500, 90_000),
                        human_tokens=chance.randint(100, 9_000),
                        baseline=agent == "auto",
                    )
                )
    return made


def reported(**options: object) -> Numbers:
    return aggregate(sessions(**options), bootstrap=0)  # type: ignore[arg-type]


def every_figure(report: Numbers, panels: Panels) -> list[Any]:
    return [draw_figure(one) for one in report_figures(report, panels)]


def drawn_from(found: Figure | None) -> Any:  # noqa: ANN401 - a type that is imported later
    assert found is not None
    return draw_figure(found)


LONG = ("one-stage", "an-agent-with-a-rather-long-name", "third", "fourth", "fifth")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agents", "models"),
    [
        (("one-stage",), ("m",)),
        (("one-stage", "two-stage"), ("m", "n")),
        (LONG, ("m",)),
        (LONG, ("m", "n", "claude-3.5-sonnet", "gpt-4o", "llama-3.1-70b")),
    ],
)
def test_nothing_is_cut_off_or_overlaps(agents: tuple[str, ...], models: tuple[str, ...]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    report = reported(agents=agents, models=models)
    for drawn in every_figure(report, Panels(report)):
        assert isinstance(drawn, figure.Figure)
        canvas: Any = FigureCanvasAgg(drawn)
        canvas.draw()
        page = drawn.bbox
        boxes = [legend.get_window_extent() for legend in drawn.legends]
        boxes += [text.get_window_extent() for text in drawn.texts]
        for axes in drawn.axes:
            boxes.append(axes.get_tightbbox())
            for axis in (axes.xaxis, axes.yaxis):
                labels = [label.get_window_extent() for label in axis.get_ticklabels()]
                labels = [box for box in labels if box.width]
                assert not any(a.overlaps(b) for a, b in pairwise(labels))
        for box in boxes:
            assert box.x0 >= page.x0 - 1
            assert box.x1 <= page.x1 + 1
            assert box.y0 >= page.y0 - 1
            assert box.y1 <= page.y1 + 1
        parts = boxes[: len(drawn.legends) + len(drawn.texts)]
        for index, box in enumerate(parts):
            assert not any(box.overlaps(other) for other in boxes[index + 1 :])


def test_curve_shows_means_baseline_and_who_came_how_far() -> None:
    report = reported(models=("m", "n"))
    panels = Panels(report)
    drawn = every_figure(report, panels)[0]
    assert isinstance(drawn, figure.Figure)
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["m", "n"]
    for axes, (_, groups) in zip(drawn.axes, panels.by_panel.items(), strict=True):
        lines = {tuple(line.get_ydata()) for line in axes.lines if line.get_color() != AUTOMATED}
        assert lines == {tuple(point.mean for point in group.curve) for group in groups}
        level = [line.get_ydata()[0] for line in axes.lines if line.get_color() == AUTOMATED]
        assert set(level) == {groups[0].reference.value}
        assert axes.get_title(loc="right") == "N = 12 each"
        areas = axes.collections[1].get_sizes()
        assert list(areas) == sorted(areas, reverse=True)
    text = " ".join(text.get_text() for text in drawn.texts).replace("\n", " ")
    assert "±1\u00a0SEM over N sessions" in text
    names = [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    assert names[:3] == ["one-stage", "two-stage", "automated baseline"]
    assert "Sessions that reached that point:" in names


def test_scatter_has_a_dot_per_session_and_lines_of_equal_ratio() -> None:
    report = reported()
    drawn = every_figure(report, Panels(report))[1]
    assert isinstance(drawn, figure.Figure)
    [axes] = drawn.axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    [dots] = axes.collections
    assert len(dots.get_offsets()) == 24
    assert {text.get_text() for text in axes.texts} >= {"1:1", "10:1"}
    for line in axes.lines[:-2]:  # the last two are means
        ratios = line.get_ydata() / line.get_xdata()
        assert ratios[0] == pytest.approx(ratios[-1])


def test_axes_of_tokens_have_numbers_however_short_they_are() -> None:
    assert log_ticks((1.9, 5.1)) == [(2, "100"), (3, "1k"), (4, "10k"), (5, "100k")]
    assert [name for _, name in log_ticks((1.4, 2.4))] == ["50", "100", "200"]
    assert [name for _, name in log_ticks((5.5, 6.8))] == ["500k", "1M", "2M", "5M"]
    assert ratio_lines((2, 5), (2, 5)) == [
        (-2, "1:100"),
        (-1, "1:10"),
        (0, "1:1"),
        (1, "10:1"),
        (2, "100:1"),
    ]
    short = ratio_lines((1.4, 2.4), (2.3, 3.3))
    assert [name for _, name in short] == ["2:1", "5:1", "10:1", "20:1", "50:1"]
    assert [name for _, name in ratio_lines((2.3, 3.3), (1.8, 2.8))][:2] == ["1:20", "1:10"]


def test_scatter_counts_whom_it_cannot_show() -> None:
    silent = Trajectory(
        session="x", group={"agent": "one-stage", "model": "m"}, agent_tokens=5, final=0.2
    )
    report = aggregate([*sessions(), silent], bootstrap=0)
    drawn = drawn_from(tokens(Panels(report), report))
    caption = drawn.texts[0].get_text().replace("\n", " ")
    assert "1 session without tokens of both sides is not shown" in caption
    report = aggregate([silent], bootstrap=0)
    assert tokens(Panels(report), report) is None


def test_quintiles_show_each_session_and_the_mean() -> None:
    report = reported()
    drawn = every_figure(report, Panels(report))[2]
    assert isinstance(drawn, figure.Figure)
    [axes] = drawn.axes
    [buckets] = report.buckets
    assert buckets.stats is not None
    [dots] = [c for c in axes.collections if c.get_alpha() == 0.5]
    assert len(dots.get_offsets()) == 24
    [course] = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert list(course.get_ydata()) == [bucket.mean.value for bucket in buckets.stats]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[0] == "0"
    assert labels[-1] == "∞"
    assert [text.get_text() for text in axes.texts] == [
        f"n = {bucket.mean.sessions}" for bucket in buckets.stats
    ]


@pytest.mark.slow
def test_files_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    report = reported(count=6)
    kinds = ("png", "svg", "pdf")
    first = saved(report, tmp_path / "a", kinds)
    second = saved(report, tmp_path / "b" / "c", kinds)
    assert [path.name for path in first] == [
        f"{name}.{kind}" for name in ("curve", "tokens", "ratio") for kind in (*kinds, "txt")
    ]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    svg = (tmp_path / "a" / "curve.svg").read_text(encoding="utf-8")
    assert not re.search(r"<dc:date>", svg)
    assert not re.search(r"(href|src)=\"http", svg)
    assert (
        (tmp_path / "a" / "curve.txt").read_text("utf-8").startswith("Scaling curve. Mean utility")
    )


@pytest.mark.slow
def test_the_curve_is_drawn_against_the_effort_of_the_report(tmp_path: Path) -> None:
    report = aggregate(sessions(), bootstrap=0, axis="tokens_read")
    paths = saved(report, tmp_path, ["svg"])
    assert [path.name for path in paths if path.suffix != ".txt"] == [
        "curve-tokens_read.svg",
        "tokens.svg",
        "ratio.svg",
    ]
    caption = (tmp_path / "curve-tokens_read.txt").read_text("utf-8")
    assert caption.startswith("Utility against tokens")


@pytest.mark.parametrize("levels", [(0.0,), (1.0,), (0.4, 0.4), (0.0, 0.0, 0.0), (1.0, 1.0)])
@pytest.mark.parametrize("count", [1, 2])
def test_few_or_equal_values_are_neither_clipped_nor_stretched(
    levels: tuple[float, ...], count: int
) -> None:
    points = tuple(
        Point(round=k, value=value, utility=value, updated=True)
        for k, value in enumerate(levels, start=1)
    )
    longer = (*points, Point(round=len(points) + 1, value=0.5, utility=0.5, updated=True))
    same = [
        Trajectory(
            session=f"{model}{number}",
            group={"agent": "one-stage", "model": model},
            points=longer if model == "n" and number else points,
            agent_tokens=10,
            human_tokens=7,
        )
        for model in "mn"
        for number in range(count)
    ]
    report = aggregate(same, bootstrap=0)
    panels = Panels(report)
    course, scatter = drawn_from(curves(panels)), drawn_from(tokens(panels, report))
    for drawn in (course, scatter):
        assert len({(axes.get_xlim(), axes.get_ylim()) for axes in drawn.axes}) == 1
    low, high = course.axes[0].get_ylim()
    assert low < min(levels)
    assert high > max(levels)
    assert high - low > 0.2 - 1e-9
    for axis in (scatter.axes[0].xaxis, scatter.axes[0].yaxis):
        assert len(axis.get_majorticklocs()) >= 2


def test_a_group_without_utility_has_no_curve_and_no_name_in_the_legend() -> None:
    chat = Trajectory(
        session="chat",
        group={"agent": "two-stage"},
        points=(Point(round=1, utility=None),),
        evaluated=False,
    )
    scored = [item for item in sessions(agents=("one-stage",)) if not item.baseline]
    panels = Panels(aggregate([chat, *scored], group_by=["agent"], bootstrap=0))
    drawn = drawn_from(curves(panels))
    names = [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    assert "one-stage" in names
    assert "two-stage" not in names
    assert len(drawn.axes[0].get_lines()) == 1


def test_without_performance_there_are_no_quintiles() -> None:
    chats = [
        Trajectory(session=f"s{number}", agent_tokens=10 * number, human_tokens=7, evaluated=False)
        for number in range(1, 7)
    ]
    report = aggregate(chats, bootstrap=0)
    assert quintiles(Panels(report), report) is None
    assert report.buckets[0].reason == "no session with a token ratio has a final performance"


def test_without_tokens_there_is_only_the_curve(tmp_path: Path) -> None:
    plain = [Trajectory(session="s", points=(Point(round=1, value=0.5, utility=0.5),))]
    assert [path.name for path in saved(aggregate(plain, bootstrap=0), tmp_path)] == [
        "curve.png",
        "curve.svg",
        "curve.txt",
    ]
    assert saved(aggregate([], bootstrap=0), tmp_path) == []


def test_series_can_be_told_apart_by_two_labels() -> None:
    report = reported(models=("m", "n"))
    panels = Panels(report, ("agent", "model"))
    assert len(panels.by_panel) == 1
    looks = {one.name: one for one in panels.series}
    assert set(looks) == {f"{agent} · {m}" for agent in ("one-stage", "two-stage") for m in "mn"}
    assert looks["one-stage · m"].colour == looks["one-stage · n"].colour
    assert looks["one-stage · m"].dashes != looks["one-stage · n"].dashes


def test_an_agent_keeps_its_colour() -> None:
    assert colours(["one-stage", "x"])["one-stage"] == colours(["one-stage"])["one-stage"]
    assert colours(["x"])["x"] == colours(["x", "one-stage"])["x"]
    many = colours([f"agent {number}" for number in range(7)])
    assert len(set(many.values())) == 7


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    report = reported(count=2)
    with pytest.raises(InvalidInput, match="unsupported figure format 'gif'"):
        saved(report, tmp_path, ["gif"])
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InvalidInput, match="cannot write figures to"):
        saved(report, tmp_path / "file")


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = reported(count=2)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=re.escape(install_command("plots"))):
        saved(report, tmp_path)


def test_a_curve_on_another_is_drawn_with_gaps() -> None:
    twins = [
        Trajectory(
            session=f"{agent}{k}",
            group={"agent": agent},
            points=tuple([Point(round=i, value=u, utility=u, updated=True) for i, u in COURSE]),
        )
        for agent in ("adaptive", "two-stage")
        for k in range(2)
    ]
    from matplotlib.collections import PathCollection

    panels = Panels(aggregate(twins, bootstrap=0), None)
    drawn = drawn_from(curves(panels))
    # matplotlib lacks a public reader of a line's dash pattern.
    gaps = [bool(vars(line)["_unscaled_dash_pattern"][1]) for line in drawn.axes[0].get_lines()]
    assert sorted(gaps) == [False, True]
    dots: list[Any] = [c for c in drawn.axes[0].collections if isinstance(c, PathCollection)]
    large, small = (dot.get_sizes() for dot in dots)
    assert all(small < large)


COURSE = ((1, 0.2), (2, 0.6), (3, 0.9))


def test_survival_is_drawn_where_somebody_left() -> None:
    left = [
        Trajectory(
            session=f"s{k}",
            group={"agent": "one-stage"},
            points=tuple([Point(round=i, value=u, utility=u) for i, u in COURSE[: k + 1]]),
            state="abandoned" if k == 1 else "finished",
        )
        for k in range(3)
    ]
    drawn = drawn_from(survival(Panels(aggregate(left, bootstrap=0), None)))
    steps = drawn.axes[0].get_lines()[0]
    corners: Any = steps.get_xydata()
    assert corners.tolist() == [[0, 1], [1, 1], [2, 0.5], [3, 0.5]]
    assert survival(Panels(aggregate(left[:1], bootstrap=0), None)) is None


def test_a_forest_has_a_row_for_each_difference_in_utility() -> None:
    pairs = compare(
        [
            Trajectory(
                session=f"{agent}{i}",
                problem=str(i),
                group={"agent": agent},
                points=(Point(round=1, value=value, utility=value, rating=3),),
            )
            for agent, more in (("a", 0.0), ("b", 0.2))
            for i, value in enumerate((0.1 + more, 0.3 + more, 0.6 + more / 2))
        ],
        ("a", "b"),
        taus=(1,),
    )
    drawn = drawn_from(forest(pairs))
    [axes] = drawn.axes
    assert axes.get_title(loc="left") == "b – a"
    labels = [text.get_text() for text in axes.texts]
    assert labels[0] == "overall  (n = 3)"
    assert labels[-1] == "drop τ = 1  (n = 3)"
    low, high = axes.get_xlim()
    assert low == -high
    corners: list[Any] = [line.get_xydata() for line in axes.get_lines()]
    assert all(low < x < high for line in corners for x, _ in line.tolist())
    assert forest([]) is None
