"""Plans as text: written in one form, read in many."""

from __future__ import annotations

import string

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.travel.plan.plan import (
    FIELDS,
    DayPlan,
    Plan,
    attractions_of,
    plan_from_json,
    plan_to_json,
)
from duolog.examples.travel.plan.text import parse_plan, read_plan, render_plan
from hypothesis import given
from hypothesis import strategies as st

TEXT = """\
Day 1:
Current City: from Ithaca to Charlotte
Transportation: Flight Number: F3633413, from Ithaca to Charlotte, Departure Time: 05:38
Breakfast: -
Attraction: The Charlotte Museum of History, Charlotte;
Lunch: Cafe Maple Street, Charlotte
Dinner: Bombay Vada Pav, Charlotte
Accommodation: Affordable Room in Bushwick!, Charlotte

Day 2:
Current City: Charlotte
Transportation: -
Breakfast: Olive Tree Cafe, Charlotte
Attraction: The Mint Museum, Charlotte;Romare Bearden Park, Charlotte;
Lunch: Birbal Ji Dhaba, Charlotte
Dinner: Pind Balluchi, Charlotte
Accommodation: Affordable Room in Bushwick!, Charlotte"""
PLAN = (
    DayPlan(
        days=1,
        current_city="from Ithaca to Charlotte",
        transportation="Flight Number: F3633413, from Ithaca to Charlotte, Departure Time: 05:38",
        attraction="The Charlotte Museum of History, Charlotte;",
        lunch="Cafe Maple Street, Charlotte",
        dinner="Bombay Vada Pav, Charlotte",
        accommodation="Affordable Room in Bushwick!, Charlotte",
    ),
    DayPlan(
        days=2,
        current_city="Charlotte",
        breakfast="Olive Tree Cafe, Charlotte",
        attraction="The Mint Museum, Charlotte;Romare Bearden Park, Charlotte;",
        lunch="Birbal Ji Dhaba, Charlotte",
        dinner="Pind Balluchi, Charlotte",
        accommodation="Affordable Room in Bushwick!, Charlotte",
    ),
)


def field(line: str, *, name: str = "lunch") -> str:
    """What one line of a day is read as."""
    value = getattr(parse_plan(f"Day 1:\n{line}")[0], name)
    assert isinstance(value, str)
    return value


def test_the_one_form_that_is_written() -> None:
    assert render_plan(PLAN) == TEXT
    assert parse_plan(TEXT) == PLAN


# Names hold almost anything. A backslash and an n would mean a line break, and a semicolon
# ends an attraction.
NAMES = (
    st.text(string.ascii_letters + string.digits + " &'’!.*#()|$\"_:%/+-~é豪☆\n,", min_size=1)
    .map(str.strip)
    .filter(lambda name: name and not name.startswith((",", "-")))
)
CITIES = st.sampled_from(
    ["Charlotte", "St. Louis", "Martha's Vineyard", "Washington", "Fort Wayne"]
)
PLACES = st.builds("{}, {}".format, NAMES, CITIES)
MAYBE_PLACES = st.just("-") | PLACES
ROUTES = st.builds("from {} to {}".format, CITIES, CITIES)
DAYS = st.builds(
    DayPlan,
    days=st.just(1),
    current_city=CITIES | ROUTES,
    transportation=st.just("-")
    | st.builds("{}, {}, cost: 59".format, st.sampled_from(["Taxi", "Self-driving"]), ROUTES)
    | st.builds("Flight Number: F{}, {}, Arrival Time: 09:00".format, st.just(3633405), ROUTES),
    breakfast=MAYBE_PLACES,
    lunch=MAYBE_PLACES,
    dinner=MAYBE_PLACES,
    accommodation=MAYBE_PLACES,
    attraction=st.just("-")
    | st.lists(PLACES, min_size=1, max_size=3).map(lambda places: ";".join(places) + ";"),
)
PLANS = st.lists(DAYS, min_size=1, max_size=7).map(
    lambda days: tuple(
        DayPlan(days=n, **{f: getattr(day, f) for f in FIELDS}) for n, day in enumerate(days, 1)
    )
)


@given(PLANS)
def test_what_is_written_is_read_back(plan: Plan) -> None:
    assert parse_plan(render_plan(plan)) == plan


@given(PLANS)
def test_json_there_and_back(plan: Plan) -> None:
    assert plan_from_json(plan_to_json(plan)) == plan


LINES = st.lists(
    st.sampled_from(["Day 1:", "**Day 2**", "# Day 3", "| Lunch | A, B |", "- C, D", "", "Note: x"])
    | st.builds(
        "{}{}: {}".format,
        st.sampled_from(["", "- **", "* "]),
        st.sampled_from(["Lunch", "attractions", "Current City", "Transport", "Lnch"]),
        st.text(max_size=12) | PLACES,
    )
    | st.text(max_size=12),
    max_size=14,
).map("\n".join)


