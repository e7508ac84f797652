"""The mind of a simulated user on a model: its part, its choices, its words, its ratings."""

from __future__ import annotations

import pytest
from asked import Answers, calls, conversation
from duolog.engine.codec import digest
from duolog.engine.events import (
    JSON,
    ApprovalAsked,
    Event,
    MessageSent,
    Participant,
    SessionOpened,
    SnapshotTaken,
)
from duolog.engine.models.prompting.conversation import ModelUse
from duolog.engine.records import Draft
from duolog.engine.session.decisions import (
    NOTHING,
    Act,
    Approve,
    Decision,
    Finish,
    Rate,
    Say,
    Submit,
)
from duolog.engine.session.environment import ActionSpec
from duolog.engine.session.view import View, Visibility
from duolog.engine.task import Brief
from duolog.testing import by, records_of
from duolog.users.cognition.mind import LimitedMind
from duolog.users.model_mind import ModelUserMind, profile_text, prompt_digest
from duolog.users.personas import PERSONAS, Persona, find_persona
from duolog.users.simulated import SimulatedUser, UserIntent

BRIEF = Brief(description="Cook dinner.", output="A menu, one dish a line.")
SECRET = "Cannot stand coriander"
OPENED = SessionOpened(
    task="dinner",
    instance="1",
    participants=(Participant(name="ann", role="human"), Participant(name="bot", role="agent")),
    clock="virtual",
    private={"ann": {"profile": [SECRET, "Loves soup"]}},
)
ASKED = by("human", MessageSent(text="Dinner, please."), actor="ann")
MENU = by("agent", SnapshotTaken(content="Curry", digest=digest("Curry")), actor="bot")
LEAVE = by("agent", ApprovalAsked(question="May I?"), actor="bot")
QUESTION = by("agent", MessageSent(text="What do you like?"), actor="bot")
PROACTIVE, FEEDBACK, LAZY = (PERSONAS[name] for name in ("proactive", "feedback", "lazy"))
VAGUE = Persona(name="vague", description="always vague", vague=1.0, gives_feedback=False)


def view(*facts: Event | Draft) -> View:
    taste = ActionSpec(name="taste", description="Taste a dish.")
    visibility, seen = Visibility("ann"), View("ann", "human", actions_available={"taste": taste})
    for record in records_of(OPENED, ASKED, *facts):
        visible = visibility.see(record)
        if visible is not None:
            seen.feed(visible)
    seen.next_decision((), None, False)
    return seen


def mind(answers: Answers, use: ModelUse | None = None) -> ModelUserMind:
    return ModelUserMind(conversation(answers, use), BRIEF)


async def test_its_part_is_told_with_the_profile() -> None:
    answers = Answers("1")
    assert await mind(answers).choose(view(QUESTION), PROACTIVE) == "answer"
    [prompt] = answers.prompts
    for part in (
        "You play ann, a person",
        "bot (agent)",
        "- Cannot stand coriander\n- Loves soup",
        "Dinner, please.",
        "[3] bot: What do you like?",
        "change the output yourself",
    ):
        assert part in prompt
    assert answers.purposes == ["choose"]


async def test_a_limited_user_is_shown_what_it_took_in_and_told_what_limits_it() -> None:
    long = by("agent", MessageSent(text="One two three. Four five six. Seven?"), actor="bot")
    skims = find_persona(
        "feedback+attention=2+skims=0+understanding=0.5+misreads=0.1+trust_loss=0.5"
    )
    answers = Answers("1")
    await LimitedMind(mind(answers), skims.cognition).choose(view(long), skims)
    [prompt] = answers.prompts
    assert "bot: One two three. […]" in prompt
    assert "Seven?" not in prompt
    for line in ("no longer remember it", "misread one", "new to you", "you look twice"):
        assert line in prompt
    await mind(again := Answers("1")).choose(view(long), FEEDBACK)
    assert "no longer remember it" not in again.prompts[0]


