"""The checker accepts what the prover proves of true claims, and refuses each kind of false step."""

from __future__ import annotations

from random import Random

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.proof.proving.checker import check_section, is_proved
from duolog.examples.proof.proving.claims import (
    Divides,
    counterexample,
    fails_at,
    generalised,
    holds,
    read_claim,
    restricted,
    weakened,
)
from duolog.examples.proof.proving.document import (
    Section,
    read_document,
    render_document,
    section_key,
)
from duolog.examples.proof.proving.lemmas import FAMILIES
from duolog.examples.proof.proving.prover import prove
from duolog.examples.proof.proving.slips import draft

LEMMAS = {family.label: family.claim for family in FAMILIES.values()}
TRUE = (
    "24 divides n^3 - n for odd n",
    "6 divides n^3 + 5*n for all n",
    "240 divides n^5 - n for n = 1, 3, 5, 7, 9, 11, 13, 15 mod 16",
    "30 divides n^5 + 59*n for all n",
    "6*sum(i^2) = 2*n^3 + 3*n^2 + n",
    "sum(2*i - 1) = n^2",
)
FALSE = ("24 divides n^3 - n for all n", "9 divides n^3 - n for odd n", "sum(2*i) = n^2")


def written(claim: str, *, lemmas: bool, slips: float = 0.0, seed: str = "1") -> str:
    heads = [
        Section("Lemma", one.label, one.text, steps=prove(one.label, one.claim, {}))
        for one in FAMILIES.values()
    ]
    cited = LEMMAS if lemmas else {}
    steps = draft("A", read_claim(claim), cited, seed=seed, tries={}, rate=slips)
    return render_document([*heads, Section("Claim", "A", claim, steps=steps)])


@pytest.mark.parametrize("lemmas", [False, True])
@pytest.mark.parametrize("claim", TRUE)
def test_what_is_proved_of_a_true_claim_is_accepted(claim: str, lemmas: bool) -> None:
    document = read_document(written(claim, lemmas=lemmas))
    assert holds(read_claim(claim))
    assert check_section(document["A"], document) == []
    assert all(is_proved(label, document) for label in document)


@pytest.mark.parametrize("lemmas", [False, True])
@pytest.mark.parametrize("claim", FALSE)
def test_nothing_proves_a_false_claim(claim: str, lemmas: bool) -> None:
    assert not holds(read_claim(claim))
    assert fails_at(read_claim(claim), counterexample(read_claim(claim)) or 0)
    for seed in range(20):
        document = read_document(written(claim, lemmas=lemmas, slips=0.5, seed=str(seed)))
        assert check_section(document["A"], document)


def test_each_slip_is_found_and_no_step_that_is_right_is_refused() -> None:
    wrong = 0
    for seed in range(150):
        claim = Random(seed).choice(TRUE)
        document = read_document(written(claim, lemmas=True, slips=0.4, seed=str(seed)))
        right = read_document(written(claim, lemmas=True))["A"].steps
        steps = document["A"].steps
        slipped = {
            one.name
            for one, other in zip(steps, right, strict=True)
            if (one.text, one.reason) != (other.text, other.reason)
        }
        assert {fault.step for fault in check_section(document["A"], document)} == slipped
        wrong += bool(slipped)
    assert 40 < wrong < 140


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("A.1 n^2 = n*n + 1 [expand]", "not the same"),
        ("A.1 6 divides n^3 - n for all n [cases mod 6: 0 -> 0, 1 -> 0]", "n = 2 mod 6 is missing"),
        ("A.1 6 divides n^3 - n for all n [cases mod 3: 0 -> 0, 1 -> 0, 2 -> 6]", "do not decide"),
        ("A.1 6 divides n^3 - n for all n [L1 at n]", "another value"),
        ("A.1 6 divides n^3 - n for all n [L9 at n]", "unknown lemma L9"),
        ("A.1 6 divides n^3 - n for all n [together A.0]", "no earlier step A.0"),
        ("A.1 6 divides n^3 - n for all n [obvious]", "is not a known reason"),
        ("A.1 everything is fine [expand]", "is not an identity"),
        ("so it is clear", "cannot be read"),
    ],
)
def test_a_refusal_says_why(step: str, why: str) -> None:
    text = f"{written(TRUE[1], lemmas=True)}\n\nClaim A: 6 divides n^3 - n for all n\n{step}"
    document = read_document(text)
    found = [fault.why for fault in check_section(document["A"], document)]
    assert any(why in one for one in found), found


def test_moduli_with_a_common_factor_do_not_multiply_and_proofs_go_in_no_circles() -> None:
    text = (
        "Claim A: 24 divides n^3 - n for odd n\n"
        "A.1 4 divides n^3 - n for odd n [cases mod 4: 1 -> 0, 3 -> 24]\n"
        "A.2 6 divides n^3 - n for odd n [cases mod 6: 1 -> 0, 3 -> 24, 5 -> 120]\n"
        "A.3 24 divides n^3 - n for odd n [together A.1, A.2]\n\n"
        "Lemma L1: 24 divides n^3 - n for odd n\n"
        "L1.1 24 divides n^3 - n for odd n [L1 at n]\n\n"
        "Claim B: 24 divides n^3 - n for odd n\n"
        "B.1 24 divides n^3 - n for odd n [L1 at n]"
    )
    document = read_document(text)
    assert [fault.step for fault in check_section(document["A"], document)] == ["A.3"]
    assert not is_proved("L1", document)
    assert not is_proved("B", document)


def test_a_proof_of_something_else_is_none() -> None:
    text = "Claim A: 8 divides n^2 - 1 for all n\nA.1 8 divides n^2 - 1 for odd n [cases mod 8: 1 -> 0, 3 -> 8, 5 -> 24, 7 -> 48]"
    document = read_document(text)
    assert "to be proved" in check_section(document["A"], document)[0].why


def test_a_claim_is_mended_by_fewer_n_or_a_smaller_divisor() -> None:
    claim = read_claim("24 divides n^3 - n for all n")
    assert isinstance(claim, Divides)
    fewer, smaller = restricted(claim), weakened(claim)
    assert fewer is not None
    assert smaller is not None
    assert fewer.text == "24 divides n^3 - n for odd n"
    assert smaller.text == "6 divides n^3 - n for all n"
    assert generalised(smaller) is None
    wide = generalised(Divides(6, claim.value, fewer.over))
    assert wide == smaller


@pytest.mark.parametrize(
    "text",
    ["n is even", "1 divides n for all n", "0 divides n for all n", "6 divides n^3 for some n"],
)
def test_what_is_no_claim_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_claim(text)


def test_a_document_is_written_and_read_alike_and_doubts_make_no_other_version() -> None:
    text = written(TRUE[0], lemmas=True, slips=0.5, seed="4")
    document = read_document(text)
    assert render_document(list(document.values())) == text
    sure = read_document(text.replace(" (?)", ""))
    assert section_key(document["A"]) == section_key(sure["A"])
    assert read_document({"no": ["text"]}) == {}
