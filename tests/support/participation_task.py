"""A small task for people to take part in: a list that an agent keeps, and asks before it sends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duolog
from duolog.engine.session.actors import playing
from duolog.engine.session.decisions import Ask, Decision, Say, Submit
from duolog.engine.task import Cell, Setting, opening, session_clock, session_id

__all__ = ("Keeper", "ShoppingTask")


class Keeper:
    """Writes down what is asked for, and asks before it sends the list."""

    async def decide(self, view: duolog.View) -> Decision:
        heard = [one.text for one in view.messages if one.actor != view.me]
        notes = [text for text in heard if not text.startswith("send")]
        said = [one.text for one in view.messages if one.actor == view.me]
        noted = [text for text in said if text.startswith("Noted")]
        asked = [one for one in view.approvals.values() if one.actor == view.me]
        given = [one.given for one in asked if one.given is not None]
        if len(said) - len(noted) < len(given):
            answer = "Sent." if given[-1].approved else "Not sent."
            return Decision((Say(answer),), 0.0)
        if len(asked) < len(heard) - len(notes):
            question = Ask("Shall I send the list?", "send", {"to": "the shop"})
            return Decision((question,), 0.0)
        if len(noted) < len(notes):
            fresh = notes[len(noted)]
            content = f"{view.snapshot_text}\n{fresh}".strip()
            verbs = (Submit(content, overwrite=True), Say(f"Noted: {fresh}"))
            return Decision(verbs, 0.0)
        return Decision()


class ShoppingTask:
    """Keep a shopping list together."""

    name = "shopping"
    description = "keep a shopping list together"
    agents: Mapping[str, str] = {"keeper": "writes down what is asked for"}
    users: Mapping[str, str] = {"anybody": "nobody in particular"}

    def automated(self, agent: str) -> bool:
        """Nobody works alone."""
        return False

    def instances(self, count: int, seed: int) -> list[str]:
        """There is one."""
        return ["1"]

    def session(self, cell: Cell, setting: Setting) -> duolog.Session:
        """A person, and the keeper."""
        ident = session_id(self.name, cell, duolog.engine.codec.digest(dict(setting.config)))
        assert setting.person is not None
        players: Sequence[duolog.Player] = (
            duolog.Player(duolog.Participant(name="user", role="human"), setting.person),
            duolog.Player(
                duolog.Participant(name="agent", role="agent", policy="keeper"), playing(Keeper())
            ),
        )
        opened = opening(
            self.name,
            cell,
            setting,
            [player.participant for player in players],
            request="",
            private={"user": {"secret": "the birthday cake"}},
            utility="none",
            judge="human",
            seed=1,
        )
        return duolog.Session(
            id=ident, opened=opened, players=tuple(players), clock=session_clock(setting)
        )