@pytest.mark.parametrize("persona", PERSONAS.values(), ids=lambda persona: persona.name)
@pytest.mark.parametrize(
    ("facts", "offered"),
    [
        (
            [QUESTION, MENU],
            ["Answer", "Offer feedback", "Take an action", "Finish", "Do nothing"],
        ),
        ([QUESTION], ["Answer", "Offer feedback", "Take an action", "Do nothing"]),
        ([MENU], ["Offer feedback", "Take an action", "Finish", "Do nothing"]),
        ([], ["Offer feedback", "Take an action", "Do nothing"]),
        ([LEAVE], ["Answer", "Offer feedback", "Take an action", "Do nothing"]),
    ],
)
async def test_every_persona_is_offered_the_five_decisions_of_the_paper_and_may_give_up(
    persona: Persona, facts: list[Draft], offered: list[str]
) -> None:
    """Users cannot be content before there is an output, or answer before anything was said; they can
    always walk away.
    """
    offered = [*offered, "Give up"]
    answers = Answers(str(len(offered)), "Do nothing")
    assert await mind(answers).choose(view(*facts), persona) == "leave"
    assert await mind(answers).choose(view(*facts), persona) == "nothing"
    listed = [f"{n}. {title}: " for n, title in enumerate(offered, start=1)]
    assert all(line in answers.prompts[0] for line in listed)
    explained = answers.prompts[0].partition("How to choose:")[2]
    titles = ("Answer", "Offer feedback", "Take an action", "Finish", "Do nothing", "Give up")
    assert [title for title in titles if f"- {title} " in explained] == offered
    assert f"{len(offered) + 1}. " not in answers.prompts[0]


@pytest.mark.parametrize(
    ("reply", "intent"),
    [
        ("2", "feedback"),
        ("4. Finish", "finish"),
        ("Choice: 5", "nothing"),
        ("6. Give up", "leave"),
        ("do nothing", "nothing"),
    ],
)
async def test_its_choice_is_read(reply: str, intent: UserIntent) -> None:
    assert await mind(Answers(reply)).choose(view(QUESTION, MENU), PROACTIVE) == intent


async def test_a_choice_that_cannot_be_read_is_to_do_nothing() -> None:
    answers = Answers("Either 1 or 2", "I would finish: 4?", "three")
    asked = conversation(answers)
    assert await ModelUserMind(asked, BRIEF).choose(view(MENU), PROACTIVE) == "nothing"
    assert asked.gave_up is not None


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("I like soup.", "I like soup."),
        ('"I like soup."', "I like soup."),
        ("Answer: I like soup.\nAnd curry.", "I like soup. And curry."),
        ('"Soup" is fine, "curry" is not', '"Soup" is fine, "curry" is not'),
        ("<think>lie?</think>Soup!", "Soup!"),
    ],
)
async def test_its_message_is_one_line_without_wrapping(reply: str, text: str) -> None:
    answers = Answers(reply)
    decision = await mind(answers).compose(view(QUESTION), PROACTIVE, "answer")
    assert decision == Decision((Say(text),))
    assert answers.purposes == ["answer"]
    for rule in (
        "Tell only what you were asked for",
        "Never make anything up",
        "Never copy a sentence",
    ):
        assert rule in answers.prompts[0]


async def test_a_vague_person_is_vague() -> None:
    answers = Answers("Whatever.", "Not quite it.", "Make it good.")
    asked = mind(answers)
    await asked.compose(view(QUESTION), VAGUE, "answer")
    await asked.compose(view(MENU), VAGUE, "feedback")
    await asked.compose(view(), VAGUE, "feedback")  # there is nothing yet to be vague about
    assert ["cannot be bothered" in prompt for prompt in answers.prompts] == [True, True, False]


async def test_how_often_it_is_vague_is_drawn_from_the_seed() -> None:
    def drawn() -> list[bool]:
        seen = view(QUESTION)
        found = []
        for _ in range(40):
            seen.next_decision((), None, False)
            found.append(seen.random.random() < LAZY.vague)
        return found

    assert drawn() == drawn()
    assert 4 <= sum(drawn()) <= 28


async def test_feedback_is_told_in_a_line() -> None:
    answers = Answers("No coriander please")
    decision = await mind(answers).compose(view(MENU), FEEDBACK, "feedback")
    assert decision == Decision((Say("No coriander please"),))


