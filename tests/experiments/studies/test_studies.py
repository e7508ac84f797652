"""Studies with people: their plan, assignment, scores, the way through them, and their export."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.experiments.studies.assigning import latin_square
from duolog.experiments.studies.exporting import export_study
from duolog.experiments.studies.instruments import TLX_SCALES, items_of, scores_of
from duolog.experiments.studies.people import People, read_people
from duolog.experiments.studies.plan import Study, read_study, resolved
from duolog.experiments.studies.recruiting import Places, Recruits, places_of
from duolog.experiments.studies.running import Sittings
from duolog.experiments.studies.site import OPEN, guests, study_part
from duolog.experiments.workbench import SessionHost
from duolog.interop.workbench.access.identity import Access
from duolog.interop.workbench.app import PARTS, make_workbench, make_workbench_app
from duolog.interop.workbench.participation.routes import participation
from duolog.interop.workbench.state import WorkbenchLimits

ROOT = Path(__file__).resolve().parents[3]
TASK = f"{ROOT / 'tests' / 'support' / 'participation_task.py'}:ShoppingTask"
BASE = "http://127.0.0.1:8740"
PLAN = f"""
name = "lists"
title = "Shopping"
consent = "You may leave at any time."
seed = 3

[recruitment]
participant = "PROLIFIC_PID"
parameters = ["PROLIFIC_PID", "STUDY_ID"]

[[condition]]
name = "one"
task = "{TASK}"

[[condition]]
name = "two"
task = "{TASK}"
minutes = 20

[[questionnaire]]
name = "tlx"
kind = "nasa-tlx"

[[questionnaire]]
name = "last"
when = "end"

[[questionnaire.item]]
name = "comment"
text = "What else?"
type = "text"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "lists.toml"
    path.write_text(PLAN, encoding="utf-8")
    return path


class Serving:
    """A study that is served, and the clients of its participants."""

    def __init__(self, app: object, people: People) -> None:
        self._transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
        self.people = people

    @asynccontextmanager
    async def arriving(self, name: str) -> AsyncIterator[Browser]:
        """A participant who opens their link."""
        async with httpx.AsyncClient(
            transport=self._transport, base_url=BASE, headers={"Origin": BASE}, timeout=60
        ) as client:
            browser = Browser(client, name)
            await browser.open()
            yield browser


class Browser:
    """A participant at their page."""

    def __init__(self, client: httpx.AsyncClient, name: str) -> None:
        self.client = client
        self.name = name
        self.page = ""

    async def open(self) -> str:
        """Opens their link; gives the page."""
        ids = {"PROLIFIC_PID": self.name, "STUDY_ID": "s-1"}
        answer = await self.client.get("/study", params=ids)
        assert answer.status_code == 200, answer.text
        self.page = answer.text
        return self.page

    async def post(self, what: str, body: object) -> httpx.Response:
        """Does something on the page."""
        return await self.client.post(f"/v1/study/{what}", json=body)

    async def sends(self, what: str, body: object) -> str:
        """Does something that has to work; gives the next address."""
        answer = await self.post(what, body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["next"])

    async def agree(self) -> None:
        """Agrees to take part."""
        await self.sends(
            "consent", {"agreed": True, "ids": {"PROLIFIC_PID": self.name, "STUDY_ID": "s-1"}}
        )

    async def work(self, place: int) -> None:
        """Does a condition: says what to note, and ends it."""
        to = await self.sends("begin", {"place": place})
        session = str(httpx.URL(to).params["id"])
        who = {"session": session, "actor": "user"}
        acts = ({"act": "say", "text": "milk"}, {"act": "stop", "reason": "finished", "detail": ""})
        for number, act in enumerate(acts):
            body = {**act, **who, "id": f"act-{place}-{number}-00"}
            answer = await self.client.post("/v1/participate/act", json=body)
            assert answer.status_code == 200, answer.text

    async def rate(self, place: int) -> None:
        """Answers the questionnaire after a condition."""
        answers = {name: 5 * at for at, name in enumerate(TLX_SCALES)}
        await self.sends("answers", {"questionnaire": "tlx", "place": place, "answers": answers})

    async def finish(self) -> None:
        """Does all there is to do after consent."""
        for place in (1, 2):
            await self.work(place)
            await self.rate(place)
        await self.sends(
            "answers", {"questionnaire": "last", "place": None, "answers": {"comment": "fine"}}
        )


