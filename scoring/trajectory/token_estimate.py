"""Counts the tokens of a text: a protocol for counters, and an estimate that works offline."""

from __future__ import annotations

from typing import Protocol

__all__ = ("TokenCounter", "estimate_tokens")

_OTHERS = bytes(code for code in range(33, 127) if not chr(code).isalpha())
"""ASCII digits and punctuation."""

# Least squares over chat messages, prose, plans, code and JSON, against the mean of two common
# byte-pair encodings (cl100k_base and o200k_base), rounded to two digits.
_PER_GAP = 0.3
_PER_LETTER = 0.17
_PER_OTHER = 0.62
_PER_EXTRA_BYTE = 0.35


class TokenCounter(Protocol):
    """Counts the tokens of a text. Any function of this shape will do, e.g. a model's tokenizer.

    It has to be deterministic, and quick: it runs once for each message and each changed text.
    """

    def __call__(self, text: str, /) -> int:
        """Number of tokens of ``text``; 0 for the empty text."""
        ...


def estimate_tokens(text: str) -> int:
    """About as many tokens as common byte-pair encodings make of a text, in linear time.

    A weighted count of white space, letters, digits and punctuation, and of the bytes that UTF-8
    needs beyond one per character. Against the mean of cl100k_base and o200k_base, long texts are
    within 10 % in English, German and French prose, chat, travel plans, code and JSON, and within
    25 % in Chinese, Japanese and Russian; half of single chat messages are within 7 %.
    """
    if not text:
        return 0
    data = text.encode("utf-8", "surrogatepass")
    size = len(data)
    length = len(text)
    others = size - len(data.translate(None, _OTHERS))
    gaps = data.count(b" ") + data.count(b"\n")
    estimate = (
        _PER_GAP * (gaps + 1)
        + _PER_LETTER * (length - others - gaps)
        + _PER_OTHER * others
        + _PER_EXTRA_BYTE * (size - length)
    )
    return int(estimate + 0.5) or 1
