"""One session of the log, opened when something happens in it; secrets are taken out on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

import msgspec

from ...engine.events import JSON, ActorFailed, CloseReason, ModelCalled, Unknown
from ...engine.records import ENVIRONMENT
from ...engine.redaction import redact, redact_json
from ...telemetry.actor import RecordedActor
from ...telemetry.receipt import Receipt
from ...telemetry.session import Recording

__all__ = ("Voice",)

_AGENT: Final = "agent"
_HUMAN: Final = "human"


@final
class Voice:
    """The verbs of a session, by role. Times are UTC epoch seconds.

    Args:
        start: opens the session in the log.
        clean: remove secrets, also values under telling names and those of the environment.
    """

    def __init__(self, start: Callable[[], Recording[Receipt]], *, clean: bool = True) -> None:
        self._start = start
        self._redacts = clean
        self._recording: Recording[Receipt] | None = None

    @property
    def session(self) -> Recording[Receipt]:
        """The session, opened."""
        if self._recording is None:
            self._recording = self._start()
        return self._recording

    @property
    def opened(self) -> bool:
        """Whether it has been opened."""
        return self._recording is not None

    def asked_for(self, text: str, at: float) -> None:
        """The person's prompt."""
        self._human.says(self._text(text), at=at)

    def attached(self, text: str, at: float) -> None:
        """Records the context that the editor attached to a prompt for the agent."""
        environment = self.session.actor(ENVIRONMENT, role="environment")
        environment.says(self._text(text), to=(_AGENT,), at=at)

    def said(self, text: str, at: float) -> None:
        """A message of the agent."""
        self._agent.says(self._text(text), at=at)

    def thought(self, text: str, at: float) -> None:
        """The agent's reasoning."""
        self._agent.notes(self._text(text), at=at)

    def took(self, action: str, arguments: Mapping[str, JSON], at: float) -> Receipt:
        """An action of the agent that is in flight."""
        return self._agent.acts(action, self._clean(arguments), at=at)

    def did(self, action: str, arguments: Mapping[str, JSON], at: float) -> None:
        """An action of the agent that is over at once."""
        self._agent.acts(action, self._clean(arguments), result=None, at=at)

    def resolved(self, action: Receipt, result: JSON, error: str | None, at: float) -> None:
        """The outcome of an action; ``error`` if it failed."""
        why = None if error is None else self._text(error)
        self._agent.resolves(action, self._json(result), error=why, at=at)

    def wrote(
        self, path: str, text: str, diff: str, at: float, *, by_human: bool = False
    ) -> Receipt:
        """A file after an edit, and the diff that the editor showed."""
        author = self._human if by_human else self._agent
        path = self._text(path)
        shown = {path: self._text(diff)} if diff else {}
        return author.submits_files({path: self._text(text)}, shown=shown, at=at)

    def asked(
        self, question: str, action: str | None, arguments: Mapping[str, JSON], at: float
    ) -> Receipt:
        """A question of the agent's to the person."""
        return self._agent.asks(
            self._text(question), action=action, arguments=self._clean(arguments), at=at
        )

    def answered(self, asked: Receipt, comment: str, at: float, *, approved: bool) -> None:
        """The person's answer."""
        self._human.approves(asked, approved=approved, comment=self._text(comment), at=at)

    def yielded(self, reason: str, at: float) -> None:
        """The end of the agent's turn, other than by being done."""
        self._agent.yields(reason, at=at)

    def used(self, model: ModelCalled, at: float) -> None:
        """Records the model usage of a turn."""
        self._agent.adds(model, at=at)

    def failed(self, error: str, kind: str, at: float) -> None:
        """The agent failed."""
        self._agent.adds(ActorFailed(error=self._text(error), type=kind), at=at)

    def kept(self, share: float, of: Receipt, at: float) -> None:
        """How much of the agent's edits was still there at the next prompt, said of a snapshot."""
        self._human.feedback(edits_kept=share, of=of, at=at)

    def keep(self, kind: str, entry: JSON, at: float, *, by_human: bool = False) -> None:
        """Keeps an entry as received if no Duolog event fits it."""
        body = msgspec.json.encode({"kind": kind, "entry": self._json(entry)})
        actor = self._human if by_human else self._agent
        actor.adds(Unknown(kind, 1, body), at=at)

    def close(self, reason: CloseReason) -> None:
        """The end of the session."""
        self.session.close(reason)

    @property
    def _human(self) -> RecordedActor[Receipt]:
        return self.session.actor(_HUMAN)

    @property
    def _agent(self) -> RecordedActor[Receipt]:
        return self.session.actor(_AGENT)

    def _text(self, text: str) -> str:
        return redact(text) if self._redacts else text

    def _json(self, value: JSON) -> JSON:
        return redact_json(value) if self._redacts else value

    def _clean(self, values: Mapping[str, JSON]) -> dict[str, JSON]:
        cleaned = self._json(values)
        return dict(cleaned) if isinstance(cleaned, Mapping) else {}
