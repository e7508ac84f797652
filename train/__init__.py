"""The environment in which collaborative agents are trained: episodes with simulated users who may act at
any time, get tired, and give up; rewards from the same numbers that reports show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .blocking import BlockingEpisode as BlockingEpisode
    from .episode import Episode as Episode
    from .episode import EpisodeSetting as EpisodeSetting
    from .rewards import Reward as Reward
    from .rewards import RewardTerms as RewardTerms
    from .rewards import reward_of as reward_of
    from .sampling import sampled_value as sampled_value
    from .seat import ChatMessage as ChatMessage
    from .seat import Observation as Observation

__all__ = (
    "BlockingEpisode",
    "ChatMessage",
    "Episode",
    "EpisodeSetting",
    "Observation",
    "Reward",
    "RewardTerms",
    "reward_of",
    "sampled_value",
)

_HOMES = {
    "BlockingEpisode": ".blocking",
    "ChatMessage": ".seat",
    "Episode": ".episode",
    "EpisodeSetting": ".episode",
    "Observation": ".seat",
    "Reward": ".rewards",
    "RewardTerms": ".rewards",
    "reward_of": ".rewards",
    "sampled_value": ".sampling",
}

if not TYPE_CHECKING:  # else a type checker would take any name for ours
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
