"""The report as text: every statement is read back as it was written, and prose states nothing."""

from __future__ import annotations

import pytest
from duolog.examples.data.facts import (
    ADVISED,
    RULINGS,
    Advice,
    Claim,
    Names,
    Ruling,
    Topic,
    advice_on,
)
from duolog.examples.data.report import (
    Assumed,
    Charted,
    ReportReader,
    say_advice,
    say_assumption,
    say_claim,
)

NAMES = Names("coffee", ("Eastvale", "Skerry"), ("Latte", "Mocha"))
READER = ReportReader(NAMES)

CLAIMS = [
    Claim(Topic("favourite", "Eastvale"), "Mocha", 7.9, 64),
    Claim(Topic("favourite", "Skerry"), "too few", None, 6),
    Claim(Topic("price", "Latte"), "Eastvale", 25.0, 8),
    Claim(Topic("price", "Latte"), "nowhere", None, 32),
    Claim(Topic("age", "Mocha"), "younger", 1.6, 240),
    Claim(Topic("age", "Mocha"), "older", 1.6, 240),
    Claim(Topic("age", "Mocha"), "alike", None, 240),
    Claim(Topic("channel", "Mocha"), "app", 2.9, 98),
    Claim(Topic("channel", "Mocha"), "none", None, 240),
    Claim(Topic("quality", "prices"), "11", None, 170),
    Claim(Topic("quality", "ratings"), "40", None, 1510),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=[say_claim(claim) for claim in CLAIMS])
def test_a_finding_is_read_back(claim: Claim) -> None:
    found = READER.read(say_claim(claim))
    assert isinstance(found, Claim)
    assert (found.topic, found.answer, found.base) == (claim.topic, claim.answer, claim.base)
    if claim.topic.kind != "quality":
        assert found.value == claim.value


@pytest.mark.parametrize("claim", [one for one in CLAIMS if one.topic.kind in ADVISED])
def test_a_recommendation_is_read_back(claim: Claim) -> None:
    advice = advice_on(claim)
    assert READER.read(say_advice(advice)) == advice
    assert isinstance(READER.read(say_advice(advice)), Advice)


@pytest.mark.parametrize("ruling", RULINGS)
@pytest.mark.parametrize("holds", [True, False])
def test_an_assumption_is_read_back(ruling: Ruling, holds: bool) -> None:
    assert READER.read(say_assumption(ruling, holds=holds)) == Assumed(ruling, holds)


def test_a_chart_is_read_and_one_without_numbers_is_none() -> None:
    line = "Chart of Mocha by channel: app ▇▇▇ 2.9, counter ▇ 0.1"
    assert READER.read(line) == Charted(Topic("channel", "Mocha"))
    assert READER.read("Chart of Mocha by channel: to be drawn") is None


def test_somebody_elses_wording_of_a_finding_is_read_as_far_as_its_key_words_go() -> None:
    found = READER.read("- **Finding**: on the whole, people in EASTVALE like mocha best.")
    assert found == Claim(Topic("favourite", "Eastvale"), "Mocha", None, 0)


@pytest.mark.parametrize(
    "line",
    [
        "Mocha is a fine coffee.",
        "Method: SELECT * FROM ratings",
        "Finding: people in Atlantis like Mocha best.",
        "Assumption: everything is fine.",
        "Recommendation: drink more.",
    ],
)
def test_prose_states_nothing(line: str) -> None:
    assert READER.read(line) is None
