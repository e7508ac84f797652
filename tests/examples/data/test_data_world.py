"""Surveys: the same for a seed, with the declared patterns, decoys and dirty rows."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import UtilityScored
from duolog.examples.data.data_task import best_report, data_task, data_utility
from duolog.examples.data.facts import DEFAULTS, RULINGS, Topic, agrees
from duolog.examples.data.instances import Instance, invent_survey, make_instance, opened_by
from duolog.examples.data.profile import (
    profile_of,
    read_profile,
    sentences_of,
    write_profile,
)
from duolog.examples.data.truth import Sums
from duolog.testing.records import RecordWriter, run_scorer


@pytest.fixture(scope="module")
def ones() -> list[Instance]:
    return [make_instance(1, str(number)) for number in range(6)]


@pytest.fixture(params=range(6))
def one(ones: list[Instance], request: pytest.FixtureRequest) -> Instance:
    number: int = request.param
    return ones[number]


def test_an_instance_is_the_same_for_its_seed_and_number_and_another_for_any_other(
    ones: list[Instance],
) -> None:
    again = make_instance(1, "0")
    assert again == ones[0]
    others = [make_instance(2, "0"), *ones[1:]]
    assert len({str(one.survey.tables.ratings[:50]) for one in [again, *others]}) == 7


def test_names_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="numbered from 0"):
        make_instance(1, "first")


def test_each_ruling_decides_the_topic_that_it_is_planted_for(one: Instance) -> None:
    sums = Sums(one.survey.tables, one.survey.names)
    for ruling in RULINGS:
        topic = one.survey.planted[ruling]
        other = sums.answers({**one.rulings, ruling: not one.rulings[ruling]})
        assert other[topic].answer != one.truth[topic].answer


def test_decoys_are_no_patterns_once_they_are_looked_at(one: Instance) -> None:
    small, price = one.survey.decoys
    assert one.truth[small].answer == "too few"
    assert price not in one.truth or one.truth[price].answer == "nowhere"
    control = Sums(one.survey.tables, one.survey.names)
    mixed = one.survey.planted["within"]
    together = control.answers({**DEFAULTS, "within": False})[mixed]
    within = control.answers({**DEFAULTS, "within": True})[mixed]
    assert (together.answer, within.answer) == ("younger", "alike")


def test_rows_are_dirty_in_each_of_the_ways(one: Instance) -> None:
    tables = one.survey.tables
    assert any(row.price > 100 for row in tables.prices)
    assert any(row.rating > 10 for row in tables.ratings)
    assert len(set(tables.ratings)) < len(tables.ratings)
    spelled = {row.region for row in tables.people}
    assert len(spelled) > len(one.survey.names.regions)


def test_interests_have_clear_answers_and_lead_from_the_first_to_all(one: Instance) -> None:
    assert set(one.interests) <= set(one.truth)
    assert sum(topic in one.survey.planted.values() for topic in one.interests) == 3
    assert one.first.topics == one.interests[:1]
    all_of_it = opened_by(one.interests, one.opens, one.pivot, one.truth)
    assert set(all_of_it.topics) == set(one.interests)
    assert all_of_it.goal == (one.pivot or one.interests[0])
    assert opened_by(one.interests, one.opens, one.pivot, {}) == one.first


def test_a_profile_is_read_back_as_it_was_written(one: Instance) -> None:
    profile = profile_of(one)
    assert read_profile(write_profile(profile)) == profile


def test_a_profile_of_an_older_log_is_read(one: Instance) -> None:
    profile = profile_of(one)
    *sentences, _ = sentences_of(write_profile(profile))
    words = f"{profile.attention} words at a time, and {profile.stamina} altogether"
    limits = f"You take in {words}; then you are tired."
    assert read_profile({"profile": [*sentences, limits]}) == profile


@pytest.mark.parametrize("written", [None, {}, {"profile": ["It is about tea."]}])
def test_what_is_no_profile_is_refused(written: object) -> None:
    with pytest.raises(InvalidInput, match="profile"):
        read_profile(written)  # type: ignore[arg-type]


async def test_the_witness_is_a_report_that_is_worth_1_to_who_has_understood_it(
    one: Instance,
    ones: list[Instance],
) -> None:
    """Here by having written it: with one agent, it takes several looks."""
    script = RecordWriter()
    script.opened()
    script.output(best_report(one), by="human")
    script.closed()
    scored = await run_scorer(data_utility(one), script.records)
    assert [e.value for e, _ in scored if isinstance(e, UtilityScored)] == [1.0]
    assert data_task().best_output(str(ones.index(one)), 1).value == 1.0


def test_claims_agree_within_a_tolerance(ones: list[Instance]) -> None:
    price = next(claim for claim in ones[0].truth.values() if claim.topic.kind == "price")
    dear = price.__class__(Topic("price", "Latte"), "Eastvale", 25.0, 8)
    assert agrees(price.__class__(dear.topic, "Eastvale", 29.0, 3), dear)
    assert not agrees(price.__class__(dear.topic, "Eastvale", 31.0, 8), dear)
    assert not agrees(price.__class__(dear.topic, "nowhere", None, 8), dear)


def test_surveys_are_of_many_subjects() -> None:
    from random import Random

    assert len({invent_survey(Random(number)).names.subject for number in range(12)}) > 3
