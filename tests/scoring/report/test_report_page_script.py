"""The page's script in a real browser: it draws everything, and leads from dots to transcripts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import needs_browser
from duolog.benchmarks.browsers import BROWSER
from duolog.scoring.metrics import aggregate
from duolog.scoring.report import document_page, report_document
from duolog.scoring.trajectory.points import Point, Trajectory

pytestmark = [pytest.mark.slow, needs_browser]

CLICK = """
<script type="module">document.querySelector("#tokens .spot").dispatchEvent(new MouseEvent("click"));
document.querySelector(".switches button").click();</script></body>"""


def made(number: int, agent: str) -> Trajectory:
    rounds = range(1, 2 + number % 4)
    return Trajectory(
        session=f"{agent}-{number}",
        group={"agent": agent},
        points=tuple(Point(round=k, value=k / 10, utility=k / 10, rating=2) for k in rounds),
        agent_tokens=900 * (number + 1),
        human_tokens=200,
        state="abandoned" if number % 3 == 0 else "finished",
    )


@pytest.fixture(scope="module")
def page() -> str:
    sessions = [made(n, agent) for agent in ("one-stage", "two-stage") for n in range(8)]
    report = aggregate(sessions, bootstrap=20)
    texts = {f"t{place}": (one.session, "hello") for place, one in enumerate(report.scores)}
    return document_page(report_document(report), transcripts=texts)


@pytest.fixture
def dom(tmp_path: Path) -> Callable[[str], str]:
    """The page after its script has run."""

    def run(page: str) -> str:
        file = tmp_path / "page.html"
        file.write_text(page, encoding="utf-8")
        command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()]
        return subprocess.run(
            command, capture_output=True, check=True, text=True, timeout=300
        ).stdout

    return run


def test_it_draws_all_there_is(page: str, dom: Callable[[str], str]) -> None:
    found = dom(page)
    assert found.count('class="spot leads"') == 2 * 16  # by tokens, and by their ratio
    assert found.split('id="survival"')[1].split("</section>")[0].count('class="course"') == 2
    assert (
        len(re.findall(r"<figure>", found)) == 5
    )  # curves, by tokens, their ratio, survival, causes
    drawn = re.findall(r' (?:d|cx|cy|x|y)="([^"]*)"', found)
    assert len(drawn) > 100
    assert not [text for text in drawn if re.search(r"NaN|Infinity|undefined|null", text)]
    assert "<details open" not in found


def test_a_dot_leads_to_its_transcript_and_a_switch_hides_a_series(
    page: str, dom: Callable[[str], str]
) -> None:
    found = dom(page.replace("</body>", CLICK))
    assert re.findall(r'<details id="(\w+)" open', found) == ["t0"]
    assert 'aria-pressed="false"' in found
    assert found.count("off-series") > 16
    assert '<tr data-series="0" class="off">' in found
