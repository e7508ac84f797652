"""The utility of proofs: proved and read claims count, length does not, wrong trust costs."""

from __future__ import annotations

import pytest
from duolog.examples.proof.generator import best_document, make_instance
from duolog.examples.proof.proving.claims import read_claim
from duolog.examples.proof.proving.document import (
    Section,
    read_document,
    render_document,
    section_key,
)
from duolog.examples.proof.proving.prover import prove
from duolog.examples.proof.utility import judge
from duolog.examples.proof.wishes import Wishes

CLAIMS = {
    "A": "6 divides n^3 - n for all n",
    "B": "24 divides n^3 - n for all n",
    "C": "5 divides n^5 - n for odd n",
}
WISHES = Wishes(core=("A", "B"), minor=(), forms={"B": "restrict", "C": "general"}, lemma="powers")


def section(label: str, text: str) -> Section:
    return Section("Claim", label, text, steps=prove(label, read_claim(text), {}))


def value(*sections: Section, trust: float = 0.0, wishes: Wishes = WISHES) -> float:
    document = read_document(render_document(sections))
    believed = {section_key(one): trust for one in document.values()} if trust else {}
    return judge(document, believed, CLAIMS, wishes).value


A = section("A", CLAIMS["A"])
ODD = section("B", "24 divides n^3 - n for odd n")


@pytest.mark.parametrize(("trust", "worth"), [(0.0, 0.4), (0.8, 0.8), (1.0, 1.0)])
def test_a_proof_counts_by_how_far_the_human_has_checked_it(trust: float, worth: float) -> None:
    assert value(A, trust=trust) == pytest.approx(0.8 * 0.5 * worth)
    assert value(A, ODD, trust=trust) == pytest.approx(0.8 * worth)


def test_another_form_counts_half_and_a_stronger_claim_in_full() -> None:
    assert value(section("B", "6 divides n^3 - n for all n"), trust=1.0) == pytest.approx(0.2)
    assert value(section("B", "2 divides n^3 - n for even n"), trust=1.0) == 0.0
    general = section("C", "5 divides n^5 - n for all n")
    narrow = Wishes(core=("C",), minor=(), forms={}, lemma="squares")
    assert value(general, trust=1.0, wishes=narrow) == pytest.approx(0.8)


def test_a_counterexample_counts_a_little_and_only_where_the_claim_fails() -> None:
    assert value(Section("Claim", "B", CLAIMS["B"], 2)) == pytest.approx(0.8 * 0.5 * 0.2)
    assert value(Section("Claim", "B", CLAIMS["B"], 3)) == 0.0


def test_belief_in_a_wrong_proof_costs_and_never_below_nothing() -> None:
    wrong = section("B", CLAIMS["B"])
    assert value(wrong) == 0.0
    assert value(wrong, trust=1.0) == 0.0
    assert value(A, wrong, trust=1.0) == pytest.approx(0.8 * (0.5 - 0.25))


def test_what_nobody_asked_for_counts_nothing_however_long() -> None:
    extra = [section("C", CLAIMS["C"]), section("D", CLAIMS["A"]), section("E", CLAIMS["A"])]
    assert value(A, *extra, trust=1.0) == value(A, trust=1.0)


def test_a_lemma_counts_where_it_is_of_the_right_kind_and_cited() -> None:
    one = make_instance("0", 1)
    later = one.profile.later
    assert later is not None
    document = read_document(best_document(one))
    trust = {section_key(part): 1.0 for part in document.values()}
    best = judge(document, trust, one.claims, later)
    assert best.parts["lemma"] == 1.0
    other = next(name for name in ("squares", "powers") if name != later.lemma)
    wishes = Wishes(core=later.core, minor=later.minor, forms=later.forms, lemma=other)
    assert judge(document, trust, one.claims, wishes).value == pytest.approx(0.8)
    only = {label: part for label, part in document.items() if part.kind == "Lemma"}
    assert judge(only, trust, one.claims, later).value == 0.0
