"""The screen of ``duolog chat``, driven by Textual's pilot: a person and an agent in a real session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from duolog.cli.chat.composer import Composer
from duolog.cli.chat.screen import ScreenSeat
from duolog.engine.errors import SessionInterrupted
from duolog.engine.events import (
    ApprovalGiven,
    MessageSent,
    ProgressRated,
    SessionClosed,
    SnapshotTaken,
)
from duolog.engine.log.open import MemoryLog
from duolog.engine.session.actors import playing
from duolog.engine.session.decisions import NOTHING, Act, Ask, Decision, Finish, Say, Submit
from duolog.engine.session.time.clock import RealClock
from duolog.engine.session.time.timing import Timing
from duolog.engine.session.view import View
from duolog.experiments.chat import play_followed
from duolog.testing import Workshop, a_session, agent, human, streams
from duolog.users.person import Person
from textual.events import Key
from textual.geometry import Size
from textual.pilot import Pilot

pytestmark = pytest.mark.slow

SMALL, LARGE = (80, 24), (120, 40)

AT_ONCE = Timing(
    read_wpm=1e9, type_wpm=1e9, human_step=0.0, agent_step=0.0, agent_tps=1e9, action=0.0
)

PLANS = ("Day 1: Rome\nDay 2: Pisa", "Day 1: Rome\nDay 2: Siena\nDay 3: Pisa")


class Obliging:
    """Does what the last message names, and says what it heard otherwise."""

    def __init__(self) -> None:
        self._drafts = 0

    async def decide(self, view: View) -> Decision:
        heard = [record for record in view.news if record.actor != view.me]
        said = [r.event.text for r in heard if isinstance(r.event, MessageSent)]
        if not said:
            return NOTHING
        match said[-1]:
            case "draft":
                self._drafts += 1
                return Decision((Submit(PLANS[self._drafts - 1], overwrite=True),))
            case "ask":
                return Decision((Ask("May I book it?"),))
            case "search":
                return Decision((Act("search", {"of": "flights"}),))
            case "end":
                return Decision((Finish("nothing is left to do"),))
            case text:
                return Decision((Say(f"You said {text}."),))


class Chat:
    """A running chat: its visible text and its keys."""

    def __init__(self, seat: ScreenSeat, pilot: Pilot[int], log: MemoryLog) -> None:
        self.seat = seat
        self.pilot = pilot
        self.log = log

    @property
    def lines(self) -> list[str]:
        """The screen, line by line, without colours."""
        screen = self.seat.app.screen
        strips = screen._compositor.render_strips(Size(*screen.size))
        return [strip.text for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def typed(self) -> str:
        return self.seat.app.query_one(Composer).text

    async def until(self, *texts: str) -> None:
        """Waits until all of these are shown."""
        await self.holds(lambda: all(text in self.text for text in texts))

    async def holds(self, what: Callable[[], object]) -> None:
        with anyio.move_on_after(120):
            while not what():
                await self.pilot.pause(0.01)
        assert what(), self.text

    async def send(self, *lines: str) -> None:
        for line in lines:
            self.seat.app.query_one(Composer).put(line)
            await self.pilot.press("enter")

    async def events(self, kind: type[object]) -> list[object]:
        trace = (await streams(self.log, "chat"))["trace"]
        return [record.event for record in trace if isinstance(record.event, kind)]


@asynccontextmanager
async def chatting(size: tuple[int, int] = LARGE) -> AsyncIterator[Chat]:
    """A person at a screen, with an agent that obliges."""
    seat = ScreenSeat()
    person = Person(seat)
    played = a_session(
        human(person.live),
        agent(playing(Obliging())),
        clock=RealClock(),
        seed=None,
        timing=AT_ONCE,
        environment=Workshop(),
        id="chat",
    )

    async with MemoryLog() as log:

        async def play() -> str | None:
            try:
                result = await play_followed(log, played, seat, (1, 2))
            except SessionInterrupted:
                return None
            return None if person.finished else f"The session is {result.reason}."

        async with (
            seat.app.run_test(size=size) as pilot,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(seat.run, play)
            chat = Chat(seat, pilot, log)
            await chat.until("Round 1")
            yield chat
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_it_shows_the_conversation_and_the_output_with_what_changed(
    size: tuple[int, int],
) -> None:
    async with chatting(size) as chat:
        await chat.send("Hello")
        await chat.until("you: Hello", "agent: You said Hello.")
        await chat.send("draft")
        await chat.until("by agent (first version)", "  Day 2: Pisa")
        assert "+ Day" not in chat.text
        await chat.send("draft")
        await chat.until("(+2 −1 lines)", "- Day 2: Pisa", "+ Day 2: Siena", "  Day 1: Rome")
        assert all(len(line) <= size[0] for line in chat.lines)
        assert len(chat.lines) == size[1]


async def test_what_is_typed_stays_while_the_agent_acts() -> None:
    async with chatting() as chat:
        await chat.send("draft")
        await chat.pilot.press(*"half a thought")
        await chat.until("submits the first version")
        assert chat.typed == "half a thought"
        await chat.pilot.press(*", and more", "enter")
        await chat.until("you: half a thought, and more")
        assert chat.typed == ""


async def test_a_message_of_several_lines_and_one_that_wraps() -> None:
    async with chatting(SMALL) as chat:
        await chat.pilot.press(*"one", "ctrl+j", *"two")
        assert chat.typed == "one\ntwo"
        await chat.pilot.press("enter")
        await chat.until("you: one")
        long = "word " * 30 + "end"
        chat.seat.app.query_one(Composer).put(long)
        await chat.until("word end")
        assert all(len(line) <= SMALL[0] for line in chat.lines)
        await chat.pilot.press("enter")
        await chat.until("you: word")
        said = await chat.events(MessageSent)
        texts = [event.text for event in said if isinstance(event, MessageSent)]
        assert "one\ntwo" in texts
        assert long in texts


async def test_what_was_sent_comes_back() -> None:
    async with chatting() as chat:
        await chat.send("first", "second")
        await chat.pilot.press(*"third")
        await chat.pilot.press("up")
        assert chat.typed == "second"
        await chat.pilot.press("up", "up")
        assert chat.typed == "first"
        await chat.pilot.press("down", "down", "down")
        assert chat.typed == "third"


@pytest.mark.parametrize(
    ("keys", "typed"),
    [
        (["left", "left", "X"], "one two thrXee"),
        (["ctrl+left", "X"], "one two Xthree"),
        (["alt+b", "alt+b", "alt+f", "X"], "one twoX three"),
        (["home", "X", "end", "Y"], "Xone two threeY"),
        (["ctrl+w"], "one two "),
        (["ctrl+w", "ctrl+w", "X"], "one X"),
        (["home", "alt+d", "X"], "X two three"),
        (["ctrl+u"], ""),
        (["home", "ctrl+right", "ctrl+k"], "one"),
        (["backspace", "home", "delete"], "ne two thre"),
        (["home", "ctrl+d"], "ne two three"),
        (["ctrl+w", "ctrl+z"], "one two three"),
    ],
)
async def test_keys_that_edit(keys: list[str], typed: str) -> None:
    async with chatting() as chat:
        await chat.pilot.press(*"one two three", *keys)
        assert chat.typed == typed


async def test_keys_that_come_at_once_act_in_their_order() -> None:
    """A paste, and a terminal over a slow line, deliver many keys in one piece."""
    async with chatting() as chat:
        composer = chat.seat.app.query_one(Composer)
        for key, character in [*((c, c) for c in "what"), ("ctrl+u", "\x15"), ("a", "a")]:
            composer.post_message(Key(key, character))
        await chat.pilot.pause()
        assert chat.typed == "a"


async def test_a_command_is_completed_and_explained() -> None:
    async with chatting() as chat:
        await chat.pilot.press("/")
        await chat.until("edit  submit  do  actions  yes  no  rate")
        await chat.pilot.press("r")
        await chat.until("rate  retry")
        await chat.pilot.press("a")
        await chat.until("/rate 1..5 [WHY]: rate the progress")
        await chat.pilot.press("tab")
        assert chat.typed == "/rate "
        await chat.pilot.press("ctrl+u", *"/do s", "tab")
        assert chat.typed == "/do search "


async def test_a_rating_shows_its_round_and_brings_advice_to_stop() -> None:
    async with chatting() as chat:
        await chat.send("Hello")
        await chat.until("You said Hello.")
        await chat.send("/rate 1 no use")
        await chat.until("You rated round 1: 1/5: no use")
        [rated] = await chat.events(ProgressRated)
        assert isinstance(rated, ProgressRated)
        assert rated.round == 1
        await chat.send("Again")
        await chat.until("■ Advice to stop after round 1: 1 round rated")
        await chat.until("You said Again.", "■ Advice to stop: τ = 1 (round 1)")
        await chat.send("/rate 2")
        await chat.until("You rated round 2: 2/5")
        await chat.send("And again")
        await chat.until("τ = 1 (round 1), τ = 2 (round 2)")


@pytest.mark.parametrize(("answer", "approved"), [("/yes", True), ("/no not yet", False)])
async def test_an_approval_is_asked_for_and_answered(answer: str, approved: bool) -> None:
    async with chatting() as chat:
        await chat.send("ask")
        await chat.until("? agent asks: May I book it?", "/yes or /no")
        await chat.send(answer)
        await chat.holds(lambda: "? agent asks" not in chat.text)
        [given] = await chat.events(ApprovalGiven)
        assert isinstance(given, ApprovalGiven)
        assert given.approved is approved


async def test_an_action_in_flight_is_shown() -> None:
    async with chatting() as chat:
        await chat.send("search")
        await chat.until("agent is at work: search(of=flights) …")


@pytest.mark.parametrize("command", ["/help", None])
async def test_help_shows_commands_and_keys(command: str | None) -> None:
    async with chatting() as chat:
        if command is None:
            await chat.pilot.press("f1")
        else:
            await chat.send(command)
        await chat.until("/rate 1..5 [WHY]", "Ctrl+J begins a new line")


async def test_the_output_scrolls_and_can_have_the_whole_screen() -> None:
    async with chatting(SMALL) as chat:
        await chat.send("/submit /nowhere/at/all")
        await chat.until("cannot read")
        await chat.send("draft")
        await chat.until("Day 2: Pisa")
        await chat.pilot.press("ctrl+o")
        await chat.holds(lambda: "conversation" not in chat.text)
        assert "Day 2: Pisa" in chat.text
        await chat.pilot.press("pageup", "pagedown", "ctrl+o", "ctrl+up", "ctrl+down")
        await chat.until("conversation", "Day 2: Pisa")


@pytest.mark.parametrize("size", [(20, 8), (40, 12), (99, 24), (100, 24), (300, 80)])
async def test_it_takes_any_size(size: tuple[int, int]) -> None:
    async with chatting(SMALL) as chat:
        await chat.send("Hello", "draft")
        await chat.until("Day 2: Pisa")
        await chat.pilot.press(*"typed")
        await chat.pilot.resize_terminal(*size)
        await chat.until("typed")
        assert all(len(line) <= size[0] for line in chat.lines)
        beside = any("conversation" in line and "output" in line for line in chat.lines)
        assert beside == (size[0] >= 100)


async def test_a_name_or_text_is_shown_as_it_is() -> None:
    async with chatting() as chat:
        await chat.send("[red]x[/] \x1b[31m 漢字")
        await chat.until("you: [red]x[/] [31m 漢字")


async def test_an_end_by_somebody_else_stays_on_the_screen_until_it_is_read() -> None:
    async with chatting() as chat:
        await chat.send("end")
        await chat.until("ends the session: nothing is left to do")
        await chat.until("The session is finished. Enter leaves.")
        await chat.pilot.press(*"too late")
        assert chat.typed == "too late"
        await chat.pilot.press("enter")
        await chat.holds(lambda: not chat.seat.app.is_running)


@pytest.mark.parametrize("how", ["ctrl+d", "ctrl+c", "/quit", "/finish done"])
async def test_the_person_leaves(how: str) -> None:
    async with chatting() as chat:
        if how.startswith("/"):
            await chat.send(how)
        else:
            await chat.pilot.press(how)
        await chat.holds(lambda: not chat.seat.app.is_running)
        closed = await chat.events(SessionClosed)
        assert bool(closed) == how.startswith("/finish")


@pytest.mark.slow
async def test_the_output_is_submitted_from_a_file(tmp_path: object) -> None:
    path = anyio.Path(str(tmp_path)) / "plan.txt"
    await path.write_text("Day 1: Naples\n", encoding="utf-8")
    async with chatting() as chat:
        await chat.pilot.press(*f"/submit {path.parent}/pl", "tab")
        assert chat.typed.strip() == f"/submit {path}"
        await chat.pilot.press("enter")
        await chat.until("by you (first version)", "Day 1: Naples")
        [taken] = await chat.events(SnapshotTaken)
        assert isinstance(taken, SnapshotTaken)
        assert taken.content == "Day 1: Naples"