@given(LINES)
def test_any_text_is_read_or_refused_and_reading_settles(text: str) -> None:
    try:
        plan = parse_plan(text)
    except InvalidInput:
        return
    assert plan
    again = parse_plan(render_plan(plan))
    assert parse_plan(render_plan(again)) == again


@pytest.mark.parametrize(
    "line",
    [
        "Lunch: Old Mill, Bexley",
        "lunch:Old Mill, Bexley",
        "LUNCH : Old Mill, Bexley",
        "- Lunch: Old Mill, Bexley",
        "  * **Lunch:** Old Mill, Bexley",
        "**Lunch**: Old Mill, Bexley.",
        "- **Lunch (12:30)**: **Old Mill**, Bexley",
        "### Lunch: Old Mill, Bexley",
        "🍽 Lunch: `Old Mill, Bexley`",
        "3. Lunch: Old Mill, Bexley",
        "| Lunch | Old Mill, Bexley |",
        "Lunch:\n  - Old Mill, Bexley",
        "Luch: Old Mill, Bexley",
        "Lunch: Old Mill, Bexley, Cost: 20",
        "Lunch: Old Mill, Bexley, Cost: $20 per person",
        "Lunch: Old Mill, Bexley (Cost: $20 per person, $60 in total)",
        "Lunch: Old Mill, Bexley - $20",
        "Lunch: Old Mill, Bexley – approx. $20/person",
        "Lunch: Old Mill, Bexley; average cost 20",
        "Lunch: Old Mill, Bexley (rating 4.5)",
        "Lunch: Old Mill, Bexley, Cuisines: Thai, Indian, Cost: 20",
        "Lunch: [Old Mill](https://mill.example), Bexley",
        '**Lunch:** "Old Mill, Bexley"',
    ],
)
def test_a_field_may_be_dressed_up(line: str) -> None:
    assert field(line) == "Old Mill, Bexley"


@pytest.mark.parametrize(
    "value",
    [
        "$5 Pizza - since 1950, Bexley",
        "**Cozy Space**, Bexley",
        "Room (2nd floor, $20 off), Bexley",
        "Sonder | 21 Chelsea | Central, Bexley",
        "Café - Cost of Living 100, Bexley",
        "Old Mill, Bexley(Texas)",
        "#1 Rated; no parties",
    ],
)
def test_what_belongs_to_a_name_stays(value: str) -> None:
    assert field(f"Lunch: {value}") == value


@pytest.mark.parametrize(
    "value", ["-", "–", "", "N/A", "none", "**-**", "eat at home", "On the way.", "no lunch needed"]
)
def test_words_for_nothing(value: str) -> None:
    assert field(f"Dinner: x, Y\nLunch: {value}") == "-"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("A, X", "A, X;"),
        ("A, X; B, X", "A, X;B, X;"),
        ("A, X;B, Ex.", "A, X;B, Ex;"),
        ("A, X ($10); B, X - $5;", "A, X;B, X;"),
        ("\n  - A, X\n  - **B**, X (free, 2 hours)", "A, X;B, X;"),
        ("A, X\n- B, X", "A, X;B, X;"),
        (";", "-"),
    ],
)
def test_attractions_each_end_in_a_semicolon(value: str, read: str) -> None:
    # The bold heading makes it Markdown, in which bold does not belong to a name.
    (day,) = parse_plan(f"**Day 1**\nAttractions: {value}\n")
    assert day.attraction == read
    assert attractions_of(day) == tuple(part for part in read.split(";") if part not in ("", "-"))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("Bexley", "Bexley"),
        ("Bexley, Ohio", "Bexley"),
        ("from Aston to Bexley", "from Aston to Bexley"),
        ("From Aston, Iowa to Bexley, Ohio", "from Aston to Bexley"),
        ("Aston to Bexley", "from Aston to Bexley"),
        ("Aston → Bexley", "from Aston to Bexley"),
        ("Aston -> Bexley", "from Aston to Bexley"),
        ("Travel from Aston to Bexley (2 hours)", "from Aston to Bexley"),
        ("You don't need to fill in the information", "You don't need to fill in the information"),
    ],
)
def test_cities(value: str, read: str) -> None:
    assert field(f"Current City: {value}", name="current_city") == read


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("Transportation: Flight Number:F12345, from A to B", "Flight Number: F12345, from A to B"),
        ("Transportation: flight f12345 from A to B", "Flight Number: F12345, from A to B"),
        ("Flight: F12345, from A to B, $120", "Flight Number: F12345, from A to B, 120"),
        ("Flight Number: F12345", "Flight Number: F12345"),
        (
            "Transport: self driving, From A to B - cost: $ 59",
            "Self-driving, from A to B, cost: 59",
        ),
        ("Taxi: from A to B; Duration: 1 hour", "Taxi: from A to B, Duration: 1 hour"),
        ("Transportation: Flight to B, by night", "Flight to B, by night"),
    ],
)
def test_transportation(line: str, read: str) -> None:
    assert field(line, name="transportation") == read


