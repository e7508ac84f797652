"""A report as a page: it is whole, loads nothing, and takes labels for what they are."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from duolog.scoring.metrics import Numbers, aggregate
from duolog.scoring.process import Process
from duolog.scoring.report import document_page, report_document
from duolog.scoring.report.summary import LISTED
from duolog.scoring.trajectory.points import Point, Trajectory


def made(number: int, agent: str, model: str = "m") -> Trajectory:
    points = tuple(
        Point(round=k, value=k / 10, utility=k / 10, updated=True, rating=4)
        for k in range(1, 2 + number % 4)
    )
    return Trajectory(
        session=f"{agent}-{number}",
        group={"agent": agent, "model": model},
        points=points,
        agent_tokens=900 * (number + 1),
        human_tokens=200,
        baseline=agent == "auto",
    )


def reported() -> Numbers:
    agents = ("one-stage", "two-stage", "auto")
    sessions = [made(n, agent, model) for agent in agents for model in "mn" for n in range(8)]
    return aggregate(sessions, bootstrap=40)


def report_html(report: Numbers) -> str:
    return document_page(report_document(report))


class Reader(HTMLParser):
    """Collects what the page holds, and whether its tags are balanced."""

    VOID = frozenset({"meta", "br", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            key = self.open[-1]
            if key == "script":
                key = str(self.tags[-1][1].get("id", "script"))
            self.text[key] = self.text.get(key, "") + data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def test_page_holds_everything_and_loads_nothing() -> None:
    page = report_html(reported())
    reader = read(page)
    assert not [tag for tag, _ in reader.tags if tag in ("link", "img", "iframe")]
    assert not [attrs for _, attrs in reader.tags if "src" in attrs]
    links = [attrs["href"] or "" for _, attrs in reader.tags if "href" in attrs]
    assert all(link.startswith("#") for link in links)  # within the page
    assert {link[1:] for link in links} <= {attrs.get("id") for _, attrs in reader.tags}
    urls = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert urls == {"http://www.w3.org/2000/svg"}  # a name, not an address that is loaded
    policies = [a.get("content") for tag, a in reader.tags if "http-equiv" in a]
    assert policies == [
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src blob:"
    ]


def test_data_are_those_of_the_report() -> None:
    report = reported()
    curves, tokens, ratio = json.loads(read(report_html(report)).text["data"])
    assert [one["name"] for one in (curves, tokens, ratio)] == ["curve", "tokens", "ratio"]
    names = [one["name"] for one in curves["series"]]
    assert names == ["one-stage", "two-stage"]
    assert [panel["title"] for panel in curves["panels"]] == ["m", "n"]
    groups = {tuple(group.group.values()): group for group in report.groups}
    for panel in curves["panels"]:
        for drawn in panel["lines"]:
            group = groups[names[drawn["series"]], panel["title"]]
            assert [point["y"] for point in drawn["points"]] == [p.mean for p in group.curve]
            assert panel["rules"][0]["y"] == [group.reference.value] * 2
    for panel in tokens["panels"]:
        assert len([dot for dot in panel["dots"] if dot["session"]]) == 16
    assert sum(len(panel["dots"]) for panel in ratio["panels"]) == 32
    assert ratio["panels"][0]["ticks"][-1][1] == "∞"


def test_table_has_a_row_per_group_that_can_be_switched() -> None:
    reader = read(report_html(reported()))
    rows = [attrs.get("data-series") for tag, attrs in reader.tags if tag == "tr"]
    marked = [row for row in rows if row is not None]
    assert marked == ["0", "1", "0", "1"] * 3  # utility, effort, and how sessions ended
    assert "one-stage" in reader.text["a"]
    assert "model n" in reader.text["th"]
    assert "0.174 to 0.325" in reader.text["small"]


def test_page_says_how_sessions_ended_and_how_many_there_are() -> None:
    left = Trajectory(session="s", points=(Point(round=1),), state="abandoned")
    page = report_html(aggregate([left], bootstrap=0))
    reader = read(page)
    assert "How sessions ended" in reader.text["h2"]
    assert "Abandoned" in reader.text["th"]
    assert "1 (100.0%)" in reader.text["td"]
    assert "20.7 to 100.0%" in reader.text["small"]
    assert "1 session, convention formal" in page
    assert "All rounds" in reader.text["th"]


def test_effort_and_relative_numbers_have_intervals_too() -> None:
    sessions = [made(n, "one-stage") for n in range(8)]
    [first, effort, *_] = re.findall(
        r'<tr data-series="0">.*', report_html(aggregate(sessions, bootstrap=200))
    )
    cells, efforts = (re.findall(r"<td>(.*?)</td>", row) for row in (first, effort))
    assert (len(cells), len(efforts)) == (12, 4)
    assert all("<small>" in cell for cell in efforts if not cell.startswith("200"))
    assert re.fullmatch(r"[\d.]+%<small>[\d.]+ to [\d.]+%</small>", cells[5])


def test_who_left_is_drawn_and_has_a_hazard() -> None:
    left = [
        msgspec.structs.replace(
            made(n, "one-stage"), state="abandoned" if n % 2 else "finished", session=f"s{n}"
        )
        for n in range(6)
    ]
    report = aggregate(left, bootstrap=0)
    page = report_html(report)
    reader = read(page)
    assert "Hazard by unproductive rounds" in reader.text["th"]
    assert "Survival" in reader.text["h2"]
    [survival] = [one for one in json.loads(reader.text["data"]) if one["name"] == "survival"]
    [panel] = survival["panels"]
    [group] = report.groups
    assert [point["y"] for point in panel["lines"][0]["points"]] == [
        1,
        *[point.survival for point in group.completion.survival],
    ]
    assert "Survival" not in read(report_html(reported())).text["h2"]


def test_rows_lead_to_sessions_and_sessions_to_transcripts() -> None:
    agents = ("one-stage", "two-stage", "auto")
    report = aggregate([made(n, agent) for agent in agents for n in range(8)], bootstrap=0)
    names = [score.session for score in report.scores]
    commands = {name: f"duolog show x.db {name}" for name in names}
    document = report_document(report, links={names[0]: "#t0"}, commands=commands)
    reader = read(document_page(document, transcripts={"t0": (names[0], "ann: hello")}))
    ids = {attrs["id"] for _, attrs in reader.tags if attrs.get("id")}
    assert {f"g{n}" for n in range(len(report.groups))} <= ids
    assert {f"s{n}" for n in range(len(names))} <= ids
    assert "t0" in ids
    assert "t1" not in ids
    assert reader.text["summary"].startswith("one-stage (8)two-stage (8)auto, m, automated (8)")
    assert reader.text["pre"] == "ann: hello"
    assert f"duolog show x.db {names[1]}" in reader.text["code"]
    assert f"duolog show x.db {names[0]}" not in reader.text["code"]


def test_too_many_sessions_are_not_listed() -> None:
    many = [made(0, "one-stage"), *[made(n, "two-stage") for n in range(LISTED)]]
    reader = read(report_html(aggregate(many, bootstrap=0)))
    assert "2,001 sessions are too many to list on this page." in reader.text["p"]
    assert not [attrs for _, attrs in reader.tags if "href" in attrs]


def test_panels_share_their_axes() -> None:
    short = [made(n, "one-stage", "m") for n in range(1)]
    long = [made(n, "one-stage", "n") for n in range(4)]
    [curves, *_] = json.loads(
        read(report_html(aggregate([*short, *long], bootstrap=0))).text["data"]
    )
    assert curves["x"]["high"] > 4  # of the longest session in any panel
    assert curves["sizes"][-1] == 4  # sessions that the largest dot in any panel shows


def test_process_measures_have_a_table_if_any_are_known() -> None:
    assert "Process" not in read(report_html(reported())).text["h2"]
    process = Process(initiatives={}, halts=2)
    alone = Trajectory(session="s", group={"agent": "one-stage"}, process=process)
    reader = read(report_html(aggregate([alone], bootstrap=0)))
    assert "Process" in reader.text["h2"]
    assert "Interruptions" in reader.text["th"]
    assert "2.00" in reader.text["td"]
    titles = [attrs["title"] for tag, attrs in reader.tags if tag == "abbr"]
    assert any((title or "").startswith("no session has messages") for title in titles)


def test_absent_numbers_say_why() -> None:
    point = Point(round=1, value=0.0, updated=True, rating=3)
    alone = Trajectory(session="s", group={"agent": "one-stage", "model": "m"}, points=(point,))
    others = [made(0, agent, "n") for agent in ("one-stage", "auto")]
    reader = read(report_html(aggregate([alone, *others], bootstrap=0)))
    titles = [attrs["title"] for tag, attrs in reader.tags if tag == "abbr"]
    assert "no automated run to compare with" in titles
    assert "the final utility to which it relates is 0" in titles
    assert "no session has a token count" in titles


@pytest.mark.parametrize("nasty", ["</script><b>", "<img src=x onerror=alert(1)>", '"&amp;"'])
def test_labels_are_text_and_nothing_else(nasty: str) -> None:
    sessions = [made(n, nasty, f"{nasty}{n % 2}") for n in range(8)]
    sessions.append(made(1, "one-stage", f"{nasty}1"))
    names = {session.session: nasty for session in sessions}
    one = next(iter(names))
    report = aggregate(sessions, bootstrap=0)
    document = report_document(report, links={one: "#t0"}, commands=names)
    reader = read(document_page(document, title=nasty, transcripts={"t0": (one, nasty)}))
    assert {tag for tag, _ in reader.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "table"),
        *("thead", "tbody", "tr", "th", "td", "span", "small", "abbr", "script"),
        *("a", "details", "summary", "pre", "code", "section", "main", "input"),
    }
    [curves, *_] = json.loads(reader.text["data"])
    assert nasty in [one["name"] for one in curves["series"]]
    assert reader.text["title"] == nasty


def test_without_sessions_there_is_a_page_all_the_same() -> None:
    reader = read(report_html(aggregate([])))
    assert "There are no sessions to report on." in reader.text["p"]
    assert json.loads(reader.text["data"]) == []
