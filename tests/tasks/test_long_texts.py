"""Texts that a model may write when it breaks down: endless numbers, which no reader may choke on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.data.facts import Names
from duolog.examples.data.report import ReportReader
from duolog.examples.finance.language import advice, statements
from duolog.examples.finance.plan import try_plan
from duolog.examples.proof.algebra.classes import Class, read_class
from duolog.examples.proof.algebra.expressions import read_polynomial
from duolog.examples.proof.language.agent import counterexamples_in
from duolog.examples.proof.proving.checker import check_section
from duolog.examples.proof.proving.claims import counterexample, fails_at, holds, read_claim
from duolog.examples.proof.proving.document import read_document
from duolog.examples.travel.language.messages import understand_message
from duolog.examples.travel.language.reports import read_price
from duolog.examples.travel.plan.text import parse_plan
from duolog.tasks.phrases import number_in, sentences

ENDLESS = "9" * 5_000

_REPORTS = ReportReader(Names("tea", ("North", "South"), ("Assam", "Chai")))

TEXTS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "kit": (number_in, ("about {} of them",)),
    "travel": (understand_message, ("{} people are going.", "our budget is ${}.", "{} dollars")),
    "travel, price": (read_price, ("Nothing keeps to your budget: this one comes to ${}.",)),
    "travel, plan": (parse_plan, ("Day 1:\nTransportation: Taxi, from A to B, Cost: {}",)),
    "finance": (
        statements.read_facts,
        (
            "I can live with a loss of {}% in a bad year.",
            "the fund should last for {} months.",
            "I want to retire at {}.",
            "in retirement we'd need ${} a month.",
            "we need {} thousand for a roof within two years.",
        ),
    ),
    "finance, answer": (lambda text: statements.read_answer(text, "income"), ("about {} k",)),
    "finance, figures": (
        advice.read_figures,
        ("In a bad year you would lose {}%.", "The chance to stop at 65 is {}%."),
    ),
    "finance, understood": (advice.read_understood, ("I take it that you need {}.",)),
    "finance, plan": (try_plan, ("Life cover: {}",)),
    "data": (
        _REPORTS.read,
        (
            "Finding: {} of the {} rows of prices are wrong.",
            "Chai costs 9 % more in North ({} prices)",
        ),
    ),
    "proof": (counterexamples_in, ("A fails at n = {}.",)),
}


@pytest.mark.parametrize("reader", TEXTS)
def test_endless_numbers_break_no_reader(reader: str) -> None:
    read, texts = TEXTS[reader]
    for text in texts:
        read(text.replace("{}", ENDLESS))


def test_of_an_endless_sentence_the_beginning_is_read() -> None:
    [endless, following] = sentences(f"{'so ' * 5_000}on. And then.")
    assert following == "And then."
    assert len(endless) < 1_000
    assert endless.startswith("so so ")


@pytest.mark.parametrize(
    "text", [f"n = {ENDLESS} mod 8", f"n = 1 mod {ENDLESS}", f"n = 1, {ENDLESS} mod 5"]
)
def test_endless_classes_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_class(text)


def test_an_expression_does_not_nest_for_ever() -> None:
    with pytest.raises(InvalidInput, match="nests more than"):
        read_polynomial(f"{'(' * 150}n{')' * 150}")


def test_a_sum_is_decided_for_any_number_without_adding_up() -> None:
    right, wrong = read_claim("6*sum(i^2) = 2*n^3 + 3*n^2 + n"), read_claim("sum(i) = n^2")
    assert not any(fails_at(right, number) for number in (0, 1, 7, 999_999_999))
    assert [number for number in range(5) if fails_at(wrong, number)] == [2, 3, 4]
    assert fails_at(wrong, 999_999_999)
    assert counterexample(right, 10_000) is None
    assert holds(right)


def test_remainders_of_large_classes_are_found_without_trying_all_numbers() -> None:
    large = Class(4_999, (1, 5))
    assert large.modulo(4_998) == tuple(range(4_998))
    small = Class(12, (1, 5, 10))
    assert small.modulo(18) == tuple(sorted({n % 18 for n in range(36) if small.holds(n)}))
    document = read_document(
        "Claim A: 24 divides n for n = 1, 5 mod 4999\n"
        "A.1 24 divides n for n = 1, 5 mod 4999 [cases mod 4992: 1 -> 1]"
    )
    [missing, *_] = [fault.why for fault in check_section(document["A"], document)]
    assert "is missing" in missing
