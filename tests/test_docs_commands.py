"""Every command that a page shows exists and takes its options: in blocks, indented, or in a line.

``test_docs_snippets.py`` runs the commands of console blocks; this parses all of them, and runs none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from documents import code_spans, page_files, prose
from duolog.cli.app import app, built_from
from typer import Context, TyperException
from typer._click.core import Command
from typer.core import TyperGroup

ROOT = Path(__file__).parents[1]
PAGES = [page for page in page_files(ROOT) if "duolog " in page.read_text(encoding="utf-8")]

SHOWN = re.compile(r"^(?:    |\$ |    \$ )?(duolog [a-z].*)$")
MORE = re.compile(r"\\\n\s*")
REDIRECTED = re.compile(r"\s(?:[|&>]|2>)\s?.*$")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
EVERYWHERE = {"--help", "--log-level", "--log-format"}


@cache
def program() -> TyperGroup:
    made = built_from(app)
    assert isinstance(made, TyperGroup)
    return made


def shown(page: Path) -> Iterator[str]:
    """The commands on lines of their own: indented, after a prompt, or in a block of text."""
    fenced = False
    for line in MORE.sub(" ", page.read_text(encoding="utf-8")).splitlines():
        fenced ^= line.startswith("```")
        found = SHOWN.match(line)
        if found is not None and (fenced or line[0] in " $"):
            yield found[1]


def parse(words: list[str]) -> None:
    """Parses a command as the program does.

    Raises:
        TyperException: the command, an option or a value is wrong.
    """
    group: TyperGroup = program()
    context = Context(group, info_name="duolog")
    while True:
        name, command, words = group.resolve_command(context, words)
        assert command is not None
        if not isinstance(command, TyperGroup):
            command.make_context(name, words, parent=context)
            return
        group, context = command, Context(command, parent=context, info_name=name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_their_own_lines_parse(page: Path) -> None:
    wrong = []
    for command in shown(page):
        # Usage lines name their parts in capitals and brackets.
        if re.search(r"\[|\{|\.\.\.", command):
            continue
        words = shlex.split(REDIRECTED.sub("", command), comments=True)[1:]
        for index, word in enumerate(words):
            if word in ("--log-level", "--log-format") and "--" not in words[:index]:
                del words[index : index + 2]
                break
        if not words or "-h" in words or "--help" in words:
            continue
        try:
            parse(words)
        except TyperException as error:
            wrong.append(f"{command}: {error.format_message()}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_named_within_lines_exist(page: Path) -> None:
    wrong = []
    for code in code_spans(prose(page)):
        if not re.match(r"duolog [a-z]", code):
            continue
        words = code.removeprefix("duolog ").split(" -- ")[0].split()
        found: Command | None = program()
        while isinstance(found, TyperGroup) and words and words[0].islower():
            found = found.get_command(Context(found), words.pop(0))
        if found is None:
            wrong.append(f"{code}: no such command")
        elif not isinstance(found, TyperGroup):
            params = found.get_params(Context(found))
            known = {option for one in params for option in (*one.opts, *one.secondary_opts)}
            strange = {*OPTION.findall(" ".join(words))} - known - EVERYWHERE
            wrong += [f"{code}: {option}" for option in strange]
    assert wrong == []


def test_a_wrong_command_is_found() -> None:
    for words in (["rport", "a.db"], ["report", "a.db", "--jsn"], ["run"], ["serve"]):
        with pytest.raises(TyperException):
            parse(words)
