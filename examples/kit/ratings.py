"""How a person rates a round, from what they see to be wrong with the output before and after it."""

from __future__ import annotations

from ...engine.session.decisions import Rate

__all__ = ("compare",)


def compare(before: float, after: float, *, changed: bool, complained: bool) -> Rate:
    """A rating on the Likert scale of 1 to 5.

    Args:
        before: how much the person saw to be wrong with the output at their last act.
        after: how much they see to be wrong with it now.
        changed: whether the output is another one.
        complained: whether they had said so, and were asked nothing in return.
    """
    if after < before:
        return Rate(4 if after else 5, "It fits better.")
    if after > before:
        return Rate(1, "It fits worse than before.")
    if not after:
        return Rate(4 if changed else 3, "It fits, as far as I can see.")
    if changed:
        return Rate(2, "It changed, and fits no better.")
    return Rate(1 if complained else 2, "What is wrong with it is still wrong.")
