"""Instances: the same for a seed, each solvable, with profiles that the request does not give away."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.proof.generator import best_document, make_instance
from duolog.examples.proof.language.profiles import (
    private_part,
    read_profile,
    spell_profile,
)
from duolog.examples.proof.proving.checker import cites, is_proved
from duolog.examples.proof.proving.claims import counterexample, holds, read_claim
from duolog.examples.proof.proving.document import read_document, section_key
from duolog.examples.proof.reading import stated_claims
from duolog.examples.proof.utility import judge
from duolog.examples.proof.wishes import in_form


def test_an_instance_is_the_same_each_time_and_others_differ() -> None:
    made = [make_instance(str(number), seed) for seed in (1, 2) for number in range(20)]
    make_instance.cache_clear()
    assert make_instance("7", 2) == made[27]
    assert len({tuple(one.claims.values()) for one in made}) == len(made)


@pytest.mark.parametrize("name", ["x", "-1", "1.5", "", "1234567890"])
def test_what_is_no_instance_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="unknown instance"):
        make_instance(name, 1)


def test_each_instance_has_an_output_of_full_worth_once_it_was_read() -> None:
    for number in range(15):
        one = make_instance(str(number), 3)
        later = one.profile.later
        assert later is not None
        document = read_document(best_document(one))
        assert all(is_proved(label, document) for label in document)
        assert any(cites(section) for section in document.values())
        trust = {section_key(section): 1.0 for section in document.values()}
        assert judge(document, trust, one.claims, later).value == 1.0
        assert 0.3 < judge(document, {}, one.claims, later).value <= 0.4
        assert judge(document, trust, one.claims, one.profile.now).value < 1.0


def test_two_claims_are_false_one_is_too_narrow_and_seeing_that_changes_what_is_wanted() -> None:
    for number in range(15):
        one = make_instance(str(number), 4)
        later = one.profile.later
        assert later is not None
        assert stated_claims(one.request) == one.claims
        false = [label for label, text in one.claims.items() if not holds(read_claim(text))]
        assert sorted(one.profile.turns) == false
        assert len(false) == 2
        for label in false:
            assert 1 <= (counterexample(read_claim(one.claims[label])) or 0) <= 6
            assert holds(in_form(one.claims[label], later.form(label)))
            assert label not in one.profile.now.forms
        assert set(later.core) - set(one.profile.now.core)
        assert not any(sentence in one.request for sentence in spell_profile(one.profile))


def test_a_profile_in_sentences_is_read_as_the_same() -> None:
    for number in range(15):
        profile = make_instance(str(number), 5).profile
        assert read_profile(private_part(profile)) == profile
    assert read_profile({"profile": ["something else"]}) is None
    assert read_profile(None) is None
