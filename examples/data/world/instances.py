"""Instances: a survey, what its analyst knows and wants, and what they will come to want."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec

from ....engine.errors import InvalidInput
from ...kit.task import index_of
from ..facts import ADVISED, DEFAULTS, RULINGS, TABLES, Claim, Ruling, Rulings, Topic
from .generator import Survey, invent_survey
from .truth import Answers, Sums

__all__ = ("Instance", "Wants", "make_instance", "opened_by")

_AS_IT_LOOKS = 0.55  # share of the rulings that are what somebody would take for granted
_INTERESTS = 6
_DECIDED = 3  # of the interests, those that a ruling decides
_TREES = ((0, 0, 1, 2, 3), (0, 0, 1, 2, 2), (0, 0, 0, 1, 2))
"""For each interest after the first, which one opens it."""

_ATTENTION = (40, 60)  # words that a person takes in at a time
_STAMINA = (150, 330)  # and in all
_TRIES = 50


class Wants(msgspec.Struct, frozen=True):
    """What an analyst wants: to understand some topics, and to decide by one of them.

    Attributes:
        topics: in the order in which they came to want them.
        goal: the topic that their decision is about.
    """

    topics: tuple[Topic, ...]
    goal: Topic


class Instance(msgspec.Struct, frozen=True):
    """A survey with an analyst.

    Attributes:
        survey: the tables, and what was planted.
        rulings: what the analyst knows of how the data came about.
        truth: the true claims under these rulings.
        interests: all topics that the analyst may come to want; the first is the narrow question.
        opens: what the understanding of a topic opens.
        pivot: the interest whose understanding makes it what the decision is about; None for none.
        attention: words that the analyst takes in at a time.
        stamina: words that they take in altogether.
        seed: of wordings.
    """

    survey: Survey
    rulings: Rulings
    truth: Answers
    interests: tuple[Topic, ...]
    opens: Mapping[Topic, tuple[Topic, ...]]
    pivot: Topic | None
    attention: int
    stamina: int
    seed: int

    @property
    def first(self) -> Wants:
        """What the analyst wants at first."""
        return Wants(self.interests[:1], self.interests[0])


def opened_by(
    interests: tuple[Topic, ...],
    opens: Mapping[Topic, tuple[Topic, ...]],
    pivot: Topic | None,
    believed: Mapping[Topic, Claim],
) -> Wants:
    """What an analyst wants who believes something about some topics.

    What they believe need not be true: a mistaken answer raises further questions as well.
    """
    topics = [interests[0]]
    for topic in topics:  # grows as it goes
        if topic in believed:
            topics += [one for one in opens.get(topic, ()) if one not in topics]
    goal = pivot if pivot is not None and pivot in topics and pivot in believed else interests[0]
    return Wants(tuple(topics), goal)


def make_instance(seed: int, name: str) -> Instance:
    """The instance of a name under a seed.

    Raises:
        InvalidInput: names are numbers from 0.
    """
    index = index_of(name)
    for attempt in range(_TRIES):
        found = _attempt(Random(f"data/{seed}/{index}/{attempt}"))
        if found is not None:
            return found
    raise InvalidInput(f"no survey could be made for instance {name} of seed {seed}")


def _attempt(random: Random) -> Instance | None:
    """An instance, unless its patterns came out unclear."""
    survey = invent_survey(random)
    rulings: dict[Ruling, bool] = {
        ruling: DEFAULTS[ruling] == (random.random() < _AS_IT_LOOKS) for ruling in RULINGS
    }
    sums = Sums(survey.tables, survey.names)
    truth = sums.answers(rulings)
    decided = [
        topic
        for ruling, topic in survey.planted.items()
        if _differ(topic, truth, sums.answers({**rulings, ruling: not rulings[ruling]}))
    ]
    clear = [topic for topic in (*survey.patterns, *survey.decoys) if topic in truth]
    if len(decided) < len(RULINGS) or len(clear) < len(survey.patterns):
        return None
    interests = _interests(decided, clear, random)
    tree = random.choice(_TREES)
    opens = {
        topic: tuple(interests[i + 1] for i, parent in enumerate(tree) if parent == number)
        for number, topic in enumerate(interests)
    }
    later = [topic for topic in interests[2:] if topic.kind in ADVISED]
    return Instance(
        survey=survey,
        rulings=rulings,
        truth=truth,
        interests=interests,
        opens={topic: children for topic, children in opens.items() if children},
        pivot=random.choice(later) if later else None,
        attention=random.randint(*_ATTENTION),
        stamina=random.randint(*_STAMINA),
        seed=random.randrange(2**31),
    )


def _differ(topic: Topic, truth: Answers, other: Answers) -> bool:
    """Whether a topic has a clear answer, and a clear other one where a ruling is turned round."""
    if topic not in truth or topic not in other:
        return False
    return truth[topic].answer != other[topic].answer


def _interests(decided: list[Topic], clear: list[Topic], random: Random) -> tuple[Topic, ...]:
    """Topics that an analyst comes to want, one after the other."""
    chosen = random.sample(decided, _DECIDED)
    rest = [topic for topic in clear if topic not in chosen]
    channels = [topic for topic in rest if topic.kind == "channel"]
    chosen += channels[:1]
    rest = [topic for topic in rest if topic not in chosen] + [
        Topic("quality", table) for table in TABLES
    ]
    chosen += random.sample(rest, _INTERESTS - len(chosen))
    random.shuffle(chosen)
    first = next(i for i, topic in enumerate(chosen) if topic.kind in ADVISED)
    chosen.insert(0, chosen.pop(first))
    return tuple(chosen)
