"""What is new in a version of the shared output, for somebody who knows an earlier one."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ("new_lines", "new_words")


def new_lines(old: Sequence[str], new: Sequence[str]) -> str:
    """The lines of ``new`` that ``old`` does not hold anywhere: what a reader has to look at.

    A line that was changed is read as a whole; one that was moved need not be read again, and what
    was deleted cannot be. Linear in time.
    """
    if not old:
        return "\n".join(new)
    known = frozenset(old)
    return "\n".join([line for line in new if line not in known])


def new_words(old: Sequence[str], new: Sequence[str]) -> str:
    """The words of ``new_lines`` that the lines given up for them did not hold: what was written.

    So a changed word costs a word, and a moved line costs nothing.
    """
    fresh = new_lines(old, new)
    gone = frozenset(old).difference(new)
    if not fresh or not gone:
        return fresh
    known = set(" ".join(gone).split())
    return " ".join([word for word in fresh.split() if word not in known])
