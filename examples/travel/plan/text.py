"""A plan as text, day by day, and a forgiving parser of what people and models write in that form.

Day 1:
Current City: from Ithaca to Charlotte
Transportation: Flight Number: F3633413, from Ithaca to Charlotte, Departure Time: 05:38
Breakfast: Nagaland's Kitchen, Charlotte
Attraction: The Charlotte Museum of History, Charlotte;
Lunch: Cafe Maple Street, Charlotte
Dinner: Bombay Vada Pav, Charlotte
Accommodation: Affordable Spacious Room, Charlotte
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

import msgspec

from ....engine.errors import InvalidInput
from ..data.tables import REMEMBERED
from .plan import BLANK, FIELDS, DayPlan, Plan, plan_from_json

__all__ = ("PlanConverter", "parse_plan", "read_plan", "render_plan")

_NOTHING = re.compile(
    r"(?:-|–|—|−|n/?a|none|nil|nothing|null|skip(?:ped)?|tbd|not (?:applicable|needed|required)"
    r"|no (?:breakfast|lunch|dinner|meal|accommodation|attractions?|transportation)(?: needed)?"
    r"|(?:eat |meal |breakfast |lunch |dinner )?(?:at home|on the (?:way|road|flight|plane)"
    r"|in flight|en route|at (?:the )?airport))",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"(\*\*|__|`|\"|“)(?P<inside>.+)(\*\*|__|`|\"|”)", re.DOTALL)
_CLOSING = {"**": "**", "__": "__", "`": "`", '"': '"', "“": "”"}
_LINK = re.compile(r"\[(?P<label>[^\]]+)\]\(https?:[^)]*\)")
_BOLD = re.compile(r"(?<!\w)(\*\*|__)(?=\S)(?P<inside>.+?)(?<=\S)\1(?!\w)")

# What follows the city: prices with or without a word for them, and labelled notes.
_ABOUT = r"(?:(?:approximately|approx\.?|about|around|avg\.?|average|estimated|est\.?|total|~)\s*)*"
_AMOUNT = r"(?:USD\s*|US)?\$?\s*\d[\d,]*(?:\.\d+)?"
_REMARK = re.compile(
    r"(?:\s*[,;|(\[–—-]|\s(?=about|approx|\$|~))\s*" + _ABOUT + r"(?:"
    r"(?:costs?|prices?|rates?)\s*(?:[:=~]\s*|\bis\b\s*|\bof\b\s*|\s)" + _ABOUT + _AMOUNT + r".*"
    r"|(?:cuisines?|rating|room type|house rules?|min(?:imum)? nights?|max(?:imum)? occupancy"
    r"|check-?in|check-?out|phone|website|address)\s*[:=].*"
    r"|(?:\$\s*\d[\d,]*(?:\.\d+)?|\d[\d,]*(?:\.\d+)?\s*(?:USD|dollars))"
    r"\s*(?:(?:(?:per|an?|each|for|total|pp|USD|dollars)\b|[/x×])[^,;]*)?[)\]]?\.?"
    r")$",
    re.IGNORECASE | re.DOTALL,
)
_NUMBERED_NOTE = re.compile(r"(?<=\w)\s*[(\[][^()\[\]]*[\d$][^()\[\]]*[)\]]\.?$")
_FULL_STOP = re.compile(r"(?<=[a-z])\.$")

_DOLLAR = re.compile(r"\$\s*(?=\d)")
_FLIGHT = re.compile(
    r"flight(?:\s*(?:number|no\.?|num\.?|#))?\s*[:#]?\s*(?P<number>[A-Z]{1,2}\d{4,8})\b\s*[,;:]?\s*",
    re.IGNORECASE,
)
_DRIVING = re.compile(r"\bself[\s-]*driv(?:e|ing)\b", re.IGNORECASE)
_LABELLED = re.compile(
    r"\s*(?:[;|]|\s[–—-])\s*(?=(?:duration|distance|cost|departure|arrival)\b)", re.IGNORECASE
)
_FROM = re.compile(r"\bFROM\b|\bFrom\b")
_ARROW = re.compile(r"\s*(?:→|⟶|➔|➝|=>|-+>|—>|–>)\s*")
_SETTING_OFF = re.compile(
    r"(?:(?:travel(?:l?ing)?|depart(?:ing)?|driv(?:e|ing)|fly(?:ing)?|going)\s+)?from\s+",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"(.+?)\s+to\s+(.+)", re.IGNORECASE)


def tidy(field: str, value: str, *, decorated: bool = False) -> str:
    """The value of a field in the form in which a plan keeps it.

    Args:
        field: one of the fields of a day.
        value: what was written.
        decorated: whether the text around it is Markdown, so that bold is no part of a name.

    Returns:
        Tidy text, or `BLANK` where nothing is meant; attractions each end in a semicolon.
    """
    value = _bare(value.replace(r"\n", "\n"), decorated=decorated)
    if not value or _NOTHING.fullmatch(value.rstrip(".;")):
        return BLANK
    match field:
        case "current_city":
            return _city(value)
        case "transportation":
            return _transportation(value)
        case "attraction":
            parts = (_place(part) for part in value.split(";"))
            named = [part for part in parts if part and part != BLANK]
            return "".join(f"{part};" for part in named) or BLANK
        case _:
            return _place(value.rstrip(";")) or BLANK


def _bare(value: str, *, decorated: bool) -> str:
    value = _LINK.sub(lambda link: link["label"], value.strip())
    wrapped = _WRAPPED.fullmatch(value)
    if wrapped and _CLOSING[wrapped[1]] == wrapped[3] and wrapped[1] not in wrapped["inside"]:
        value = wrapped["inside"].strip()
    if decorated:
        value = _BOLD.sub(lambda bold: bold["inside"], value)
    return value


def _place(value: str) -> str:
    """A name and its city, without what is said about them after."""
    value = value.strip()
    name, comma, _ = value.partition(",")
    if not comma:
        return value
    while True:
        # The name and its comma are kept in any case.
        start = len(name) + 1
        cut = min(
            (
                found.start()
                for rule in (_REMARK, _NUMBERED_NOTE)
                if (found := rule.search(value, start))
            ),
            default=None,
        )
        if cut is None:
            return _FULL_STOP.sub("", value)
        value = value[:cut].rstrip()


def _city(value: str) -> str:
    value = _NUMBERED_NOTE.sub("", value)
    plain = _SETTING_OFF.sub("", _ARROW.sub(" to ", value), count=1)
    route = _BETWEEN.fullmatch(plain)
    # Without "from" or an arrow, only names count: a sentence may hold a "to" as well.
    if route is None or (plain == value and not all(c[:1].isupper() for c in route.groups())):
        return value.partition(",")[0].strip()
    start, end = (city.partition(",")[0].strip() for city in route.groups())
    return f"from {start} to {end}"


def _transportation(value: str) -> str:
    value = _DOLLAR.sub("", value)
    value = _FROM.sub("from", value)
    value = _DRIVING.sub("Self-driving", value)
    value = _FLIGHT.sub(
        lambda flight: f"Flight Number: {flight['number'].upper()}, ", value, count=1
    )
    return _LABELLED.sub(", ", value).strip().removesuffix(",")


# --- a plan as text, day by day, and a forgiving parser of what people and models write in that for


_LABELS = {
    "current_city": "Current City",
    "transportation": "Transportation",
    "breakfast": "Breakfast",
    "attraction": "Attraction",
    "lunch": "Lunch",
    "dinner": "Dinner",
    "accommodation": "Accommodation",
}
_ALIASES = {label.lower(): field for field, label in _LABELS.items()} | {
    "city": "current_city",
    "current cities": "current_city",
    "location": "current_city",
    "transport": "transportation",
    "transit": "transportation",
    "travel": "transportation",
    "attractions": "attraction",
    "activities": "attraction",
    "sightseeing": "attraction",
    "accommodations": "accommodation",
    "accomodation": "accommodation",
    "hotel": "accommodation",
    "lodging": "accommodation",
    "overnight": "accommodation",
    "stay": "accommodation",
    "supper": "dinner",
}
# Vehicles that occur as labels themselves, and remain part of the value.
_WAYS = re.compile(r"(?:flight|flight number|self-driving|taxi)", re.IGNORECASE)

_NUMBERS = {word: n for n, word in enumerate(("one two three four five six seven").split(), 1)}
_DAY = re.compile(
    r"\W*day\s*#?\s*(?P<number>\d{1,3}|one|two|three|four|five|six|seven)\b\s*(?P<rest>$|[\W_].*$)",
    re.IGNORECASE,
)
_DAYS = re.compile(r"\W*days?\s*\d+\s*(?:-|–|—|to|and|&)\s*(?:day\s*)?\d+\b", re.IGNORECASE)
_FIELD = re.compile(
    r"(?P<lead>[\s#>*_•·+\-–—]*(?:\d+[.)]\s+)?[^\w\s]*\s*)"
    r"(?P<label>[A-Za-z][A-Za-z \-]{1,24}?)(?P<end>[*_]{0,2})(?:\s*\([^)]*\))?(?P<end2>[*_]{0,2})"
    r"\s*[:：](?P<end3>[*_]{0,2})(?P<value>.*)"
)
_DECORATION = re.compile(r"[#*_•·|`]")
_BULLET = re.compile(r"\s*(?:[-*+•·–—]|\d+[.)])\s+(?P<value>\S.*)")
_PIPE = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r"```(?:json)?\s*(?P<inside>[\[{].*[\]}])\s*```", re.DOTALL)


class PlanConverter(Protocol):
    """Turns a text that no parser reads into a plan, for instance by asking a model."""

    async def __call__(self, text: str) -> Plan:
        """Convert.

        Raises:
            InvalidInput: there is no plan in the text.
        """
        ...


async def read_plan(text: str, convert: PlanConverter | None = None) -> Plan:
    """Parses a plan; one that cannot be parsed is converted.

    Raises:
        InvalidInput: neither way reads it.
    """
    try:
        return parse_plan(text)
    except InvalidInput:
        if convert is None:
            raise
    return await convert(text)


def render_plan(plan: Plan) -> str:
    """The plan as text. A line break inside a value is written as a backslash and an n."""
    return "\n\n".join(_render_day(day) for day in plan)


def _render_day(day: DayPlan) -> str:
    lines = [f"Day {day.days}:"]
    for field, label in _LABELS.items():
        value = getattr(day, field) or BLANK
        lines.append(f"{label}: {value.replace(chr(10), chr(92) + 'n')}")
    return "\n".join(lines)


@lru_cache(maxsize=REMEMBERED)
def parse_plan(text: str) -> Plan:
    """Read a plan from text.

    The parser accepts prose around it, bold, bullets, headings, tables, case, blank lines, missing
    semicolons after attractions, prices and remarks after the city, words for nothing, and JSON in
    place of text.

    Raises:
        InvalidInput: there is no plan, or a line of it cannot be read; the message says which.
    """
    data = _json_in(text)
    if data is not None:
        return tuple(_tidied(day) for day in plan_from_json(data))
    reader = _PlanParser()
    for number, line in enumerate(text.split("\n"), 1):
        reader.read(number, line.rstrip("\r"))
    return reader.plan()


def _json_in(text: str) -> object | None:
    """The JSON that a text is, or holds in a fenced block; None if there is none."""
    stripped = text.strip()
    fenced = _FENCE.search(text)
    if fenced:
        stripped = fenced["inside"]
    elif stripped[:1] not in ("[", "{"):
        return None
    try:
        data: object = msgspec.json.decode(stripped)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"the plan looks like JSON but is none: {error}") from error
    return data


def _tidied(day: DayPlan) -> DayPlan:
    return DayPlan(days=day.days, **{field: tidy(field, getattr(day, field)) for field in FIELDS})


class _PlanParser:
    """Takes the lines of a plan one by one."""

    def __init__(self) -> None:
        self._days: dict[int, dict[str, str]] = {}
        self._lines: dict[int, tuple[int, str]] = {}
        self._day: int | None = None
        self._open: str | None = None
        self._columns: tuple[str | None, ...] = ()
        self._decorated = False

    def plan(self) -> Plan:
        if not self._days:
            raise InvalidInput(
                "this text contains no plan: expected a line 'Day 1:' and below it lines such "
                "as 'Current City: ...' and 'Breakfast: Name, City'"
            )
        for day, fields in self._days.items():
            if not fields:
                raise _unreadable(*self._lines[day], f"nothing below it says what day {day} holds")
        return tuple(
            DayPlan(
                days=day,
                **{f: tidy(f, v, decorated=self._decorated) for f, v in fields.items()},
            )
            for day, fields in self._days.items()
        )

    def read(self, number: int, line: str) -> None:
        if line.lstrip().startswith("|"):
            self._read_cells(number, line)
            return
        self._columns = ()
        if not line.strip():
            return
        if _DAYS.match(line):
            raise _unreadable(number, line, "each day needs a heading and its lines")
        heading = _DAY.match(line)
        if heading:
            self._begin(number, line, heading["number"])
            self._decorated |= _DECORATION.search(line) is not None
            return
        for field, value, decorated in _fields_of(line):
            self._decorated |= decorated
            self._set(number, line, field, value)
            return
        self._continue(line)

    def _begin(self, number: int, line: str, written: str) -> None:
        day = _NUMBERS.get(written.lower()) or int(written)
        if day in self._days:
            raise _unreadable(number, line, f"day {day} was there before")
        self._day, self._open = day, None
        self._days[day], self._lines[day] = {}, (number, line)

    def _set(self, number: int, line: str, field: str, value: str) -> None:
        if self._day is None:
            raise _unreadable(number, line, "it comes before any line 'Day 1:'")
        fields = self._days[self._day]
        value = value.strip()
        self._open = field
        if field == "attraction" and fields.get(field):
            fields[field] = f"{fields[field]};{value}"
        elif fields.get(field):
            raise _unreadable(number, line, f"day {self._day} has its {field} already")
        else:
            fields[field] = value

    def _continue(self, line: str) -> None:
        """A line without label: the value of the one above, if that has none or is a list."""
        if self._day is None or self._open is None:
            return
        fields, bullet = self._days[self._day], _BULLET.fullmatch(line)
        value = bullet["value"] if bullet else line.strip()
        if not fields[self._open]:
            fields[self._open] = value
        elif bullet and self._open == "attraction":
            fields[self._open] = f"{fields[self._open]};{value}"

    def _read_cells(self, number: int, line: str) -> None:
        inside = line.strip().removeprefix("|").removesuffix("|")
        cells = [cell.replace(r"\|", "|").strip() for cell in _PIPE.split(inside)]
        if all(re.fullmatch(r":?-*:?", cell) for cell in cells):
            return
        self._decorated = True
        fields = tuple(_field_named(cell.strip("*_ ")) for cell in cells)
        if sum(field is not None for field in fields) > 2:
            self._columns = fields
            return
        if self._columns:
            self._read_row(number, line, cells)
        elif fields[0] is not None and len(cells) > 1:
            self._set(number, line, fields[0], "|".join(cells[1:]))

    def _read_row(self, number: int, line: str, cells: list[str]) -> None:
        if len(cells) != len(self._columns):
            raise _unreadable(
                number, line, f"it has {len(cells)} cells below {len(self._columns)} headings"
            )
        days = (re.fullmatch(r"\W*(?:day\s*)?(\d{1,3})\W*", c, re.IGNORECASE) for c in cells)
        day = next((found[1] for found in days if found), None)
        if day is None:
            raise _unreadable(number, line, "it does not say which day it is")
        self._begin(number, line, day)
        for field, cell in zip(self._columns, cells, strict=True):
            if field is not None:
                self._set(number, line, field, cell)


def _fields_of(line: str) -> Iterator[tuple[str, str, bool]]:
    """The field that a line states, if it does: name, value, and whether it is decorated."""
    found = _FIELD.fullmatch(line)
    if found is None:
        return
    marks = "".join(found[part] for part in ("lead", "end", "end2", "end3"))
    decorated = _DECORATION.search(marks) is not None
    label = found["label"].strip()
    field = _field_named(label)
    if field is not None:
        yield field, found["value"], decorated
    elif _WAYS.fullmatch(label):
        yield "transportation", f"{label}: {found['value'].strip()}", decorated


def _field_named(label: str) -> str | None:
    """The field with this name, a synonym of it, or a slip of the pen."""
    lowered = " ".join(label.lower().split())
    if lowered in _ALIASES:
        return _ALIASES[lowered]
    near = difflib.get_close_matches(lowered, _ALIASES, n=1, cutoff=0.85)
    return _ALIASES[near[0]] if near else None


def _unreadable(number: int, line: str, why: str) -> InvalidInput:
    shown = line.strip()
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return InvalidInput(f"line {number} of the plan cannot be read: {shown!r}: {why}")