def test_a_line_break_in_a_name_is_written_as_in_the_tables() -> None:
    plan = (DayPlan(days=1, accommodation="Suite\nSe habla Español, Bexley"),)
    assert r"Accommodation: Suite\nSe habla Español, Bexley" in render_plan(plan)
    assert parse_plan(render_plan(plan)) == plan


def test_prose_around_and_between_is_passed_over() -> None:
    text = (
        f"Sure, here it is. Day 1 will be long.\n\n{TEXT}\n\nTotal Cost: $900\nHave fun: enjoy!\n"
    )
    assert parse_plan(text) == PLAN
    titled = TEXT.replace("Day 1:", "## Day 1 – March 1 (arrival)").replace("Day 2:", "DAY TWO")
    assert parse_plan(titled.replace("\n", "\r\n\r\n")) == PLAN


def test_tables() -> None:
    head = ["Day", "City", "Transportation", "Breakfast", "Attraction", "Lunch", "Dinner", "Hotel"]
    rows = [[f"Day {day.days}", *(getattr(day, f) for f in FIELDS)] for day in PLAN]
    lines = [head, ["---"] * 8, *rows]
    assert parse_plan("\n".join(f"| {' | '.join(line)} |" for line in lines)) == PLAN
    blocks = (
        f"### Day {day.days}\n| What | Where |\n|---|---|\n"
        + "\n".join(
            f"| {name} | {getattr(day, f)} |" for name, f in zip(head[1:], FIELDS, strict=True)
        )
        for day in PLAN
    )
    assert parse_plan("\n\n".join(blocks)) == PLAN
    escaped = "| Day | Lunch | Dinner | Hotel |\n| 1 | A \\| B, X | C, X | D, X |"
    assert parse_plan(escaped)[0].lunch == "A | B, X"


def test_json_in_place_of_text() -> None:
    days = '[{"day": "1", "lunch": "A, X, Cost: 5", "attraction": "B, X", "dinner": null}]'
    expected = (DayPlan(days=1, lunch="A, X", attraction="B, X;"),)
    for text in (days, f"Here:\n```json\n{days}\n```\nEnjoy.", f'{{"plan": {days}}}'):
        assert parse_plan(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "this text contains no plan"),
        ("I would go to Bexley.", "this text contains no plan"),
        ("Lunch: A, X", "line 1 of the plan cannot be read: 'Lunch: A, X': it comes before any"),
        ("Day 1:\nnothing", "line 1 of the plan cannot be read: 'Day 1:': nothing below it says"),
        ("Day 1:\nLunch: A, X\n\nLunch: B, X", "line 4 of the plan cannot be read: 'Lunch: B, X'"),
        ("Day 1:\nLunch: A, X\nDay 1:\nLunch: B, X", "line 3 of the plan cannot be read: 'Day 1:'"),
        ("Days 1-3: Bexley", "line 1 of the plan cannot be read: 'Days 1-3: Bexley': each day"),
        ("| Day | Lunch | Dinner | Hotel |\n| 1 | A |", "line 2 .* 2 cells below 4 headings"),
        ("| Day | Lunch | Dinner | Hotel |\n| x | A | B | C |", "line 2 .* which day it is"),
        ("[{]", "looks like JSON but is none"),
        ('["a"]', "day 1 of the plan is not an object, but str 'a'"),
        ('{"a": 1}', "a plan is a list of days, not a dict of 1"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        parse_plan(text)


def test_submissions_are_read_tolerantly() -> None:
    days = [
        {"day": 3, "lunch": " A, X ", "attraction": ["B, X", "C, X;"], "dinner": 7, "extra": {}},
        {"days": "4", "breakfast": ["D, X"], "lunch": None, "attraction": []},
        {},
    ]
    assert plan_from_json(days) == (
        DayPlan(days=3, lunch="A, X", attraction="B, X;C, X;", dinner="7"),
        DayPlan(days=4, breakfast="D, X"),
        DayPlan(days=3),
    )
    assert plan_from_json({"plan": [DayPlan(days=1)]}) == (DayPlan(days=1),)
    assert plan_to_json((DayPlan(days=1, lunch="A, X"),))[0]["lunch"] == "A, X"


async def test_a_converter_is_asked_only_where_parsing_fails() -> None:
    asked: list[str] = []

    async def convert(text: str) -> Plan:
        asked.append(text)
        return PLAN[:1]

    assert await read_plan(TEXT, convert) == PLAN
    assert asked == []
    assert await read_plan("We fly, then eat.", convert) == PLAN[:1]
    assert asked == ["We fly, then eat."]
    with pytest.raises(InvalidInput, match="contains no plan"):
        await read_plan("We fly, then eat.")