@pytest.mark.parametrize("as_text", [False, True])
async def test_it_acts_through_the_same_action_space(as_text: bool) -> None:
    act = (
        'Thought: hm\nAction: {"name": "taste", "arguments": {}}'
        if as_text
        else calls(("taste", ""))
    )
    edit = calls(("submit", '{"content": "Soup"}'))
    answers = Answers(act, edit)
    asked = mind(answers, ModelUse(model="m", text_actions=as_text))
    assert await asked.compose(view(MENU), PROACTIVE, "act") == Decision((Act("taste", {}),))
    if as_text:
        assert "- submit: " in answers.prompts[0]
        assert answers.requests[0].tools == ()
    else:
        assert [tool.name for tool in answers.requests[0].tools] == ["taste", "submit"]
        assert await asked.compose(view(MENU), PROACTIVE, "act") == Decision((Submit("Soup"),))


async def test_an_approval_that_is_asked_for_is_answered_as_one() -> None:
    ask = by("agent", ApprovalAsked(question="Buy soup?", action="buy"), actor="bot")
    answers = Answers(calls(("approve", '{"approved": true, "comment": "Yes"}')))
    decision = await mind(answers).compose(view(ask), PROACTIVE, "answer")
    assert decision == Decision((Approve(3, True, "Yes"),))
    assert [tool.name for tool in answers.requests[0].tools] == ["approve"]
    assert "asks for approval in [3]: Buy soup?" in answers.prompts[0]


async def test_finishing_needs_no_words() -> None:
    answers = Answers()
    decision = await mind(answers).compose(view(MENU), PROACTIVE, "finish")
    assert isinstance(decision.verbs[0], Finish)
    assert answers.requests == []


async def test_giving_up_needs_no_words_and_no_output() -> None:
    answers = Answers("leave it", "Give up", "1\nNothing came of it.")
    user = SimulatedUser(mind(answers), PROACTIVE)
    decision = await user.decide(view(QUESTION))
    assert decision.verbs == (Rate(1, "Nothing came of it."), Finish("gives up", "abandoned"))
    assert answers.purposes == ["choose", "choose again", "rate"]


async def test_words_that_cannot_be_read_are_not_said() -> None:
    answers = Answers("", " ", "<think>?</think>")
    assert await mind(answers).compose(view(QUESTION), PROACTIVE, "answer") == NOTHING


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("4", Rate(4)),
        ("Rating: 2/5\nNo soup.", Rate(2, "No soup.")),
        ("5. Very much", Rate(5, "Very much")),
    ],
)
async def test_its_rating_is_read(reply: str, rating: Rate) -> None:
    answers = Answers(reply)
    assert await mind(answers).rate(view(QUESTION), PROACTIVE) == rating
    assert answers.purposes == ["rate"]


async def test_a_rating_is_never_guessed() -> None:
    answers = Answers("3 or 4", "good", "")
    assert await mind(answers).rate(view(QUESTION), PROACTIVE) is None


async def test_it_plays_a_simulated_user_from_choice_to_rating() -> None:
    answers = Answers("1", "Soup.", "4\nIt asks.")
    user = SimulatedUser(mind(answers), PROACTIVE)
    assert (await user.decide(view(QUESTION))).verbs == (Rate(4, "It asks."), Say("Soup."))
    assert answers.purposes == ["choose", "answer", "rate"]


def test_profiles_are_told_in_lines() -> None:
    assert profile_text(None) == ""
    assert profile_text("soup") == "soup"
    assert profile_text(["soup", 3]) == "- soup\n- 3"
    assert profile_text({"profile": ["soup"]}) == "- soup"
    assert profile_text({"profile": ["soup"], "numbers": {"salt": 0.2}}) == "- soup"
    assert profile_text({"dish": "soup", "hot": True}) == "- dish: soup\n- hot: true"
    two: JSON = {"profile": ["soup", "no salt"], "second thoughts": ["After a walk: stew"]}
    changes = "What may change your mind:\n- After a walk: stew"
    assert profile_text(two) == f"- soup\n- no salt\n\n{changes}"


def test_the_digest_tells_briefs_apart() -> None:
    other = Brief(description="Cook lunch.", output=BRIEF.output)
    assert prompt_digest(BRIEF) != prompt_digest(other)
