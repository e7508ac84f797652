"""Counts markers of translated English in pages, docstrings, comments, help and messages.

The markers find candidates. Whether a sentence is good is for a reader to decide.

``python tests/support/translated.py FILE ...`` lists the sentences to look at. Without files it
keeps the counts of today, which the tests hold: do that after you have rewritten something.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = (
    "KEPT",
    "LONGEST",
    "MARKERS",
    "PARTS",
    "files_of",
    "hits",
    "messages",
    "prose",
    "sentences",
    "spoken",
    "texts_of",
)

ROOT: Final = Path(__file__).resolve().parent.parent.parent
KEPT: Final = ROOT / "tests" / "words.json"
PARTS: Final = ("pages", "sources", "messages", "tests")

LONGEST: Final = 40
"""Words of the longest sentence that passes."""

MARKERS: Final = {
    name: re.compile(pattern)
    for name, pattern in {
        "headless who": r"(?:^|[.;:,(] |\b(?:and|so|that|to|from|of|with|for) )"
        r"[Ww]ho(?:ever)? (?!are you|is who)\w+",
        "headless what": r"(?:^|[.;:,] |\b(?:and|of|by|to|in|with|out) )[Ww]hat (?:is|was|were|"
        r"are|has|had|it|they|the|a|an|could|cannot|must|came|comes|goes)\b",
        "where for if": r"\b[Ww]here (?:an?|the|there|nothing|nobody|no|it|that|they|somebody|you|"
        r"none|this|one|several|others|both|what|each|\w+s? (?:is|are|was|were|has|have))\b",
        "is no": r"\b(?:is|are|was|were|holds?|has|have|makes?|needs?) no (?!longer|one|more)\w+",
        "stands": r"\b(?:stands?|stood)\b",
        "goes on": r"\b(?:[Gg]o(?:es|ing)?|[Ww]ent) on\b",
        "of its own": r"\bof (?:yours|ours|one's own|your own|its own|their own)\b",
        "nobody": r"\b(?:[Ss]ome|[Nn]o|[Ee]very)body\b",
        "beside": r"\bbesides?\b",
        "lest": r"\b(?:lest|for want of|to no avail|be it|so as to|wherever that)\b",
        "of each": r"(?:^|[.;:] )Of (?:an?|each|several|all|what|the)\b",
        "old term": r"\b(?:unsatisfactory|no-progress|led nowhere|desks?|witness(?:es)?|"
        r"outlooks?|remarks?)\b",
    }.items()
}

_LINE_COMMENT = re.compile(r"(?:^|\s\s)#(?!!) ?(?!type:|noqa|ruff:)(.*)$")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_SPEAKING = frozenset({"help", "short_help", "epilog"})


def hits(text: str) -> Counter[str]:
    """Counts the markers in a text, by name; ``long`` counts the sentences that are too long."""
    found: Counter[str] = Counter()
    for sentence in sentences(text):
        for name, marker in MARKERS.items():
            count = len(marker.findall(sentence))
            if count:
                found[name] += count
        if len(sentence.split()) > LONGEST:
            found["long"] += 1
    return found


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, each on one line, if they have more than three words."""
    for part in re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*[-*] ", text):
        words = part.split()
        if len(words) > 3:
            yield " ".join(words)


def prose(page: str) -> str:
    """A Markdown page without code, tables and HTML comments."""
    page = re.sub(r"\A---\n.*?\n---\n", "", page, flags=re.DOTALL)
    page = re.sub(r"```.*?```|<!--.*?-->", "", page, flags=re.DOTALL)
    page = re.sub(r"^(?:\|| {4}|\t).*$", "", page, flags=re.MULTILINE)
    return re.sub(r"`+[^`\n]*`+", "x", page)


def spoken(source: str) -> str:
    """The docstrings and comments of a Python module."""
    parts = [
        text
        for node in _statements(_parsed(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for text in _documented(node)
    ]
    block: list[str] = []
    for line in source.splitlines():
        comment = _LINE_COMMENT.search(line) if "#" in line else None
        if comment is not None:
            block.append(comment[1])
        elif block:
            parts.append("\n".join(block))
            block = []
    return prose("\n\n".join([*parts, "\n".join(block)]))


def messages(source: str) -> str:
    """The texts that a Python module raises, and the help of its options and commands."""
    found: list[str] = []
    tree = _parsed(source)
    # Options are looked for in all expressions, which takes most of the time, if there may be any.
    speaks = any(f"{name}=" in source for name in _SPEAKING)
    for node in ast.walk(tree) if speaks else _statements(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            found.extend(_texts(node.exc))
        elif isinstance(node, ast.keyword) and node.arg in _SPEAKING:
            found.extend(_texts(node.value))
    return prose("\n\n".join(found))


@lru_cache(maxsize=1)
def _parsed(source: str) -> ast.Module:
    """The module, which is read for what documents it and for its messages."""
    return ast.parse(source)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The module, and all statements in it at any depth."""
    waiting: list[ast.AST] = [tree]
    for node in waiting:
        yield node
        for name in _BLOCKS:
            inside = getattr(node, name, None)
            if isinstance(inside, list):
                waiting += inside


def _documented(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[str]:
    """The texts below a definition that document it, or a constant or attribute in it."""
    for child in node.body:
        value = child.value if isinstance(child, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value


def _texts(node: ast.AST) -> Iterator[str]:
    """The texts in an expression; what an f-string inserts reads as ``x``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "x"
            for part in node.values
        )
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)


def texts_of(file: Path, part: str) -> str:
    """The text of a file that belongs to a part."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return prose(text)
    return messages(text) if part == "messages" else spoken(text)


def files_of(part: str) -> Iterator[Path]:
    """The files of a part; prompts are texts for models, and belong to none."""
    for folder, names, files in os.walk(ROOT):
        names[:] = sorted(set(names) - {"build", "prompts", "__pycache__"})
        names[:] = [name for name in names if not name.startswith(".")]
        for file in (Path(folder, name) for name in sorted(files)):
            if file.suffix == ".md":
                if part == "pages":
                    yield file
            elif file.suffix == ".py":
                testing = file.is_relative_to(ROOT / "tests")
                if part == "tests" if testing else part in ("sources", "messages"):
                    yield file


def counts() -> dict[str, int]:
    """The markers by part."""
    return {
        part: sum(hits(texts_of(file, part)).total() for file in files_of(part)) for part in PARTS
    }


def main(paths: list[str]) -> None:
    """Lists the sentences of files to look at; without files, keeps the counts of today."""
    if not paths:
        KEPT.write_text(json.dumps(counts(), indent=2) + "\n", encoding="utf-8")
        sys.stdout.write(KEPT.read_text(encoding="utf-8"))
    for name in paths:
        for part in ("messages", "sources") if name.endswith(".py") else ("pages",):
            for sentence in sentences(texts_of(Path(name), part)):
                if marked := hits(sentence):
                    sys.stdout.write(f"{name}: {', '.join(marked)}: {sentence}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
