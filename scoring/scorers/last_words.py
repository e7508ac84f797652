"""Reads from a person's words whether their request is settled, not settled, or neither.

Most of the evidence is in the labels of ``turns``. Phrases add the rest: something works or fails
in the world, or the person gives up. The rules are free, deterministic, offline, and sometimes
wrong. A test checks precision and recall on labelled texts, half of which were unseen when the
rules were written.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from ..turns import Label, Turn, annotate

__all__ = ("Standing", "standing")

Standing: TypeAlias = Literal["resolved", "unresolved", "open"]
"""``resolved``: done, it works, or thanks and no more. ``unresolved``: wrong, not working, asked
again, or given up. ``open``: an answer, a question, a further request, or anything else.
"""


def _any(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{'|'.join(phrases)})(?![\w'])", re.IGNORECASE)


_NEGATED = (
    r"(?:(?:does|do|did|is|are|was|were|has|have|could|can|wo)n't|(?:ca|could|wo)n't|cannot|"
    r"(?:does|do|did|is|are|was|were|has|have|will|can|could) not)"
)
_IT = r"(?:it|that|this|they|these|those|you|the \w+|\w+ \w+)"

_UNRESOLVED = _any(
    # it does not do what it should
    rf"{_NEGATED} (?:even |really |actually )?(?:work|help|fix|solve|answer|run|compile|open|load|exist|change|"
    r"arrive|log in|connect|start|print|show|make sense|what i|right|correct|true|an answer|helpful|"
    r"good|fixed|solved|working|my|the one|there|listen|read|understand|find|get)(?:ed|s|ing)?",
    r"not (?:what i|fixed|solved|helpful|working|resolved|right|correct|good enough|the one)",
    r"(?:no|not any) (?:luck|use|help|change|improvement)",
    r"(?:none|neither) of (?:this|that|these|those|them|your)[\w ]* (?:work|help|fit|exist)(?:ed|s)?",
    r"nothing (?:changed|changes|happens|happened|works|worked|helps|helped|has changed|has happened)",
    r"makes? no sense",
    r"wrong",
    r"incorrect",
    r"mistakes?",
    r"broken",
    r"fails?",
    r"failed",
    r"crash(?:es|ed|ing)?",
    r"throws?",
    r"raises an? \w+",
    r"same (?:error|problem|issue|link|answer|mistake|thing)",
    r"(?:problem|issue|error)s? (?:persists?|remains?|is back|came back)",
    r"(?<!no )(?<!without )(?<!without an )(?<!without any )(?:error|denied|invalid|black|empty|blank|missing|gone)(?=\W*(?:$|[,.;]))",
    r"never (?:arrived|came|worked|got|received)",
    r"still (?:the|no|not|missing|broken|wrong|waiting|nothing|can't|cannot|does|do|get|getting|on|in|has|have|is)",
    r"(?:worse|slower) (?:than|now)",
    r"undo (?:that|this|it)",
    r"hallucinat(?:ion|ing|ed|es?)",
    # it is given up
    r"never ?mind",
    r"forget (?:it|about it|that)",
    r"give up",
    r"(?:do|fix|write|handle|look up|find|book|call) (?:it|this|that|them) (?:all )?(?:myself|instead|on my own)",
    r"(?:ask|try|find|use|call|hire) (?:somebody|someone|something|somewhere|anybody) else",
    r"(?:real|actual|live|another) (?:human|person|agent)",
    r"a human(?: being| agent)?",
    r"(?:your|the|a) (?:manager|supervisor)",
    r"competitor",
    r"cancel my (?:account|subscription)",
    r"(?:don't|do not) have time for this",
    r"going (?:anywhere|nowhere|in circles)",
)

_DONE = _any(
    rf"(?:{_IT} )?works?(?: (?:now|again|fine|great|perfectly|well|like a charm|for me))?(?=\W*(?:$|[,.!]))",
    r"(?:is|it's|all) (?:working|running|fixed|solved|resolved|sorted|fine|good|set|clear)",
    r"(?:that|this|it) (?:fixed|solved|helped|did|answers|answered|clears|settles|makes sense)",
    r"(?:problem|issue|question|case|all)s? (?:is |was )?(?:solved|fixed|sorted|resolved|closed|answered|gone)",
    r"did (?:the trick|it)",
    r"made my day",
    r"(?:that|this)(?: is|'s| was|'ll be| will be)? (?:all|it|everything|the one)(?: for (?:today|now))?",
    r"(?:that|this)(?:'ll| will) do",
    r"(?:no|nothing|no more|don't (?:need|have) any) (?:further |more |other |else |thing else )?(?:questions?|else)",
    r"(?:i'm|i am|we're|we are) (?:all )?(?:set|good|done|happy|satisfied|sorted)",
    r"i (?:get|understand|see) (?:it |that )?now",
    r"(?:now i|i now) (?:get|understand|see)(?: it)?",
    r"i (?:have|got) (?:what|all|everything) i (?:need|needed|wanted)",
    r"got it",
    r"i(?:'ll| will) (?:take|use|send|keep|go with|buy) (?:it|this|that|this \w+|them)(?: from here| as it is)?",
    r"(?:let's|we'll) go with (?:it|this|that)",
    r"(?:all|has|is|have) (?:arrived|confirmed|gone through|come through)",
    r"(?:just |it )?(?:arrived|came through|went through)",
    r"i (?:can|could) [\w ]+ (?:again|now)",
    r"(?:you can|please) close (?:the|this|my) (?:ticket|case|issue|chat)",
    r"consider it (?:closed|done|solved)",
    r"tests? pass(?:es)?",
    r"it compiles",
    r"(?:runs?|prints?) (?:now|again|without (?:an )?errors?)",
    r"helped(?: a lot| me)?",
    r"works for me",
    r"happy with (?:it|this|that)",
)
_MORE = _any(
    r"(?:can|could|would|will) (?:you|we|i)",
    r"also",
    r"next",
    r"(?:and|but|so) (?:now|then|how|what|where|when|who|why|please|also|which)",
    r"now (?:do|make|write|add|let|please|the|we|translate|change)",
    r"please (?!close|book)\w+",
    r"(?:tell|show|give|send|find) me",
    r"let me",
    r"let's (?!go with)\w+",
    r"continue",
    r"so far",
    r"i (?:need|want|prefer) (?!to thank)",
)
_COMMAND = re.compile(
    r"(?:^|[.!;,]\s+|\b(?:now|then|and|next|please)\s+)(?:add|make|write|change|use|put|move|remove|translate|show|"
    r"give|find|list|explain|check|include|try|do|start|continue|send me|tell)\s+(?!it is\b)\w",
    re.IGNORECASE,
)


def standing(text: str, before: str = "") -> Standing:
    """Whether a request is settled, by what its author says after an agent has acted.

    A complaint outweighs thanks. Thanks or praise with a question or a further request are open: the
    work continues. Words that repeat the message before are unresolved, unless they thank. Words in
    a language that the rules do not know are open.

    Args:
        text: what the person says.
        before: what the person said before the agent acted.
    """
    labels = annotate(Turn(text=text, before=_ACTED, said=before))
    if labels is None:
        return "open"
    said = text.replace("’", "'")
    again = "repeat" in labels and "thanks" not in labels
    if again or not _REFUSING.isdisjoint(labels) or _UNRESOLVED.search(said):
        return "unresolved"
    if (
        "?" in said
        or not _GOING_ON.isdisjoint(labels)
        or _MORE.search(said)
        or _COMMAND.search(said)
    ):
        return "open"
    return "resolved" if not _CONTENT.isdisjoint(labels) or _DONE.search(said) else "open"


_ACTED: Final = "I have done it."
"""In place of the agent's message, which is not known here."""
_REFUSING: Final = frozenset[Label]({"complaint", "correction", "halt"})
_GOING_ON: Final = frozenset[Label]({"asks", "vague"})
_CONTENT: Final = frozenset[Label]({"thanks", "praise"})