@asynccontextmanager
async def serving(plan: Path, reads: tuple[float, float] = (1e6, 1e6)) -> AsyncIterator[Serving]:
    """A server of the study, which ends as a process does that is killed."""
    places = places_of(plan)
    study = await anyio.to_thread.run_sync(lambda: resolved(read_study(plan)))
    recruits = await anyio.to_thread.run_sync(Recruits.at, places, study.recruitment.parameters)
    async with (
        open_log(f"sqlite:///{places.people}") as people_log,
        open_log(f"sqlite:///{places.sessions}") as log,
        anyio.create_task_group() as tasks,
    ):
        people = await read_people(study, people_log, log)
        await people.complete()
        host = SessionHost(log, tasks)
        workbench = make_workbench(
            log,
            Access(recruits.secret("operator")),
            name="lists.db",
            limits=WorkbenchLimits(reads=reads, writes=(1e6, 1e6)),
        )
        parts = (
            *PARTS,
            participation(host),
            study_part(people, recruits, Sittings(people, host, log)),
        )
        app = make_workbench_app(
            workbench, None, parts, open_at=OPEN, guest_of=guests(people, recruits)
        )
        yield Serving(app, people)
        tasks.cancel_scope.cancel()


async def records_of(path: Path) -> list[Record]:
    async with open_log(f"sqlite:///{path}") as log:
        return [record async for record in log.read_all()]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --- the plan -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "Shopping"', "titel = 'x'", "titel: unknown key; did you mean title?"),
        ("seed = 3", 'seed = "a"', 'seed = "a"'),
        ("seed = 3", 'design = "both"', "design = "),
        ('name = "lists"', 'name = "My Lists"', "name = 'My Lists': use 1 to 40 lower-case"),
        ('name = "two"', 'name = "one"', "condition[2].name = 'one': two of them"),
        ("minutes = 20", "minutes = -1", "condition[2].minutes = -1"),
        (
            "minutes = 20",
            'agnt = "x"',
            "condition[2].agnt: unknown key; did you mean agent?",
        ),
        ('kind = "nasa-tlx"', 'kind = "nasa"', "questionnaire[1].kind = 'nasa'; did you mean"),
        ('kind = "nasa-tlx"', 'when = "after"', "questionnaire[1].when = "),
        ('type = "text"', 'type = "words"', "questionnaire[2].item[1].type = "),
        ('type = "text"', 'type = "choice"', "questionnaire[2].item[1].choices needs two"),
        ('participant = "PROLIFIC_PID"', 'participant = "PID"', "recruitment.participant = 'PID'"),
        ('consent = "You may leave at any time."', 'consent = " "', "consent is empty"),
    ],
)
def test_a_wrong_plan_is_refused_with_key_value_and_choices(
    plan: Path, old: str, new: str, said: str
) -> None:
    assert old in PLAN
    plan.write_text(PLAN.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_study(plan)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(plan))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ('task = "trvel"', "condition[1].task = 'trvel'"),
        ('task = "travel"\nagent = "two-stge"', "condition[1].agent = 'two-stge'"),
        ('task = "travel"\nagent = "auto"', "not an agent of task 'travel' that works with people"),
        ('task = "travel"\ninstances = ["x"]', "condition[1].instances holds 'x'"),
    ],
)
def test_a_task_agent_or_instance_that_is_not_there_is_refused(
    plan: Path, new: str, said: str
) -> None:
    plan.write_text(PLAN.replace(f'task = "{TASK}"', new, 1), encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        resolved(read_study(plan))
    assert said in str(caught.value)


# --- instruments and assignment -------------------------------------------------------------------


def test_nasa_tlx_agrees_with_a_calculation_by_hand() -> None:
    # The worked example of the NASA-TLX manual's kind: ratings, and how often each scale was chosen.
    ratings = dict(zip(TLX_SCALES, (30, 15, 60, 40, 30, 40), strict=True))
    wins = dict(zip(TLX_SCALES, (3, 0, 5, 1, 3, 3), strict=True))
    assert sum(wins.values()) == 15
    # temporal beats all; mental, effort and frustration beat performance and physical, and one another
    # in a circle; performance beats physical.
    beats = {("mental", "effort"), ("effort", "frustration"), ("frustration", "mental")}
    rank = {
        "temporal": 3,
        "mental": 2,
        "effort": 2,
        "frustration": 2,
        "performance": 1,
        "physical": 0,
    }
    answers: dict[str, int | str] = dict(ratings)
    for item in items_of("nasa-tlx", (), weights=True)[6:]:
        _, one, other = item.name.split("_")
        first = rank[one] > rank[other] or (one, other) in beats
        answers[item.name] = TLX_SCALES[one if first else other][0]
    scores = scores_of("nasa-tlx", answers)
    assert scores["raw"] == pytest.approx((30 + 15 + 60 + 40 + 30 + 40) / 6)  # 35.83
    by_hand = (3 * 30 + 0 * 15 + 5 * 60 + 1 * 40 + 3 * 30 + 3 * 40) / 15  # 42.67
    assert scores["weighted"] == pytest.approx(by_hand)
    del answers["mental"]
    assert scores_of("nasa-tlx", answers) == {"raw": None, "weighted": None}


def test_the_scales_of_nasa_tlx_have_21_points_and_the_pairs_are_15() -> None:
    items = items_of("nasa-tlx", (), weights=True)
    assert [list(item.points) for item in items[:6]] == [list(range(0, 101, 5))] * 6
    assert len(items) == 6 + 15
    with pytest.raises(InvalidInput, match="0 to 100 in steps of 5, got 7"):
        items[0].take(7)


def test_the_satisfaction_scale_is_the_mean_of_its_three_items() -> None:
    assert scores_of("satisfaction", {"ease": 1, "time": 2, "support": 6}) == {"mean": 3.0}
    assert scores_of("satisfaction", {"ease": 1, "time": 2}) == {"mean": None}


@pytest.mark.parametrize("count", range(1, 9))
def test_in_a_latin_square_each_follows_each_equally_often(count: int) -> None:
    square = latin_square([f"c{number}" for number in range(count)])
    for place in range(count):
        assert len(set(Counter(row[place] for row in square).values())) == 1
    follows = Counter(pair for row in square for pair in pairwise(row))
    assert len(follows) == count * (count - 1)
    assert len(set(follows.values())) <= 1


# --- taking part ----------------------------------------------------------------------------------


async def test_a_participant_goes_through_a_study_and_is_exported(plan: Path) -> None:
    async with serving(plan) as server, server.arriving("ann") as ann:
        assert "You may leave at any time." in ann.page
        await ann.agree()
        await ann.finish()
        assert "Thank you" in await ann.open()
        out = plan.parent / "data"
        done = await export_study(server.people, server.people.sessions, out)
    assert (done.participants, done.answers) == (1, 13)
    [person] = table(out / "participants.csv")
    assert (person["order"], person["finished"]) == ("one > two", "true")
    rows = table(out / "conditions.csv")
    assert [(row["place"], row["condition"], row["state"]) for row in rows] == [
        ("1", "one", "finished"),
        ("2", "two", "finished"),
    ]
    assert {row["tlx_raw"] for row in rows} == {"12.5"}  # (0 + 5 + 10 + 15 + 20 + 25) / 6
    answers = table(out / "answers.csv")
    assert [row["value"] for row in answers if row["item"] == "frustration"] == ["25", "25"]
    assert answers[-1]["value"] == "fine"
    book = table(out / "codebook.csv")
    described = {row["name"] for row in book if row["table"] == "conditions"}
    assert described == set(rows[0])
    assert all(row["meaning"] for row in book)
    assert "1 participant" in (out / "DATA_CARD.md").read_text(encoding="utf-8")
    whole = b"".join(path.read_bytes() for path in out.iterdir())
    assert b"ann" not in whole.replace(b"cannot", b"").replace(b"annoyed", b"")
    [kept] = table(plan.with_suffix(".ids.csv"))
    assert (kept["PROLIFIC_PID"], kept["STUDY_ID"]) == ("ann", "s-1")
    assert kept["participant"] == person["participant"]


async def test_lines_of_a_paragraph_run_on_and_lists_stay(plan: Path) -> None:
    text = 'consent = """\nOne line\nand its end.\n\n- a\n- b\n"""'
    old = 'consent = "You may leave at any time."'
    await anyio.Path(plan).write_text(PLAN.replace(old, text, 1))
    async with serving(plan) as server, server.arriving("ann") as ann:
        assert "<p>One line and its end.</p>" in ann.page
        assert ann.page.count("<li>") == 2


async def test_recruiters_ids_are_in_no_record(plan: Path) -> None:
    async with serving(plan) as server, server.arriving("5f2c-recruited") as ann:
        await ann.agree()
        await ann.work(1)
    places = places_of(plan)
    for path in (places.people, places.sessions):
        for record in await records_of(path):
            assert b"5f2c-recruited" not in (record.body or b"")
            assert "5f2c-recruited" not in f"{record.session} {record.actor}"
    assert places.ids.stat().st_mode & 0o077 == 0


async def test_somebody_who_declines_leaves_nothing_but_that(plan: Path) -> None:
    async with serving(plan) as server, server.arriving("ann") as ann:
        await ann.sends("consent", {"agreed": False})
        assert "You are not taking part" in await ann.open()
        assert server.people.counts().declined == 1
        await ann.agree()
        assert server.people.counts().consented == 1
    assert [record.kind for record in await records_of(places_of(plan).people)] == [
        "ConsentGiven",
        "ConsentGiven",
        "ConditionAssigned",
    ]


async def test_a_killed_server_loses_nothing_and_the_same_link_goes_on(plan: Path) -> None:
    async with serving(plan) as server, server.arriving("ann") as ann:
        await ann.agree()
        to = await ann.sends("begin", {"place": 1})
    async with serving(plan) as server, server.arriving("ann") as ann:  # another browser, too
        assert "Your session is still open" in ann.page
        assert await ann.sends("begin", {"place": 1}) == to
        await ann.work(1)
        assert "Mental Demand" in await ann.open()
    async with serving(plan) as server, server.arriving("ann") as ann:
        assert "Mental Demand" in ann.page
        await ann.rate(1)
        await ann.rate(1)  # sent again, since no answer came: the first one counts
        await ann.work(2)
        await ann.rate(2)
    kinds = Counter(record.kind for record in await records_of(places_of(plan).people))
    assert kinds == {
        "ConsentGiven": 1,
        "ConditionAssigned": 1,
        "ConditionBegun": 2,
        "AnswersGiven": 2,
    }


async def test_a_session_that_was_begun_unnoticed_goes_on(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*arguments: object) -> None:
        raise InvalidInput("killed before it was noted")

    async with serving(plan) as server, server.arriving("ann") as ann:
        await ann.agree()
        with monkeypatch.context() as patched:
            patched.setattr(People, "begun", lost)
            assert (await ann.post("begin", {"place": 1})).status_code == 400
    async with serving(plan) as server, server.arriving("ann") as ann:
        await ann.work(1)
    opened = [r for r in await records_of(places_of(plan).sessions) if r.kind == "SessionOpened"]
    assert len(opened) == 1


async def test_who_withdraws_is_erased_and_counted(plan: Path) -> None:
    async with serving(plan) as server:
        async with server.arriving("ann") as ann, server.arriving("ben") as ben:
            for one in (ann, ben):
                await one.agree()
                await one.work(1)
            await ben.rate(1)
            await ben.sends("begin", {"place": 2})
            await ben.sends("withdraw", {})  # in the middle of a session
            assert "You have left the study" in await ben.open()
            assert (await ben.post("begin", {"place": 2})).status_code == 400
        counts = server.people.counts()
        assert (counts.consented, counts.withdrawn) == (1, 1)
    places = places_of(plan)
    gone = Recruits.at(places, ()).pseudonym("ben")
    kept = [record for record in await records_of(places.people) if record.session == gone]
    assert kept[-1].kind == "ParticipantWithdrew"
    assert {record.body for record in kept} == {None}
    begun = await records_of(places.sessions)
    assert {r.session for r in begun if r.body is None}
    assert any(r.body for r in begun)
    assert [row["PROLIFIC_PID"] for row in table(places.ids)] == ["ann"]
    async with serving(plan) as server:  # the count survives a restart
        assert server.people.counts().withdrawn == 1
        done = await export_study(server.people, server.people.sessions, plan.parent / "data")
    assert done.participants == 1
    assert "1 withdrew" in (plan.parent / "data" / "DATA_CARD.md").read_text(encoding="utf-8")


async def test_assignment_is_balanced_over_arrivals_at_once_and_restarts(plan: Path) -> None:
    for wave in range(2):
        async with serving(plan) as server:

            async def arrive(name: str, at: Serving = server) -> None:
                async with at.arriving(name) as person:
                    await person.agree()

            async with anyio.create_task_group() as tasks:
                for number in range(11):
                    tasks.start_soon(arrive, f"{wave}-{number}")
            orders = server.people.counts().orders
            assert max(orders.values()) - min(orders.values()) <= 1
    assert sum(orders.values()) == 22


async def test_no_more_take_part_than_are_wanted(plan: Path) -> None:
    await anyio.Path(plan).write_text(PLAN.replace("seed = 3", "participants = 1", 1))
    async with serving(plan) as server, server.arriving("ann") as ann:
        await ann.agree()
        async with server.arriving("ben") as ben:
            assert "has all the participants" in ben.page
            assert (await ben.post("consent", {"agreed": True})).status_code == 400
        assert "What to do" in await ann.open()


async def test_answers_are_checked_and_belong_to_their_step(plan: Path) -> None:
    async with serving(plan) as server, server.arriving("ann") as ann:
        early = {"questionnaire": "tlx", "place": 1, "answers": {}}
        await ann.agree()
        assert (await ann.post("answers", early)).status_code == 400
        await ann.work(1)
        for answers, said in (({"mental": 7}, "steps of 5"), ({"mentl": 5}, "did you mean")):
            refused = await ann.post("answers", early | {"answers": answers})
            assert refused.status_code == 400
            assert said in refused.json()["message"]
        ann.client.cookies.clear()
        assert (await ann.post("answers", early)).status_code == 401


async def test_answers_that_nest_without_end_are_refused(plan: Path) -> None:
    deep = "[" * 20_000
    body = f'{{"questionnaire":"tlx","place":1,"answers":{{"mental":{deep}'
    async with serving(plan) as server, server.arriving("ann") as ann:
        await ann.agree()
        await ann.work(1)
        headers = {"Content-Type": "application/json"}
        refused = await ann.client.post("/v1/study/answers", content=body, headers=headers)
        assert refused.status_code in (400, 413)
        assert "cannot read the request: it nests too deeply" in refused.json()["message"]
        await ann.rate(1)


async def test_strangers_do_not_lock_out_participants_at_their_address(plan: Path) -> None:
    async with (
        serving(plan, reads=(20, 1e-6)) as server,
        server.arriving("ann") as ann,
        server.arriving("ben") as ben,
    ):
        await ann.agree()
        answers = [(await ben.client.get("/study")).status_code for _ in range(30)]
        assert answers[-1] == 429
        assert (await ann.client.get("/study")).status_code == 200
        assert "What to do" in await ann.open()


async def test_keys_are_recorded_in_no_answer(plan: Path) -> None:
    key = "sk-proj-" + "aB3" * 16
    async with serving(plan) as server, server.arriving("ann") as ann:
        await ann.agree()
        for place in (1, 2):
            await ann.work(place)
            await ann.rate(place)
        last = {"questionnaire": "last", "place": None}
        await ann.sends("answers", last | {"answers": {"comment": f"it said {key}"}})
    held = [bytes(one.body or b"") for one in await records_of(places_of(plan).people)]
    assert any(b"it said" in one for one in held)
    assert not any(b"aB3aB3" in one for one in held)


async def test_fifty_finish_leave_come_back_and_withdraw(plan: Path) -> None:
    async with serving(plan) as server:

        async def take_part_as(number: int) -> None:
            async with server.arriving(f"p{number}") as person:
                await person.agree()
                if number % 5 == 1:
                    return  # leaves
                await person.work(1)
                if number % 5 == 2:  # loses the connection, and comes back by the link
                    async with server.arriving(f"p{number}") as again:
                        await again.rate(1)
                        await again.work(2)
                        await again.rate(2)
                    return
                if number % 5 == 3:
                    await person.sends("withdraw", {})
                    return
                await person.rate(1)
                await person.work(2)
                await person.rate(2)
                await person.sends(
                    "answers", {"questionnaire": "last", "place": None, "answers": {}}
                )

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(take_part_as, number)
        counts = server.people.counts()
        assert (counts.finished, counts.withdrawn, counts.working) == (20, 10, 20)
        done = await export_study(server.people, server.people.sessions, plan.parent / "data")
    assert done.participants == 40
    rows = table(plan.parent / "data" / "conditions.csv")
    assert len(rows) == 80
    assert Counter(row["begun"] for row in rows) == {"true": 60, "false": 20}
    assert Counter(row["tlx_raw"] for row in rows) == {"12.5": 60, "": 20}


def test_the_example_plan_is_valid(tmp_path: Path) -> None:
    template = ROOT / "cli" / "templates" / "study.toml.txt"
    path = tmp_path / "trips.toml"
    path.write_text(template.read_text(encoding="utf-8").replace("NAME", "trips"), encoding="utf-8")
    study: Study = read_study(path)
    assert [one.name for one in study.condition] == ["asks-first", "starts-at-once"]


def test_the_files_of_a_study_lie_beside_its_plan(tmp_path: Path) -> None:
    places: Places = places_of(tmp_path / "trips.toml")
    assert [path.name for path in places] == [
        "trips.db",
        "trips.people.db",
        "trips.ids.csv",
        "trips.key",
    ]


def test_studies_of_similar_names_share_no_file() -> None:
    one, other = (places_of(Path(f"trips.{name}.toml")) for name in ("a", "b"))
    assert one.people == Path("trips.a.people.db")
    assert not {*one} & {*other}
