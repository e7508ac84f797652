"""Duolog: an event log of people and agents working together, scored as it is written.

The names below are what most programs need, in four groups: embed, simulate, score, replay.
The rest of the public API is in submodules; ``docs/reference`` lists all of it. Each name is imported
when it is first used, so that ``import duolog`` costs next to nothing, and loads no library that is
not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy_names
from ._version import __version__

if TYPE_CHECKING:  # what static tools see; a test compares it with _HOMES
    from .engine.errors import DuologError as DuologError
    from .engine.errors import InvalidInput as InvalidInput
    from .engine.events import Participant as Participant
    from .engine.events import SessionOpened as SessionOpened
    from .engine.events import SnapshotTaken as SnapshotTaken
    from .engine.session.actors import Player as Player
    from .engine.session.actors import playing as playing
    from .engine.session.context import ActorContext as ActorContext
    from .engine.session.decisions import Decision as Decision
    from .engine.session.decisions import Finish as Finish
    from .engine.session.decisions import Rate as Rate
    from .engine.session.decisions import Say as Say
    from .engine.session.decisions import Submit as Submit
    from .engine.session.decisions import Wait as Wait
    from .engine.session.fork import fork as fork
    from .engine.session.runner import Session as Session
    from .engine.session.runner import run_session as run_session
    from .engine.session.simulation import simulate as simulate
    from .engine.session.view import View as View
    from .experiments.reports import Report as Report
    from .experiments.reports import compare as compare
    from .experiments.reports import report as report
    from .experiments.running import Run as Run
    from .experiments.running import run as run
    from .experiments.spec import Experiment as Experiment
    from .interop.litellm.logger import litellm_logger as litellm_logger
    from .interop.otel.scores import otel_export as otel_export
    from .scoring.chat_control import ChatController as ChatController
    from .scoring.control import Controller as Controller
    from .scoring.index.erasure import Retention as Retention
    from .scoring.live import score_log as score_log
    from .scoring.replay import replay as replay
    from .scoring.scorers.feedback import FeedbackUtility as FeedbackUtility
    from .scoring.scorers.progress import rule_judge as rule_judge
    from .scoring.scorers.resolution import ResolutionUtility as ResolutionUtility
    from .scoring.scorers.retention import RetentionUtility as RetentionUtility
    from .scoring.scorers.utility import Score as Score
    from .scoring.scorers.utility import SnapshotUtility as SnapshotUtility
    from .scoring.trajectory.options import Options as Options
    from .scoring.trajectory.points import Trajectory as Trajectory
    from .tasks.simple import Instance as Instance
    from .tasks.simple import SimpleTask as SimpleTask
    from .telemetry.log import Log as Log
    from .telemetry.log import open as open
    from .telemetry.session import Recording as Recording
    from .telemetry.spill import Spill as Spill
    from .telemetry.sync import SyncLog as SyncLog
    from .telemetry.sync import open_sync as open_sync

__all__ = (  # noqa: RUF022 (grouped by use)
    "__version__",
    # Embed: record what people and agents do, read it back, follow it.
    "open",
    "open_sync",
    "Log",
    "SyncLog",
    "Recording",
    "Retention",
    "Spill",
    "litellm_logger",
    "otel_export",
    "Participant",
    "SessionOpened",
    "SnapshotTaken",
    "DuologError",
    "InvalidInput",
    # Simulate: experiments, and single sessions of actors through their contexts.
    "run",
    "Run",
    "Experiment",
    "run_session",
    "Session",
    "Player",
    "ActorContext",
    "View",
    "playing",
    "Decision",
    "Say",
    "Submit",
    "Rate",
    "Finish",
    "Wait",
    "simulate",
    "SimpleTask",
    "Instance",
    # Score: worth and cost of a collaboration, and when to stop.
    "report",
    "Report",
    "compare",
    "score_log",
    "Options",
    "Trajectory",
    "SnapshotUtility",
    "RetentionUtility",
    "FeedbackUtility",
    "ResolutionUtility",
    "Score",
    "rule_judge",
    "ChatController",
    "Controller",
    # Replay: a log again, at any speed, or from some point with other actors.
    "replay",
    "fork",
)

# The module of each name.
_HOMES = {
    "open": ".telemetry.log",
    "open_sync": ".telemetry.sync",
    "Log": ".telemetry.log",
    "SyncLog": ".telemetry.sync",
    "Recording": ".telemetry.session",
    "Retention": ".scoring.index.erasure",
    "Spill": ".telemetry.spill",
    "litellm_logger": ".interop.litellm.logger",
    "otel_export": ".interop.otel.scores",
    "Participant": ".engine.events",
    "SessionOpened": ".engine.events",
    "SnapshotTaken": ".engine.events",
    "DuologError": ".engine.errors",
    "InvalidInput": ".engine.errors",
    "run": ".experiments.running",
    "Run": ".experiments.running",
    "Experiment": ".experiments.spec",
    "run_session": ".engine.session.runner",
    "Session": ".engine.session.runner",
    "Player": ".engine.session.actors",
    "ActorContext": ".engine.session.context",
    "View": ".engine.session.view",
    "playing": ".engine.session.actors",
    "Decision": ".engine.session.decisions",
    "Say": ".engine.session.decisions",
    "Submit": ".engine.session.decisions",
    "Rate": ".engine.session.decisions",
    "Finish": ".engine.session.decisions",
    "Wait": ".engine.session.decisions",
    "simulate": ".engine.session.simulation",
    "SimpleTask": ".tasks.simple",
    "Instance": ".tasks.simple",
    "report": ".experiments.reports",
    "Report": ".experiments.reports",
    "compare": ".experiments.reports",
    "score_log": ".scoring.live",
    "Options": ".scoring.trajectory.options",
    "Trajectory": ".scoring.trajectory.points",
    "SnapshotUtility": ".scoring.scorers.utility",
    "RetentionUtility": ".scoring.scorers.retention",
    "FeedbackUtility": ".scoring.scorers.feedback",
    "ResolutionUtility": ".scoring.scorers.resolution",
    "Score": ".scoring.scorers.utility",
    "rule_judge": ".scoring.scorers.progress",
    "ChatController": ".scoring.chat_control",
    "Controller": ".scoring.control",
    "replay": ".scoring.replay",
    "fork": ".engine.session.fork",
}

if not TYPE_CHECKING:  # else a type checker would take any name for ours
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
