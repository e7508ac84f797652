"""A toy task on the kit, whole: a florist and a customer make a bouquet; only one knows which."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON, SessionOpened, SnapshotTaken
from duolog.engine.scorers.protocol import Scorer
from duolog.engine.session.decisions import Act, ChangeProfile, Decision, Submit
from duolog.engine.session.view import View
from duolog.engine.task import Brief
from duolog.scoring.scorers.utility import Score, SnapshotUtility
from duolog.tasks.actions import ActionTable, action
from duolog.tasks.kit import BestOutput, Case, KitTask, TaskSpec, index_of
from duolog.tasks.phrases import Patterns, Phrases
from duolog.tasks.rule_agent import Question, RuleAgent, Standing
from duolog.tasks.rule_user import HumanAlone, Person, RuleUser, changing
from duolog.tasks.views import changes, drafted_on, outcomes, output_before, own_messages
from duolog.users.judgement import LIKELY, Felt, compare
from duolog.users.personas import Persona

FLOWERS = ("aster", "daisy", "iris", "lily", "rose", "tulip")
WANTED = 3

PHRASES = Phrases(
    {
        "wish": ("I would love a {flower}.", "please put in a {flower}.", "a {flower}, perhaps."),
        "no": ("nothing else.", "that is all that I can think of."),
        "which": ("which flowers do you like?", "what flowers should be in it?"),
    },
    openings=("", "well, "),
)
PATTERNS = Patterns(
    {
        "wish": rf"\b(?P<flower>{'|'.join(FLOWERS)})\b",
        "no": r"\bnothing else\b|\bthat is all\b",
        "which": r"\bflowers\b",
    }
)


class Garden(msgspec.Struct, frozen=True):
    """The flowers of a garden, and those that the customer wants."""

    stock: dict[str, int]
    wanted: tuple[str, ...]


class Count(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Count the stems of a flower in stock."""

    flower: str


def count(garden: Garden, asked: Count) -> JSON:
    if asked.flower not in garden.stock:
        raise InvalidInput(
            f"unknown flower {asked.flower!r}; choose from {', '.join(garden.stock)}"
        )
    return garden.stock[asked.flower]


def wanted_by(profile: JSON) -> tuple[str, ...]:
    sentences = profile["profile"] if isinstance(profile, Mapping) else ()
    assert isinstance(sentences, list | tuple)
    return tuple(str(sentence).split()[-1] for sentence in sentences)


ACTIONS = ActionTable([action(Count, count, seconds=2.0)])


def case(name: str, seed: int) -> Case[Garden]:
    random = Random(f"{seed}/{index_of(name)}")
    wanted = tuple(random.sample(FLOWERS, WANTED))
    return Case(
        request="A bouquet, please.",
        private={"profile": [f"Fond of the {flower}" for flower in wanted]},
        world=Garden({flower: random.randint(1, 9) for flower in FLOWERS}, wanted),
    )


def utility(garden: Garden) -> Scorer:
    """The flowers wanted by now and in it, of those wanted or in it."""

    def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score:
        there = set(str(snapshot.content).split(", ")) - {""}
        wanted = wanted_by(opened.private.get("user")) or garden.wanted
        worth = len(there & {*wanted}) / len(there | {*wanted})
        return Score(worth, {flower: float(flower in there) for flower in wanted})

    return SnapshotUtility("bouquet", "1", score)


class Known(msgspec.Struct, frozen=True):
    wishes: tuple[str, ...]
    drafted: tuple[str, ...] | None
    counted: bool
    asked: int
    all_said: bool


