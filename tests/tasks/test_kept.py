"""Rules read a view once for each decision."""

from __future__ import annotations

from duolog.engine.events import MessageSent
from duolog.engine.session.view import View
from duolog.tasks.views import Kept
from duolog.testing import by, records_of


def test_what_is_made_of_a_view_is_made_again_for_each_decision_and_record_and_for_another_view() -> (
    None
):
    made: list[View] = []

    def make(view: View) -> int:
        made.append(view)
        return len(made)

    kept = Kept(make)
    view, other = View("agent", "agent"), View("agent", "agent")
    assert [kept.on(view), kept.on(view)] == [1, 1]
    view.next_decision((), None, idle=True)
    assert [kept.on(view), kept.on(view)] == [2, 2]
    view.feed(records_of(by("human", MessageSent(text="a word")))[0])
    assert [kept.on(view), kept.on(view)] == [3, 3]
    assert [kept.on(other), kept.on(other)] == [4, 4]
    assert made == [view, view, view, other]
