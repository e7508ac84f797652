"""A session that is recorded: its actors, and its end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypedDict, final, get_args

from .._version import __version__
from ..engine.errors import InvalidInput
from ..engine.events import JSON, CloseReason, Participant, Role, SessionClosed, SessionOpened
from ..engine.records import ENGINE, ENVIRONMENT
from ..engine.session.commands import CloseSession
from ..engine.text import suggestion
from .actor import Put, R, RecordedActor
from .jsonable import plain_mapping, shown, text
from .queue import QueuedCommand, SessionQueue
from .receipt import Receipt

__all__ = ("About", "Recording", "check_about", "opening")

_REASONS: Final = get_args(CloseReason)


class About(TypedDict, total=False):
    """Description of a session; recorded when it is opened, and unchanged when it is opened again.

    Attributes:
        task: name of the task, e.g. ``support``.
        instance: which instance of it.
        problem: id of the problem, the same whenever the same thing is asked for. Comparisons pair
            agents by it. Never a text that a person wrote.
        agent: name and version of the agent in your product; a label to group reports by.
        user: the kind of user, e.g. a plan or a cohort; a label, never a person's name.
        model: the model behind the agent.
        tags: more words to filter by; a label ``tags`` holds them in order, separated by commas.
        environment: where the product runs, e.g. ``production``; a label.
        release: version of the product; a label.
        humans: the humans; one named ``human`` by default.
        agents: the agents; one named ``agent`` by default.
        request: the initial request, if it is not sent as a message.
        output: None if the session has no shared output, like most chats; then it has no first
            update. If left out, an output is expected.
        judge: whose ratings count and are waited for: a scorer's name, e.g. ``rule-judge``, or
            ``human``. If left out, no ratings are waited for, and those that come count.
        utility: name of the scorer whose utility counts, e.g. ``retention``.
        labels: more labels to group reports by, under any names.
        config: more settings to note.
        private: per owner, what only it may see.
        continues: id of the session that this one continues, of the same conversation.
    """

    task: str
    instance: str
    problem: str | None
    agent: str | None
    user: str | None
    model: str | None
    tags: Sequence[str]
    environment: str | None
    release: str | None
    humans: Sequence[str | Participant]
    agents: Sequence[str | Participant]
    request: str | None
    output: str | None
    judge: str | None
    utility: str | None
    labels: Mapping[str, str]
    config: Mapping[str, object]
    private: Mapping[str, object]
    continues: str | None


_NAMES = About.__optional_keys__


def check_about(about: About) -> None:
    """Refuses a name that ``About`` does not have: a misspelled one would be lost silently.

    Raises:
        InvalidInput: a name that it does not have.
    """
    for name in about:
        if name in _NAMES:
            continue
        hint = suggestion(name, _NAMES)
        if not hint.startswith("; did you mean"):
            hint += f"; a label of your own goes into labels={{{name!r}: ...}}"
        raise InvalidInput(f"unknown label or option {name!r}{hint}")


def opening(about: About) -> SessionOpened:
    """The opening of a session.

    Raises:
        InvalidInput: two participants of one name, or a name that is the engine's own.
    """
    agent, model = about.get("agent"), about.get("model")
    humans = [_participant(one, "human") for one in about.get("humans", ("human",))]
    agents = [_participant(one, "agent", agent, model) for one in about.get("agents", ("agent",))]
    participants = (*humans, *agents)
    names = [participant.name for participant in participants]
    if len(set(names)) < len(names):
        raise InvalidInput(f"participants need unique names: {', '.join(names)}")
    request = about.get("request")
    config: dict[str, JSON] = plain_mapping(about.get("config", {}))
    group = {
        "agent": agent,
        "user": about.get("user"),
        "model": model,
        "tags": _tags(about.get("tags", ())),
        "environment": about.get("environment"),
        "release": about.get("release"),
        **about.get("labels", {}),
    }
    config["group"] = {name: value for name, value in group.items() if value is not None}
    if "output" in about:
        config["output"] = about["output"]
    scorers = {"judge": about.get("judge"), "utility": about.get("utility")}
    config |= {name: scorer for name, scorer in scorers.items() if scorer is not None}
    if (before := about.get("continues")) is not None:
        config["continues"] = text(before, "a session's id")
    problem = about.get("problem")
    return SessionOpened(
        task=text(about.get("task", ""), "a task"),
        instance=text(about.get("instance", ""), "an instance"),
        participants=participants,
        clock="utc",
        request=None if request is None else text(request, "a request"),
        config=plain_mapping(config),
        private=plain_mapping(about.get("private", {})),
        problem=None if problem is None else text(problem, "a problem"),
        package=__version__,
    )


def _tags(tags: Sequence[str]) -> str | None:
    """The label of some tags, as importers write it; None if there are none."""
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise InvalidInput(f"tags are a list of texts, not {shown(tags)}")
    named = sorted({text(tag, "a tag").strip() for tag in tags} - {""})
    return ", ".join(named) or None


def _participant(
    one: str | Participant, role: Role, policy: str | None = None, model: str | None = None
) -> Participant:
    if isinstance(one, Participant):
        _check_name(one.name, one.role)
        return one
    _check_name(one, role)
    return Participant(name=one, role=role, policy=policy, model=model)


def _check_name(name: str, role: Role) -> None:
    if not name or name in (ENGINE, ENVIRONMENT):
        raise InvalidInput(
            f"{name!r} cannot be the name of a participant: it is empty, or the engine's own"
        )
    if role not in ("human", "agent"):
        raise InvalidInput(f"{name!r} must be human or agent, got {role}")


@final
class Recording(Generic[R]):
    """A session that is being recorded.

    If it is opened again under its id, in the same process or another, it continues there.

    Attributes:
        id: session id.
    """

    def __init__(self, queue: SessionQueue, put: Put[R]) -> None:
        self.id = queue.session
        self._queue = queue
        self._put = put
        self._actors: dict[str, RecordedActor[R]] = {}
        for participant in queue.opened.participants:
            self.actor(participant.name, role=participant.role)

    @property
    def human(self) -> RecordedActor[R]:
        """The human; of several, the first that was named when this handle was made."""
        return self._first("human")

    @property
    def agent(self) -> RecordedActor[R]:
        """The agent; of several, the first that was named when this handle was made."""
        return self._first("agent")

    @property
    def closed(self) -> bool:
        """Whether the session is closed, as far as this process knows."""
        return self._queue.closing

    def actor(self, name: str, *, role: Role | None = None) -> RecordedActor[R]:
        """A human or an agent by name; for adapters, also an actor with the role ``environment``.

        Args:
            name: unique in the session.
            role: needed for one that was not named when the session was opened.

        Raises:
            InvalidInput: an unknown name without a role, or another role than it has.
        """
        actor = self._actors.get(name)
        if actor is None:
            if role is None:
                known = ", ".join(self._actors)
                raise InvalidInput(
                    f"unknown participant {name!r} in session {self.id!r}; choose from {known}, or give "
                    "a role to add one"
                )
            if role != "environment" or name == ENGINE:
                _check_name(name, role)
            actor = self._actors[name] = RecordedActor(self._queue, name, role, self._put)
        elif role is not None and role != actor.role:
            raise InvalidInput(f"{name!r} is {actor.role} in session {self.id!r}, not {role}")
        return actor

    def close(
        self,
        reason: CloseReason = "ended",
        *,
        by: str | None = None,
        detail: str = "",
        durable: bool | None = None,
    ) -> R:
        """Ends the session; actions in flight are cancelled. Does nothing if it is closed.

        Args:
            reason: how it ended: ``finished`` if a participant was satisfied or done, ``abandoned``
                if a participant gave up (name them in ``by``), and so on, see ``CloseReason``. By
                default ``ended``: it is over, and the reason is unknown.
            by: name of the participant who closes it; the engine by default.
            detail: free text.
            durable: wait until the close and all events before it are in the log.

        Raises:
            InvalidInput: an unknown reason, or no participant of the session has that name.
        """
        if reason not in _REASONS:
            raise InvalidInput(
                f"a session closes as one of {', '.join(_REASONS)}, not {shown(reason)}"
            )
        role: Role = "environment" if by is None else self.actor(by).role
        name = ENGINE if by is None else by
        closed = SessionClosed(reason=reason, by=name, detail=text(detail, "a detail"))
        entry = QueuedCommand(
            "close", CloseSession(closed), name, role, time.time(), Receipt(self.id)
        )
        return self._put(self._queue, entry, durable)

    def flush(self) -> R:
        """Waits until all events handed over for this session are in the log, or refused.

        Raises:
            NotRecorded: the log was closed before that.
            LogClosed: the log is closed.
        """
        entry = QueuedCommand("flush", None, ENGINE, "environment", time.time(), Receipt(self.id))
        return self._put(self._queue, entry, True)

    def _first(self, role: Role) -> RecordedActor[R]:
        for actor in self._actors.values():
            if actor.role == role:
                return actor
        raise InvalidInput(f"session {self.id!r} was opened without a {role}; name one to actor()")
