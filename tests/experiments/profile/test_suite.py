"""A suite is frozen: a digest covers its design and its problems, and a secret makes another half."""

from __future__ import annotations

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.experiments.profile.suite import (
    SUITES,
    secret_seed,
    shortened,
    suite_digest,
    suite_named,
)


@pytest.mark.parametrize("name", SUITES)
def test_a_published_suite_has_not_changed(name: str) -> None:
    """If a task's problems had to change, publish a new suite (and keep the old file), or, before a
    release, write the new digest into the file."""
    suite = suite_named(name)
    assert suite_digest(suite) == suite.digest


def test_the_digest_depends_on_the_design_and_on_the_problems() -> None:
    suite = shortened(suite_named("suite-1"), ["tutoring"])
    digest = suite_digest(suite)
    for changes in ({"users": ("lazy",)}, {"seed": 5}, {"problems": 2}, {"rounds": 10}):
        assert suite_digest(msgspec.structs.replace(suite, **changes)) != digest
    assert suite_digest(msgspec.structs.replace(suite, digest="other")) == digest


def test_a_secret_gives_the_same_problems_each_time_and_others_than_another_secret() -> None:
    suite = suite_named("suite-1")
    assert secret_seed(suite, "ours") == secret_seed(suite, "ours") != suite.seed
    assert secret_seed(suite, "ours") != secret_seed(suite, "theirs")
    with pytest.raises(InvalidInput, match="secret of a suite is empty"):
        secret_seed(suite, " ")


def test_wrong_names_are_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidInput, match="unknown suite 'suite-9'"):
        suite_named("suite-9")
    with pytest.raises(InvalidInput, match="unknown task 'trvel' in suite-1"):
        shortened(suite_named("suite-1"), ["trvel"])
