"""Gymnasium: an episode as an ``Env``, turn by turn, with texts as observations and actions.

It is registered as ``duolog/Episode-v0`` once this module is imported.
"""

from __future__ import annotations

from typing import Any, final

import gymnasium
import msgspec

from ..engine.errors import InvalidInput
from ..engine.models.protocol import ToolCall
from ..engine.task import Task, find_task
from ..engine.text import suggestion
from .blocking import BlockingEpisode, Stage
from .episode import EpisodeSetting
from .seat import Observation

__all__ = ("EpisodeEnv",)

_LENGTH = 100_000
_CHARACTERS = "\n\t" + "".join(map(chr, (*range(32, 127), *range(160, 0x3000))))
_KNOWN = frozenset(_CHARACTERS)
_OPTIONS = ("problem", "persona", "world", "repeat")
_OVER = frozenset({"finished", "abandoned", "tolerance", "failed"})


@final
class EpisodeEnv(gymnasium.Env[str, str]):
    """An episode of a task.

    An action is a text, JSON such as ``{"name": "message", "arguments": {"text": "What matters to you?"}}``. An
    observation is the text of what is new; ``info["observation"]`` has it as chat messages with authors, and
    ``info["parts"]`` the parts of the reward. An action that is invalid is answered by an observation that says
    so. Characters beyond the Basic Multilingual Plane's first blocks become question marks in the text.

    Args:
        task: the task, or its name.
        problems: the instances that ``reset`` draws from, unless its options name one.
        persona: the persona of the simulated user.
        world: the seed of the task's world.
        log: the URL of the log.
        setting: the setting of all episodes.

    Raises:
        InvalidInput: the task is unknown, or no problem is given.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 -- as Env declares it

    def __init__(
        self,
        task: str | Task,
        *,
        problems: tuple[str, ...] = ("0",),
        persona: str = "proactive",
        world: int = 0,
        log: str = "memory://",
        setting: EpisodeSetting | None = None,
        render_mode: str | None = None,
    ) -> None:
        if not problems:
            raise InvalidInput("an environment needs at least one problem")
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Text(_LENGTH, min_length=0, charset=_CHARACTERS)
        self.action_space = gymnasium.spaces.Text(_LENGTH, charset=_CHARACTERS)
        self._task = find_task(task) if isinstance(task, str) else task
        self._problems, self._persona, self._world = problems, persona, world
        self._stage = Stage(log).__enter__()
        self._episode = BlockingEpisode(self._stage, setting).__enter__()
        self._calls = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begins an episode; an open one is closed as ``cancelled``.

        Args:
            seed: draws the problem and the session's randomness; the same seed gives the same episode.
            options: ``problem``, ``persona``, ``world`` and ``repeat``, in place of what is drawn.

        Raises:
            InvalidInput: there is no such option, problem or persona, or a value is of the wrong type.
        """
        super().reset(seed=seed)
        chosen = options or {}
        for name in chosen:
            if name not in _OPTIONS:
                raise InvalidInput(
                    f"unknown option {name!r} of reset{suggestion(name, _OPTIONS)}; there are: "
                    f"{', '.join(_OPTIONS)}"
                )
        problem = self._problems[int(self.np_random.integers(len(self._problems)))]
        repeat = int(self.np_random.integers(1, 2**31 - 1))
        seen = self._episode.reset(
            self._task,
            chosen.get("problem", problem),
            persona=chosen.get("persona", self._persona),
            seed=chosen.get("world", self._world),
            repeat=chosen.get("repeat", repeat),
        )
        return _text(seen), self._info(seen)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carries out an action.

        Raises:
            SessionClosedError: the episode is over.
        """
        self._calls += 1
        seen = self._episode.step(_read(action, str(self._calls)))
        over = seen.ended in _OVER
        return _text(seen), seen.reward, over, seen.done and not over, self._info(seen)

    @property
    def session(self) -> str:
        """Id of the session in the log."""
        return self._episode.episode.session

    def close(self) -> None:
        """Closes an open session as ``cancelled``, and the log."""
        self._episode.close()
        self._stage.__exit__(None, None, None)

    def _info(self, seen: Observation) -> dict[str, Any]:
        return {
            "observation": seen,
            "parts": dict(seen.parts),
            "ended": seen.ended,
            "invalid": seen.invalid,
        }


class _Written(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any] = {}


def _read(action: str, number: str) -> ToolCall | tuple[ToolCall, ...]:
    """The call that a text writes; none of them if it cannot be read."""
    try:
        written = msgspec.json.decode(action, type=_Written)
    except (msgspec.DecodeError, RecursionError, UnicodeError, TypeError):
        return ()
    text = msgspec.json.encode(written.arguments).decode()
    return ToolCall(id=number, name=written.name, arguments=text)


def _text(seen: Observation) -> str:
    text = "".join(one if one in _KNOWN else "?" for one in seen.text)
    return text[:_LENGTH]


gymnasium.register("duolog/Episode-v0", entry_point=f"{__name__}:{EpisodeEnv.__name__}")
