"""Texts from a log on a page: they cannot run, load, or disturb the rest of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CLexer, CppLexer
from pygments.lexers.configs import TOMLLexer
from pygments.lexers.css import CssLexer
from pygments.lexers.data import JsonLexer, YamlLexer
from pygments.lexers.go import GoLexer
from pygments.lexers.html import HtmlLexer
from pygments.lexers.javascript import JavascriptLexer, TypeScriptLexer
from pygments.lexers.jvm import JavaLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.ruby import RubyLexer
from pygments.lexers.rust import RustLexer
from pygments.lexers.shell import BashLexer
from pygments.lexers.sql import SqlLexer
from pygments.token import Token as CodeToken

from ....engine.budget import Budget
from ....engine.text import quantity
from ....scoring.display.texts import clean
from .html import EMPTY, Html, Node, join, tag

__all__ = ("TEXT_LIMIT", "code_text", "markdown", "plain", "rich_text")

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

_COLOURS: Final = (
    (CodeToken.Comment, "tok-comment"),
    (CodeToken.Keyword, "tok-keyword"),
    (CodeToken.Literal.String, "tok-text"),
    (CodeToken.Literal.Number, "tok-number"),
    (CodeToken.Name.Function, "tok-name"),
    (CodeToken.Name.Class, "tok-name"),
    (CodeToken.Name.Tag, "tok-keyword"),
)
"""The classes of the pieces of code that have a colour."""

# Named one by one: to look for a language, Pygments reads the packages that are installed.
_LANGUAGES: Final[Mapping[str, type[Lexer]]] = {
    name: kind
    for kind, names in {
        BashLexer: ("bash", "sh", "shell", "console", "zsh"),
        CLexer: ("c", "h"),
        CppLexer: ("cpp", "cc", "hpp", "c++"),
        CssLexer: ("css",),
        GoLexer: ("go",),
        HtmlLexer: ("html", "htm", "xml", "svg"),
        JavaLexer: ("java",),
        JavascriptLexer: ("js", "jsx", "mjs", "javascript"),
        JsonLexer: ("json", "jsonl"),
        PythonLexer: ("py", "pyi", "python", "python3"),
        RubyLexer: ("rb", "ruby"),
        RustLexer: ("rs", "rust"),
        SqlLexer: ("sql",),
        TOMLLexer: ("toml",),
        TypeScriptLexer: ("ts", "tsx", "typescript"),
        YamlLexer: ("yaml", "yml"),
    }.items()
    for name in names
}
"""The languages with colours, by names in Markdown and by suffixes of files."""
_CODE: Final = 20_000  # characters of a code with colours

_BUDGET: Final = Budget(size=20_000, objects=10_000, depth=50)
"""Limits for a text that is read as Markdown: characters, cells of tables, and levels."""

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


def markdown(text: str) -> Html | None:
    """A text in Markdown as HTML; None if it is too long, or nests too deeply, to be read so."""
    if len(text) > _BUDGET.size or _cells(text) > _BUDGET.objects:
        return None
    tokens = _PARSER.parse(text)
    if _depth(tokens) > _BUDGET.depth:
        return None
    return _children(SyntaxTreeNode(tokens))


def _cells(text: str) -> int:
    """How many cells the tables in a text have at most: each row has as many as the head."""
    lines = text.splitlines()
    return len(lines) * max((line.count("|") for line in lines), default=0)


def _depth(tokens: Iterable[Token]) -> int:
    """How many levels tokens nest, with those inside of lines."""
    deepest = level = 0
    for token in tokens:
        level += token.nesting
        deepest = max(deepest, level + _depth(token.children or ()))
    return deepest


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
    # Headings in a message must not mix with the page's own headings.
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
    "fence": lambda node: tag("pre", tag("code", _coloured(node.content, node.info))),
    "root": lambda node: EMPTY,
}


# --- texts from a log on a page -------------------------------------------------------------------


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


def code_text(text: str, path: str) -> Html:
    """The text of a file, coloured by the language that its name says."""
    if len(text) > TEXT_LIMIT:
        return plain(text)
    return tag("div", tag("pre", _coloured(clean(text), path), dir="ltr"), class_="plain")


def _coloured(text: str, name: str) -> Node:
    """A text as coloured pieces; as it is if it is long, or in none of the languages that are known."""
    language = name.strip().rpartition(".")[2].lower()
    if language not in _LANGUAGES or len(text) > _CODE:
        return text
    return [
        tag("span", piece, class_=colour) if (colour := _colour(kind)) else piece
        for kind, piece in _lexer(language).get_tokens(text)
    ]


@cache
def _lexer(language: str) -> Lexer:
    """Made when it is first used: its patterns take long to compile, and most pages show few languages."""
    return _LANGUAGES[language](ensurenl=False, stripnl=False)


def _colour(kind: object) -> str:
    return next((name for parent, name in _COLOURS if kind in parent), "")


def rich_text(text: str) -> Html:
    """A text as Markdown, in which links and pictures are inert; as it is if Markdown is too much."""
    found = markdown(clean(text))
    if found is None:
        note = "Shown as it is: formatting it would take too much."
        return tag("div", plain(text), tag("p", note, class_="left-out"))
    return tag("div", found, class_="markdown", dir="auto")
