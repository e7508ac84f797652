"""Writes the pages of the reference that follow from the program: commands, HTTP, events, errors.

``python -m duolog.benchmarks.reference`` writes them into ``docs/reference``; ``make docs`` does so
before it builds the site, and a test holds the pages to the program.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from duolog.cli.app import app, built_from
from duolog.engine import errors
from duolog.engine.events import ACTS, EVENTS
from duolog.interop.http.limits import HttpLimits
from duolog.interop.http.openapi import describe
from typer import Context
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click.core import Command

__all__ = ("main", "pages")

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "reference"
_MADE: Final = "<!-- Made by python -m duolog.benchmarks.reference; edit the program instead. -->"
_HIDDEN: Final = ("--help",)


def main() -> None:
    """Writes the pages."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def pages() -> Mapping[str, str]:
    """The text of each page, by file name."""
    made = {
        "command-line.md": _command_line(),
        "http-api.md": _http(),
        "events.md": _events(),
        "errors.md": _errors(),
    }
    return {name: f"{_MADE}\n\n" + "\n".join(lines) + "\n" for name, lines in made.items()}


def _command_line() -> Iterator[str]:
    root = cast(TyperGroup, built_from(app))
    yield from (
        "# Command line",
        "",
        "Every command and option of `duolog`, as `--help` shows them. [Configuration](configuration.md) has the",
        "environment variables and exit codes. `--log-level` and `--log-format` may follow any command.",
        "",
    )
    yield from _command(root, "duolog", None, 2)


def _command(command: Command, path: str, parent: Context | None, level: int) -> Iterator[str]:
    """The section of a command, and those of the commands below it."""
    context = Context(command, parent=parent, info_name=path.rpartition(" ")[2])
    if parent is not None:
        yield from (f"{'#' * level} {path}", "", _lines(command.help or ""), "")
        usage = " ".join(command.collect_usage_pieces(context))
        yield from ("```text", f"{path} {usage}", "```", "")
    records = [
        record
        for parameter in command.get_params(context)
        if not set(parameter.opts) & set(_HIDDEN)
        and (record := parameter.get_help_record(context)) is not None
    ]
    if parent is None and isinstance(command, TyperGroup):
        yield from ("| command | what it does |", "|---|---|")
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                said = _escaped(_cell(below.get_short_help_str(200)))
                yield f"| [`{name}`](#{path}-{name}) | {said} |"
        yield from ("", "## Options of duolog", "")
    if records:
        yield from ("| argument or option | meaning |", "|---|---|")
        for names, meaning in records:
            yield f"| `{_cell(names)}` | {_escaped(_cell(meaning))} |"
        yield ""
    if command.epilog:
        yield from _epilog(command.epilog)
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _command(found, f"{path} {name}", context, level)


def _epilog(epilog: str) -> Iterator[str]:
    """The examples and the note below a command's help."""
    for part in epilog.split("\n\n"):
        lines = [line for line in part.splitlines() if line != "\b"]
        if part.startswith("\b"):
            title, *rest = lines
            yield from (title.rstrip(), "", "```text")
            yield from (line.removeprefix("  ") for line in rest)
            yield from ("```", "")
        elif lines:
            yield from (_escaped(" ".join(" ".join(lines).split())), "")


def _http() -> Iterator[str]:
    described = describe(HttpLimits(), traces=True)
    yield from (
        "# HTTP API",
        "",
        "The requests of `duolog serve`, rendered from the OpenAPI 3.1 description that it serves at",
        "`/openapi.json`. [A log over HTTP](../http.md) is the guide.",
        "",
    )
    refusals: dict[str, str] = {}
    for path, operations in described["paths"].items():
        for method, one in operations.items():
            if method == "parameters":
                continue
            yield from (f"## {method.upper()} {path}", "", _escaped(one.get("summary", "")), "")
            parameters = [*operations.get("parameters", ()), *one.get("parameters", ())]
            if parameters:
                yield from ("| parameter | in | meaning |", "|---|---|---|")
                for given in parameters:
                    meaning = _escaped(_cell(given.get("description", "")))
                    yield f"| `{given['name']}` | {given['in']} | {meaning} |"
                yield ""
            answers = {
                status: _escaped(_cell(answer.get("description", "")))
                for status, answer in one["responses"].items()
            }
            yield from (f"**200**: {answers.pop('200')}", "")
            if answers:
                yield from (f"Refusals: {', '.join(answers)}.", "")
            refusals |= answers
    yield from ("## Refusals", "", "| status | reason |", "|---|---|")
    yield from (f"| {status} | {reason} |" for status, reason in sorted(refusals.items()))
    yield ""


def _events() -> Iterator[str]:
    yield from (
        "# Events",
        "",
        "Every kind of event that a log holds, with the fields of its body. Acts are the events that count as",
        "the act of a human or an agent; rounds follow from them.",
        "",
        "| event | meaning |",
        "|---|---|",
    )
    for name, event in EVENTS.items():
        summary, _ = _documented(event)
        act = "act. " if name in ACTS else ""
        yield f"| [{name}](#{name.lower()}) | {act}{_cell(summary)} |"
    yield ""
    for name, event in EVENTS.items():
        summary, fields = _documented(event)
        yield from (f"## {name}", "", summary, "", f"Schema {event.schema}.", "")
        if fields:
            yield from ("| field | meaning |", "|---|---|")
            yield from (f"| `{field}` | {_cell(text)} |" for field, text in fields)
            yield ""


def _errors() -> Iterator[str]:
    yield from (
        "# Errors",
        "",
        "Every error that Duolog raises on purpose is a `DuologError`, so a caller can choose how much to catch.",
        "At the command line an error is one line, and the exit code is 2.",
        "",
        "| error | is a | when |",
        "|---|---|---|",
    )
    for error in _tree(errors.DuologError):
        summary = _documented(error)[0]
        base = error.__bases__[0].__name__
        yield f"| `{error.__name__}` | `{base}` | {_escaped(_cell(summary))} |"


def _tree(root: type[errors.DuologError]) -> Iterator[type[errors.DuologError]]:
    """An error and the errors below it that the module defines, in their order there."""
    yield root
    for below in root.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _tree(below)


def _documented(thing: type) -> tuple[str, list[tuple[str, str]]]:
    """The first paragraph of a class's docstring, and its attributes with their meaning."""
    text = inspect.cleandoc(thing.__doc__ or "")
    above, _, attributes = text.partition("Attributes:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", attributes, re.MULTILINE)
    summary = " ".join(above.split("\n\n")[0].split())
    return _code(summary), [(name, _code(" ".join(said.split()))) for name, said in found]


def _lines(help_text: str) -> str:
    """The help of a command as paragraphs; a list that keeps its lines is shown as it is."""
    parts = []
    for part in inspect.cleandoc(help_text).split("\n\n"):
        if part.startswith("\b"):
            parts.append("```text\n" + part.removeprefix("\b").strip("\n") + "\n```")
        else:
            parts.append(_escaped(" ".join(part.split())))
    return "\n\n".join(parts)


def _code(text: str) -> str:
    return _escaped(text.replace("``", "`"))


def _escaped(text: str) -> str:
    """Text in which no angle bracket or star is taken for markup, apart from code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([<>*_])", r"\\\1", part) for part in parts
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
