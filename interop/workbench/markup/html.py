"""HTML built from elements: anything else is text, and is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias, final

__all__ = ("EMPTY", "Html", "Node", "document", "join", "tag")

_VOID: Final = frozenset({"br", "hr", "input", "link", "meta"})
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_ATTRIBUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_LINKS: Final = frozenset({"action", "href", "src"})
_REFUSED: Final = frozenset({"style", "srcdoc", "srcset", "formaction", "background", "ping"})


@final
class Html:
    """A piece of HTML. Only this module makes one, from elements and from text that it escapes.

    Attributes:
        text: the piece.
    """

    __slots__ = ("text",)

    def __init__(self, text: str, key: object) -> None:
        if key is not _KEY:
            raise TypeError("HTML is built with tag() and join(), never from a text")
        self.text = text

    def __str__(self) -> str:
        return self.text


_KEY: Final = object()

Node: TypeAlias = "Html | str | int | Iterable[Node] | None"
"""Valid contents of an element: elements, texts, numbers, sequences of these, or None."""

EMPTY: Final = Html("", _KEY)
"""Nothing."""


def tag(name: str, /, *children: Node, **attributes: str | float | bool | None) -> Html:
    """An element.

    Args:
        name: the name of the element.
        children: its contents.
        attributes: by name; a trailing underscore is left out, others are hyphens. True stands
            for an attribute without a value; False and None for none. Links lead to this server
            only.

    Raises:
        ValueError: a name that no element or attribute has, a handler or a style in an attribute,
            or a link that leads elsewhere.
    """
    if not _NAME.fullmatch(name) or name in ("script", "style") and children:
        raise ValueError(f"unknown element {name!r} here")
    opening = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{opening}>", _KEY)
    return Html(f"<{name}{opening}>{_inner(children)}</{name}>", _KEY)


def join(*children: Node) -> Html:
    """Elements and texts in a row."""
    return Html(_inner(children), _KEY)


def document(head: Html, body: Html) -> str:
    """A whole page."""
    return f'<!DOCTYPE html>\n<html lang="en">{head}{body}</html>\n'


def _inner(children: Iterable[Node]) -> str:
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(child.text)
        elif isinstance(child, str):
            parts.append(escape(child))
        elif isinstance(child, int):
            parts.append(str(child))
        else:
            parts.append(_inner(child))
    return "".join(parts)


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if not _ATTRIBUTE.fullmatch(name) or name in _REFUSED or name.startswith("on"):
        raise ValueError(f"unknown attribute {name!r} here")
    if value is True:
        return f" {name}"
    text = str(value)
    if name in _LINKS and not (text.startswith(("/", "#", "?")) and not text.startswith("//")):
        raise ValueError(f"a link leads to this server only, not to {text!r}")
    return f' {name}="{escape(text)}"'
