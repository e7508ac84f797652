"""Normalises the value of a plan's field: removes what people and models write around it.

Every rule leaves a normal value as it is. Names of places are data and may hold anything
(asterisks, dollar signs, parentheses, commas), so that only what follows the city is cut, and only
where it looks like a price or a remark.
"""

from __future__ import annotations

import re

from .plan import BLANK

__all__ = ("tidy",)

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

# What follows the city: prices with or without a word for them, and labelled remarks.
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
