"""HTML by construction, and texts from a log in it: nothing runs, loads or hides."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from duolog.engine.events import MessageSent
from duolog.engine.log.open import MemoryLog
from duolog.interop.workbench.access.identity import Identity
from duolog.interop.workbench.markup import records
from duolog.interop.workbench.markup.html import Html, join, tag
from duolog.interop.workbench.markup.text import TEXT_LIMIT, markdown, plain, rich_text
from duolog.interop.workbench.participation.entries import shown_entry
from duolog.interop.workbench.session.reading import SessionReading
from duolog.interop.workbench.session.transcript import Transcript
from duolog.scoring.trajectory.options import Options
from duolog.testing import by


class Elements(HTMLParser):
    """The elements and attributes that a browser finds."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(name for name, _ in attrs)


HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)> & \"quotes\" 'too'"


def test_text_is_escaped_wherever_it_stands() -> None:
    made = tag("p", HOSTILE, ["a", [1, None]], title=HOSTILE).text
    assert made.count("<") == 2
    assert "&lt;script&gt;" in made
    assert made.count('"') == 2
    assert tag("input", value=HOSTILE, hidden=True, disabled=False).text.startswith("<input value=")


@pytest.mark.parametrize(
    "attributes",
    [
        {"onclick": "x()"},
        {"style": "color: red"},
        {"href": "https://example.org"},
        {"href": "//example.org"},
        {"href": "javascript:alert(1)"},
        {"src": "data:text/html,x"},
        {"a b": "c"},
        {"srcset": "/x"},
    ],
)
def test_nothing_can_be_made_that_runs_or_leads_elsewhere(attributes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"attribute|link"):
        tag("a", "x", **attributes)


def test_html_is_made_of_elements_only() -> None:
    with pytest.raises(TypeError, match="never from a text"):
        Html("<b>", None)
    for name in ("script>", "a b", ""):
        with pytest.raises(ValueError, match="unknown element"):
            tag(name)
    with pytest.raises(ValueError, match="unknown element"):
        tag("script", "alert(1)")


def test_markdown_is_read() -> None:
    html = markdown("# Plan\n\n1. *one*\n2. `two`\n\n> **so**\n\n|a|b|\n|-|-|\n|1|2|")
    assert html is not None
    found = html.text
    for part in ("<ol", "<em>one</em>", "<code>two</code>", "<strong>so</strong>", "<td>2</td>"):
        assert part in found
    assert "<h1" not in found


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "[click](javascript:alert(1))",
        "[click](https://evil.example 'title')",
        "![pixel](https://evil.example/x.png)",
        "<https://evil.example>",
        "<iframe src='//evil.example'></iframe>",
        "```html\n<script>alert(1)</script>\n```",
        "[x]: https://evil.example\n\n[x]",
        "| a |\n|:-|\n| <b onclick=x> |",
        "&lt;script&gt; &#60;script&#62;",
    ],
)
def test_markdown_leads_nowhere_and_loads_nothing(text: str) -> None:
    parser = Elements()
    parser.feed(str(markdown(text)))
    assert parser.names <= {"p", "span", "pre", "code", "table", "thead", "tbody", "tr", "th", "td"}
    assert parser.attributes <= {"class", "title"}


def test_control_characters_and_marks_that_turn_text_round_are_visible() -> None:
    found = plain("a\x1b[31mred\u202eevil\x00").text
    assert "\x1b" not in found
    assert "\u202e" not in found
    assert "␛[31m" in found
    assert "␀" in found
    assert 'dir="auto"' in found


def test_of_a_huge_text_the_beginning_is_shown() -> None:
    huge = "*x* " * TEXT_LIMIT
    found = rich_text(huge).text
    assert len(found) < TEXT_LIMIT + 500
    assert "60,000 more characters" in found
    assert "<em>" not in found


def test_nested_markdown_ends() -> None:
    deep = join(rich_text("> " * 5000 + "x"), rich_text("[" * 5000), rich_text("**" * 5000)).text
    assert len(deep) < 200_000


@pytest.mark.parametrize(
    "text",
    [
        "*" * 600 + "a" + "*" * 600,
        "**a " * 300 + "a** " * 300,
        "|a" * 80 + "\n" + "|-" * 80 + "\n" + "|\n" * 9000,
    ],
)
def test_what_is_too_much_for_markdown_is_shown_as_it_is(text: str) -> None:
    found = rich_text(text).text
    assert "Shown as it is: formatting it would take too much." in found
    assert "<em>" not in found
    assert text[:100] in found


async def test_a_record_that_cannot_be_shown_is_shown_as_text_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(text: str) -> None:
        raise RecursionError("no end")

    monkeypatch.setattr(records, "rich_text", fails)
    operator = Identity("operator")
    async with MemoryLog() as log:
        await log.append("s", [by("human", MessageSent(text="<b>hello"), actor="ann")])
        reading = SessionReading(log, "s", operator, Options())
        await reading.refresh()
        [*_, found] = await Transcript(log, reading, operator).part(1, 1)
        (record,) = [one async for one in log.read("s")]
    shown = shown_entry(record, "ann")
    assert shown is not None
    assert (shown["version"], shown["kind"]) == (record.version, "MessageSent")
    for html in (found.text, str(shown["html"])):
        assert "This MessageSent cannot be shown. Its text:" in html
        assert "&lt;b&gt;hello" in html
