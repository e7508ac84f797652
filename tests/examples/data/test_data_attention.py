"""How an analyst reads: what they notice or miss, understand and believe."""

from __future__ import annotations

from duolog.engine.events import ActionTaken
from duolog.examples.data.attention import OWN_ANALYSIS, Reading
from duolog.examples.data.facts import Claim, Names, Topic
from duolog.examples.data.report import say_advice, say_assumption, say_claim
from duolog.testing.records import RecordWriter

NAMES = Names("coffee", ("Eastvale", "Skerry"), ("Latte", "Mocha"))
BEST = Claim(Topic("favourite", "Eastvale"), "Mocha", 7.9, 64)
OTHER = Claim(Topic("favourite", "Eastvale"), "Latte", 8.1, 41)
DEAR = Claim(Topic("price", "Latte"), "Eastvale", 25.0, 8)
ONE_CHANNEL = Claim(Topic("channel", "Mocha"), "app", 2.9, 98)
CHART = "Chart of Mocha by channel: app ▇▇▇ 2.9, counter ▇ 0.1"


class Story:
    """A session that an analyst reads along."""

    def __init__(self, attention: int = 40, stamina: int = 200) -> None:
        self.script = RecordWriter()
        self.reading = Reading(NAMES, attention, stamina)
        self.reading.feed(self.script.opened())

    def report(self, *lines: str) -> None:
        self.reading.feed(self.script.output("\n".join(lines)))

    def agent(self, text: str) -> None:
        self.reading.feed(self.script.agent(text))

    def human(self, text: str = "Go on.") -> Reading:
        self.reading.feed(self.script.human(text))
        return self.reading


def believed(reading: Reading) -> dict[Topic, str]:
    return {topic: claim.answer for topic, claim in reading.believed.items()}


def test_they_believe_what_they_notice_when_they_look_and_not_before() -> None:
    story = Story()
    story.report(say_claim(BEST))
    assert believed(story.reading) == {}
    ahead = story.reading.copy()
    ahead.catch_up()
    assert believed(ahead) == {BEST.topic: "Mocha"}
    assert believed(story.reading) == {}
    assert believed(story.human()) == {BEST.topic: "Mocha"}


def test_what_is_buried_goes_unnoticed_wrong_assumptions_too() -> None:
    story = Story(attention=20)
    prose = "We have looked into everything, in all detail, and here is all that there is to say."
    story.report(prose, say_claim(BEST), say_assumption("pilot", holds=True), say_claim(DEAR))
    reading = story.human()
    assert believed(reading) == {}
    assert reading.assumed == {}
    assert len(reading.unread) == 3
    story.agent("Have a look.")  # the unread rest is read at the next look
    assert believed(story.human()) == {BEST.topic: "Mocha"}


def test_messages_are_read_first_and_can_state_something_themselves() -> None:
    story = Story(attention=16)
    story.report(say_claim(BEST))
    story.agent(f"Well, here it is. {say_claim(DEAR)}")
    assert believed(story.human()) == {DEAR.topic: "Eastvale"}


def test_lines_that_were_read_cost_nothing_again() -> None:
    story = Story(attention=15)
    story.report(say_claim(BEST))
    left = story.human().left
    story.report(say_claim(BEST), say_claim(DEAR))
    assert believed(story.human()) == {BEST.topic: "Mocha", DEAR.topic: "Eastvale"}
    assert left - story.reading.left == len(say_claim(DEAR).split())


def test_they_tire() -> None:
    story = Story(stamina=14)
    story.report(say_claim(BEST))
    story.human()
    story.report(say_claim(DEAR))
    assert believed(story.human()) == {BEST.topic: "Mocha"}


def test_of_two_findings_they_believe_the_one_that_they_noticed_last() -> None:
    story = Story()
    story.report(say_claim(BEST))
    story.human()
    story.report(say_claim(OTHER))
    assert believed(story.human()) == {BEST.topic: "Latte"}


def test_an_interaction_is_understood_beside_its_chart() -> None:
    story = Story()
    story.report(say_claim(ONE_CHANNEL))
    assert set(story.human().puzzling) == {ONE_CHANNEL.topic}
    assert believed(story.reading) == {}
    story.report(say_claim(ONE_CHANNEL), CHART)
    assert believed(story.human()) == {ONE_CHANNEL.topic: "app"}
    assert not story.reading.puzzling


def test_an_assumption_counts_as_long_as_it_stands() -> None:
    story = Story()
    story.report(say_claim(BEST), say_assumption("pilot", holds=True))
    assert story.human().assumed == {"pilot": True}
    story.report(say_claim(BEST))
    assert story.human().assumed == {}


def test_they_believe_what_they_found_out_themselves_at_the_cost_of_the_work() -> None:
    story = Story()
    story.reading.feed(story.script.human(ActionTaken(name="Query")))
    story.reading.feed(
        story.script.output(f"{say_claim(ONE_CHANNEL)}\n{say_claim(BEST)}", by="human")
    )
    assert set(believed(story.reading)) == {ONE_CHANNEL.topic, BEST.topic}
    assert story.reading.left == 200 - OWN_ANALYSIS


def test_the_recommendation_noticed_last_is_the_one_that_counts() -> None:
    story = Story()
    story.report(say_advice((BEST.topic, "Mocha")))  # type: ignore[arg-type]
    story.human()
    story.report(say_advice((DEAR.topic, "Eastvale")))  # type: ignore[arg-type]
    assert story.human().advice == (DEAR.topic, "Eastvale")
