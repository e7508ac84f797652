"""The history of an input: it keeps sent messages and the unfinished one."""

from __future__ import annotations

from duolog.cli.chat.composer import History


def test_back_and_forward_among_what_was_sent() -> None:
    history = History()
    for line in ("one", "two", "two", ""):
        history.add(line)
    assert history.back("draft") == "two"
    assert history.back("two") == "one"
    assert history.back("one") is None
    assert history.forward("one") == "two"
    assert history.forward("two") == "draft"
    assert history.forward("draft") is None


def test_what_is_changed_on_the_way_is_kept_until_a_line_is_sent() -> None:
    history = History()
    history.add("one")
    history.back("draft")
    assert history.forward("one, changed") == "draft"
    assert history.back("draft") == "one, changed"
    history.add("one, changed")
    assert history.back("") == "one, changed"
    assert history.back("one, changed") == "one"


def test_what_an_earlier_run_sent_is_older_than_what_is_written() -> None:
    history = History()
    history.add("here")
    history.restore(["first", "second"])
    assert [history.back("draft"), history.back("here"), history.back("second")] == [
        "here",
        "second",
        "first",
    ]
