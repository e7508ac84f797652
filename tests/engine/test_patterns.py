"""Regular expressions of a user: those that could take forever are refused, and the others compiled."""

from __future__ import annotations

import re

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.patterns import compiled

ENDLESS = (
    r"(a+)+$",
    r"(aa|ab?)*b",
    r"(?:\w+\s?)*@",
    r"(a*)*",
    r"((a+)b?)+",
    r"(?=(a+)+b)",
    r"(x+x+)+y",
    r"(x+?y?)+?z",
    r"(?:(?:a|b)?c?){20}",
    r"(a{1,50}){1,50}",
    r"(?>(a+)+)",
    r"(.*a){12}",
    r"(?:a?){30}a{30}",
    r"(?:\.[\w.]+)*!",
    r"(?i)(?:X[a-z]+)+!",
    r"(?:,[^;]+)+!",
    r"(x)?((?(1)a|ab?))*c",
    r"(?:/\D+)+!",
)

USUAL = (
    r"ACME-[0-9]{4}",
    r"\b\d{3}-\d{4}\b",
    r"(\d{1,3}\.){3}\d{1,3}",
    r"(?:[a-f0-9]{1,4}:){7}[a-f0-9]{1,4}",
    r"[\w.+-]+@[\w-]+(\.[\w-]+)+",
    r"(?i)secret\s*[:=]\s*\S+",
    r"(foo|bar) \w+",
    r"(?:ab)+",
    r"(?:,[^,]+)*",
    r"(\w|\d)+-",
    r"(?:\w++\s?+)*+@",
    r"(?>foo|fu)+",
)


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_pattern_that_could_take_forever_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="match one text in several ways"):
        compiled(pattern)


@pytest.mark.parametrize("pattern", USUAL)
def test_the_usual_ones_pass(pattern: str) -> None:
    assert compiled(pattern) == re.compile(pattern)


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(" * 5000 + ")" * 5000])
def test_what_is_not_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="is not valid"):
        compiled(pattern)
