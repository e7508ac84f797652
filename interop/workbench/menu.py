"""The menu *Export* of a page: files that the server makes, to which the page adds its figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from .markup.html import Html, tag

__all__ = ("Export", "export_menu")

_NAMES: Final = {"csv": "CSV", "json": "JSON", "jsonl": "JSON Lines", "md": "Markdown"}


class Export(NamedTuple):
    """Something that a page offers as files.

    Attributes:
        name: of it, as the menu shows it.
        path: the path of the route that makes the files.
        parameters: the parameters of the address, apart from ``format``.
        forms: the values of ``format``.
    """

    name: str
    path: str
    parameters: Sequence[tuple[str, str]]
    forms: Sequence[str]


def export_menu(exports: Sequence[Export]) -> Html:
    """The menu of a page: the server's files; the page's script adds its figures and tables."""
    rows = [
        tag(
            "p",
            tag("span", one.name),
            [
                tag(
                    "a",
                    _NAMES[form],
                    href=f"{one.path}?{urlencode([*one.parameters, ('format', form)])}",
                    download=True,
                    aria_label=f"{one.name} as {_NAMES[form]}",
                )
                for form in one.forms
            ],
        )
        for one in exports
    ]
    summary = tag("summary", "Export", aria_label="Export what is on this page")
    return tag("details", summary, tag("div", rows, id="exports"), id="export", class_="menu")
