"""How long things take under a virtual clock: reading, typing, thinking, acting.

All of it is modelled and none of it is waited for. The defaults: people read 238 words a minute
(silent reading of English non-fiction, Brysbaert 2019) and type 52 (Dhakal et al. 2018); a model
starts to answer after a second and writes 60 tokens a second.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...events import Role, Tokens
from ...text import count_words, lines_of, new_words
from ..decisions import Act, Approve, Ask, Decision, Say, Submit
from ..view import View

__all__ = ("Timing",)


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of a simulated session; all times in seconds.

    Attributes:
        read_wpm: words a minute that a person reads.
        type_wpm: words a minute that a person types.
        human_step: time a person takes to decide, and again for each click (an action, an approval).
        agent_step: time before an agent's model starts to answer.
        agent_tps: tokens a second that it writes.
        tokens_per_word: to count an agent's tokens from its words.
        action: how long an action takes whose environment does not say.
        interruption: how long the reading of news may hold up a draft that a person keeps. After that they send it,
            or nobody who is told something every few seconds would ever get to say anything.
    """

    read_wpm: float = 238.0
    type_wpm: float = 52.0
    human_step: float = 1.0
    agent_step: float = 1.0
    agent_tps: float = 60.0
    tokens_per_word: float = 1.3
    action: float = 1.5
    interruption: float = 60.0

    def reading(self, role: Role, view: View) -> float:
        """Time to read the new parts of a view. Agents read instantly."""
        if role != "human":
            return 0.0
        return view.unread_words / self.read_wpm * 60.0

    def calling(self, tokens: Tokens, text: str) -> float:
        """Time that a model takes to answer: until it starts, and while it writes.

        Args:
            tokens: as the reply counts them.
            text: the text of the reply, used if its tokens were not counted.
        """
        written: float | None = tokens.completion
        if written is None:
            written = count_words(text) * self.tokens_per_word
        return self.agent_step + written / self.agent_tps

    def working(self, role: Role, view: View, decision: Decision) -> float:
        """Time to carry out a decision: its own ``seconds``, or the sum over its verbs.

        A person takes at least as long as typing takes.
        """
        if decision.seconds is not None and role != "human":
            return decision.seconds
        produced, clicks = _made(role, view, decision)
        if decision.seconds is not None:
            return max(decision.seconds, produced / self.type_wpm * 60.0)
        if not (produced or clicks):
            return 0.0
        if role == "human":
            return self.human_step * (1 + clicks) + produced / self.type_wpm * 60.0
        return self.agent_step + produced * self.tokens_per_word / self.agent_tps


def _made(role: Role, view: View, decision: Decision) -> tuple[int, int]:
    """The words that an actor writes to carry out a decision, and its clicks."""
    produced = 0
    clicks = 0
    before = lines_of(view.snapshot_text)
    for verb in decision.verbs:
        if isinstance(verb, Say):
            produced += count_words(verb.text)
        elif isinstance(verb, Submit):
            # A model writes the whole output again; a human edits words of the existing one.
            if verb.files and isinstance(verb.content, Mapping):
                standing = view.snapshot.content if view.snapshot and view.snapshot.files else {}
                known = standing if role == "human" and isinstance(standing, Mapping) else {}
                for path, text in verb.content.items():
                    old, new = lines_of(known.get(path, "")), lines_of(text or "")
                    produced += count_words(new_words(old, new))
            else:
                known_lines = before if role == "human" else ()
                produced += count_words(new_words(known_lines, lines_of(verb.content)))
        elif isinstance(verb, Ask):
            produced += count_words(verb.question)
        elif isinstance(verb, Approve):
            produced += count_words(verb.comment)
            clicks += 1
        elif isinstance(verb, Act):
            clicks += 1
    return produced, clicks