class Florist:
    """Counts the first flower, guesses one if it knows nothing, and adds the flowers it is asked for."""

    def know(self, view: View) -> Known:
        def wishes(until: int | None) -> tuple[str, ...]:
            return tuple(
                heard.fields["flower"]
                for one in view.messages
                if one.role == "human" and (until is None or one.version <= until)
                for heard in PATTERNS.read(one.text)
                if heard.key == "wish"
            )

        drafted = drafted_on(view)
        said = [one.text for one in view.messages if one.role == "human"]
        return Known(
            wishes=wishes(None),
            drafted=None if drafted is None else wishes(drafted),
            counted=bool(outcomes(view)),
            asked=sum("?" in text for text in own_messages(view)),
            all_said=any(heard.key == "no" for text in said for heard in PATTERNS.read(text)),
        )

    def work(self, known: Known, view: View) -> Decision | None:
        if known.wishes == known.drafted:
            return None
        if not known.counted:
            return Decision((Act("Count", {"flower": FLOWERS[0]}),))
        return Decision((Submit(", ".join(dict.fromkeys(known.wishes or FLOWERS[:1]))),))

    def question(self, known: Known, words: Random) -> Question | None:
        if known.all_said:
            return None
        return Question(PHRASES.say("which", words), first=len(known.wishes) < 1 > known.asked)

    def estimate(self, known: Known) -> float:
        return min(1.0, len(known.wishes) / WANTED)

    def report(self, known: Known, words: Random, standing: Standing) -> str:
        return f"There is a {known.wishes[-1]} in it." if known.wishes else "A beginning is made."


class Mood(msgspec.Struct, frozen=True):
    wanted: tuple[str, ...]
    output: str
    said: int
    changed: bool

    def missing(self, output: str) -> list[str]:
        return [flower for flower in self.wanted if flower not in output]

    def met(self, output: str) -> dict[str, float]:
        """How likely an output has each flower."""
        return {flower: LIKELY if flower in output else 0.0 for flower in self.wanted}


class Customer:
    """Misses one flower after the other."""

    def see(self, view: View, profile: JSON) -> Mood:
        wanted = wanted_by(profile)
        return Mood(wanted, view.snapshot_text, len(own_messages(view)), changes(view) > 0)

    def wrong(self, state: Mood, output: str) -> float:
        return float(len(state.missing(output)))

    def comment(self, state: Mood, persona: Persona, words: Random) -> str | None:
        missing = state.missing(state.output)
        return PHRASES.say("wish", words, flower=missing[0]) if missing else None

    def answer(self, state: Mood, question: str, persona: Persona, words: Random) -> str:
        return self.comment(state, persona, words) or PHRASES.say("no", words)

    def work(self, state: Mood, persona: Persona, words: Random) -> Decision | None:
        return None

    def content(self, state: Mood, persona: Persona) -> bool:
        patience = 3 if persona.contentment < 1 else 9
        return not state.missing(state.output) or state.said > patience

    def rate(self, state: Mood, view: View) -> Felt | None:
        before = output_before(view)
        return compare(state.met(before), state.met(state.output), changed=before != state.output)

    def change(self, state: Mood) -> ChangeProfile | None:
        """A customer who sees asters in the bouquet begins to like them, once."""
        if state.changed or FLOWERS[0] not in state.output or FLOWERS[0] in state.wanted:
            return None
        profile = [f"Fond of the {flower}" for flower in (*state.wanted[:-1], FLOWERS[0])]
        return ChangeProfile({"profile": profile}, "they saw asters in it")

    def alone(self, state: Mood, words: Random) -> Decision | None:
        missing = state.missing(state.output)
        if not missing:
            return None
        return Decision((Submit(", ".join([*filter(None, [state.output]), missing[0]])),))


def best_output(name: str, seed: int) -> BestOutput:
    return BestOutput(1.0, ", ".join(case(name, seed).world.wanted))


def person() -> Person[Mood]:
    return Customer()


SPEC = TaskSpec(
    name="bouquet",
    description="make a bouquet together: only the customer knows what should be in it",
    brief=Brief(description="Make a bouquet.", output="Names of flowers, with commas."),
    case=case,
    environment=ACTIONS.environment,
    utility=utility,
    agent=lambda habits: RuleAgent(Florist()),
    user=lambda: RuleUser(person()),
    alone=lambda: HumanAlone(person()),
    changing=lambda: changing(person()),
    best_output=best_output,
)


def bouquet_task() -> KitTask[Garden]:
    """The toy."""
    return KitTask(SPEC)
