"""Texts from a log on a page: nothing in them runs, loads, hides or reorders what stands around."""

from __future__ import annotations

from typing import Final

from ....engine.display import clean
from ....engine.text import quantity
from .html import Html, tag
from .markdown import markdown

__all__ = ("MARKDOWN_LIMIT", "TEXT_LIMIT", "plain", "rich_text", "shown")

MARKDOWN_LIMIT: Final = 20_000
"""Characters of a text that is read as Markdown at most; a longer one is shown as it is."""

TEXT_LIMIT: Final = 20_000
"""Characters of a text that are shown at first."""


def shown(text: str, limit: int = TEXT_LIMIT) -> tuple[str, int]:
    """The beginning of a text with control characters made visible, and how much is left out."""
    return clean(text[:limit]), max(len(text) - limit, 0)


def plain(text: str, *, limit: int = TEXT_LIMIT, class_: str = "plain") -> Html:
    """A text as it is, line by line; of a huge one its beginning, and how much is left out."""
    beginning, left = shown(text, limit)
    more = tag("p", f"… {quantity(left, 'more character')}", class_="left-out") if left else None
    return tag("div", tag("pre", beginning, dir="auto"), more, class_=class_)


def rich_text(text: str) -> Html:
    """A text as Markdown, in which links and pictures are inert; as it is, where it is long."""
    if len(text) > MARKDOWN_LIMIT:
        return plain(text)
    return tag("div", markdown(clean(text)), class_="markdown", dir="auto")
