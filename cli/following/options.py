"""What a process that scores a log as it grows has to know; one process hands it to another as JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..._version import __version__
from ...engine import codec
from ...engine.loading import load, names_code
from ...engine.log.follower import CheckpointKey
from ...engine.rounds import Rounds

__all__ = ("FollowOptions",)


class FollowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is scored as it grows; see ``duolog score``.

    Attributes:
        log: path or URL of the log.
        scorers: their names.
        judge: the model that judges.
        rubric: path of the rubric.
        rounds: how judges count rounds.
        api_base: where the judge's model is.
        cache: directory of the response cache.
        concurrency: sessions at the same time, in each process.
        tokens: that the judges may use in all.
        cost: US dollars that they may cost in all.
    """

    log: str
    scorers: tuple[str, ...]
    judge: str | None = None
    rubric: str | None = None
    rounds: Rounds = "handoff"
    api_base: str | None = None
    cache: str | None = None
    concurrency: int = 8
    tokens: int | None = None
    cost: float | None = None

    def key(self) -> CheckpointKey:
        """Under what the checkpoints are kept: whoever scores by the same has the same.

        What is scored by another version of Duolog, of a file or of a rubric is looked at again.
        """
        files = {name: load(name).origin.digest for name in self.scorers if names_code(name)}
        rubric = None if self.rubric is None else Path(self.rubric).read_text(encoding="utf-8")
        names = sorted(self.scorers)
        version = codec.digest([__version__, files, rubric, self.judge, self.rounds, names])
        return CheckpointKey("+".join(names), version[:16])
