"""Episodes for programs without an event loop: the same calls, which block until they have returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import final

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ..engine.errors import InvalidInput
from ..engine.events import JSON
from ..engine.log.contract import Store
from ..engine.log.open import open_log
from ..engine.task import Task
from .episode import Episode, EpisodeSetting
from .rewards import Reward
from .seat import Action, ChatMessage, Observation

__all__ = ("BlockingEpisode", "Stage")


@final
class Stage:
    """A log, and the thread whose event loop runs the episodes in it: for as many episodes as you like.

    Args:
        log: the URL of the log.
    """

    def __init__(self, log: str = "memory://") -> None:
        self._url = log
        self._closing = ExitStack()
        self._portal: BlockingPortal | None = None
        self._store: Store | None = None

    def __enter__(self) -> Stage:
        """Starts the thread and opens the log."""
        portal = self._closing.enter_context(start_blocking_portal())
        try:
            self._store = self._closing.enter_context(
                portal.wrap_async_context_manager(open_log(self._url))
            )
        except BaseException:
            self._closing.close()
            raise
        self._portal = portal
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the log, and ends the thread."""
        self._portal = None
        self._closing.__exit__(kind, error, trace)

    def closes(self, close: Callable[[], None]) -> None:
        """Has something closed before the log is."""
        self._closing.callback(close)

    @property
    def portal(self) -> BlockingPortal:
        """Runs what is asynchronous, in the thread.

        Raises:
            InvalidInput: the stage is not entered, or was left.
        """
        if self._portal is None:
            raise InvalidInput("a stage is used as: with Stage(log) as stage")
        return self._portal

    @property
    def log(self) -> Store:
        """The log; for calls in the thread.

        Raises:
            InvalidInput: the stage is not entered, or was left.
        """
        if self._store is None or self._portal is None:
            raise InvalidInput("a stage is used as: with Stage(log) as stage")
        return self._store


@final
class BlockingEpisode:
    """An ``Episode`` whose calls block.

    For example::

        from duolog.train import BlockingEpisode
        from duolog.train.blocking import Stage

        with Stage("memory://") as stage, BlockingEpisode(stage) as episode:
            seen = episode.reset("travel", "0", persona="proactive", seed=7)

    Args:
        stage: where it is played; it has to be entered.
        setting: what is the same in all episodes.
    """

    def __init__(self, stage: Stage, setting: EpisodeSetting | None = None) -> None:
        self._stage = stage
        self._setting = setting
        self._closing = ExitStack()
        self._episode: Episode | None = None

    def __enter__(self) -> BlockingEpisode:
        """Opens what runs the sessions."""
        portal = self._stage.portal
        episode = Episode(self._stage.log, self._setting)
        self._closing.enter_context(portal.wrap_async_context_manager(episode))
        self._stage.closes(self.close)
        self._episode = episode
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes a session that is open as ``cancelled``."""
        self._closing.__exit__(kind, error, trace)

    def close(self) -> None:
        """The same, without an error."""
        self._closing.close()

    @property
    def episode(self) -> Episode:
        """The episode itself; for calls in the stage's thread.

        Raises:
            InvalidInput: it is not entered.
        """
        if self._episode is None:
            raise InvalidInput("an episode is used as: with BlockingEpisode(stage) as episode")
        return self._episode

    def reset(
        self,
        task: str | Task,
        problem: str,
        *,
        persona: str = "proactive",
        seed: int = 0,
        repeat: int = 1,
        config: Mapping[str, JSON] = {},
    ) -> Observation:
        """Begins an episode; see ``Episode.reset``."""
        episode = self.episode

        async def begin() -> Observation:
            return await episode.reset(
                task, problem, persona=persona, seed=seed, repeat=repeat, config=config
            )

        return self._stage.portal.call(begin)

    def step(self, action: Action) -> Observation:
        """Carries out an action; see ``Episode.step``."""
        return self._stage.portal.call(self.episode.step, action)

    def leave(self) -> None:
        """Closes an open session as ``cancelled``; see ``Episode.leave``."""
        self._stage.portal.call(self.episode.leave)

    @property
    def reward(self) -> Reward:
        """The reward so far; see ``Episode.reward``."""
        episode = self.episode

        async def read() -> Reward:
            return episode.reward

        return self._stage.portal.call(read)

    @property
    def messages(self) -> list[ChatMessage]:
        """The chat of the episode so far."""
        return [*self.episode.messages]
