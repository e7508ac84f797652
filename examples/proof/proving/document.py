"""The shared output: claims and lemmas with their proofs, in plain text, step by step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from ....engine.events import JSON
from ....engine.text import text_of

__all__ = (
    "Document",
    "Kind",
    "Section",
    "Step",
    "read_document",
    "render_document",
    "render_section",
    "section_key",
)

Kind: TypeAlias = Literal["Claim", "Lemma"]

_MACHINE: Final = "Checked by machine."
_DOUBT: Final = "(?)"
_LENGTH: Final = 40_000


class Step(msgspec.Struct, frozen=True):
    """A line of a proof.

    Attributes:
        name: the name by which other steps cite it, such as ``A2``.
        text: its claim.
        reason: why, as written in brackets.
        doubt: whether its author marked it as doubtful.
    """

    name: str
    text: str
    reason: str
    doubt: bool = False


class Section(msgspec.Struct, frozen=True):
    """A claim or a lemma, with its proof.

    Attributes:
        kind: which of them.
        label: such as ``A`` or ``L1``.
        claim: the claim as it is written.
        fails: the number at which the claim as first stated is said to fail; None if it is not said to.
        steps: the steps of the proof; empty if there is none yet.
        machine: whether it says that a machine has checked it.
        unread: lines that could not be parsed.
    """

    kind: Kind
    label: str
    claim: str
    fails: int | None = None
    steps: tuple[Step, ...] = ()
    machine: bool = False
    unread: tuple[str, ...] = ()


Document: TypeAlias = Mapping[str, Section]
"""The sections by their labels, in order."""

_HEAD = re.compile(r"(Claim|Lemma) ([A-Z]\d{0,2}): (.+)")
_STEP = re.compile(r"([A-Z]\d{0,2}\.\d{1,2}) (.+?) \[([^\]]*)\]( \(\?\))?")
_FAILS = re.compile(r"As first stated it fails at n = (-?\d{1,9})\.")


@lru_cache(maxsize=512)
def _sections(text: str) -> tuple[Section, ...]:
    found: list[Section] = []
    for raw in text[:_LENGTH].splitlines():
        line = raw.strip()
        head = _HEAD.fullmatch(line)
        if head is not None:
            kind: Kind = "Claim" if head[1] == "Claim" else "Lemma"
            found.append(Section(kind, head[2], head[3]))
        elif line and found:
            found[-1] = _with_line(found[-1], line)
    return tuple(found)


def read_document(content: JSON) -> Document:
    """The sections of an output; a later one with the same label counts. Never refuses a text."""
    return {section.label: section for section in _sections(text_of(content))}


def render_document(sections: Sequence[Section]) -> str:
    """The text of sections, in order."""
    return "\n\n".join(render_section(section) for section in sections)


def render_section(section: Section) -> str:
    """The text of a section."""
    lines = [f"{section.kind} {section.label}: {section.claim}"]
    if section.fails is not None:
        lines.append(f"As first stated it fails at n = {section.fails}.")
    if section.machine:
        lines.append(_MACHINE)
    for step in section.steps:
        doubt = f" {_DOUBT}" if step.doubt else ""
        lines.append(f"{step.name} {step.text} [{step.reason}]{doubt}")
    return "\n".join((*lines, *section.unread))


@lru_cache(maxsize=4096)
def section_key(section: Section) -> str:
    """A key that is equal for two versions of a section if they are the same proof of the same claim."""
    steps = tuple(msgspec.structs.replace(step, doubt=False) for step in section.steps)
    return render_section(msgspec.structs.replace(section, steps=steps, machine=False))


def _with_line(section: Section, line: str) -> Section:
    fails = _FAILS.fullmatch(line)
    if fails is not None:
        return msgspec.structs.replace(section, fails=int(fails[1]))
    if line == _MACHINE:
        return msgspec.structs.replace(section, machine=True)
    step = _STEP.fullmatch(line)
    if step is None:
        return msgspec.structs.replace(section, unread=(*section.unread, line))
    new = Step(step[1], step[2], step[3], step[4] is not None)
    return msgspec.structs.replace(section, steps=(*section.steps, new))
