"""Markdown as HTML: built from its tokens, so that nothing in it is taken over as it stands.

Raw HTML is text. Links and pictures lead nowhere: their addresses are shown, and not loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from .html import EMPTY, Html, Node, join, tag

__all__ = ("markdown",)

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

_SAME: Final = {
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "em": "em",
    "list_item": "li",
    "s": "s",
    "strong": "strong",
    "table": "table",
    "tbody": "tbody",
    "td": "td",
    "th": "th",
    "thead": "thead",
    "tr": "tr",
}


def markdown(text: str) -> Html:
    """A text in Markdown as HTML."""
    return _children(SyntaxTreeNode(_PARSER.parse(text)))


def _children(node: SyntaxTreeNode) -> Html:
    return join([_node(child) for child in node.children])


def _node(node: SyntaxTreeNode) -> Node:
    if (same := _SAME.get(node.type)) is not None:
        return tag(same, _children(node))
    make = _MADE.get(node.type)
    return join(node.content, _children(node)) if make is None else make(node)


def _paragraph(node: SyntaxTreeNode) -> Html:
    return _children(node) if node.hidden else tag("p", _children(node))


def _heading(node: SyntaxTreeNode) -> Html:
    # The page has headings of its own: one in a message is not among them.
    return tag("p", _children(node), class_=f"heading {node.tag}")


def _ordered(node: SyntaxTreeNode) -> Html:
    start = node.attrs.get("start")
    return tag("ol", _children(node), start=start if isinstance(start, int) else None)


def _link(node: SyntaxTreeNode) -> Html:
    text, target = _children(node), str(node.attrs.get("href", ""))
    address = None if text.text == join(target).text else tag("span", f" <{target}>", class_="to")
    return tag("span", text, address, class_="inert", title=target)


def _image(node: SyntaxTreeNode) -> Html:
    target = str(node.attrs.get("src", ""))
    return tag("span", f"[picture: {node.content or target}]", class_="inert", title=target)


_MADE: Mapping[str, Callable[[SyntaxTreeNode], Node]] = {
    "paragraph": _paragraph,
    "heading": _heading,
    "ordered_list": _ordered,
    "link": _link,
    "image": _image,
    "inline": _children,
    "text": lambda node: node.content,
    "softbreak": lambda node: tag("br"),
    "hardbreak": lambda node: tag("br"),
    "hr": lambda node: tag("hr"),
    "code_inline": lambda node: tag("code", node.content),
    "code_block": lambda node: tag("pre", tag("code", node.content)),
    "fence": lambda node: tag("pre", tag("code", node.content)),
    "root": lambda node: EMPTY,
}
