"""The names that OpenTelemetry gets to see, in one table.

``gen_ai.*`` names are those of the semantic conventions for generative AI, which are in development
and move: this table is pinned to one version of them. Names of our own begin with ``duolog.``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

__all__ = ("INSTRUMENTS", "SCHEMA_URL", "SCOPE", "Instrument")

SCOPE: Final = "duolog"
"""The instrumentation scope of all that is emitted."""

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai/1.42.0"
"""The version of the conventions that the names are taken from."""

# --- attributes of the conventions ---------------------------------------------------------------

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
CONVERSATION: Final = "gen_ai.conversation.id"
WORKFLOW: Final = "gen_ai.workflow.name"
AGENT: Final = "gen_ai.agent.name"
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CREATED_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
ERROR_TYPE: Final = "error.type"
SESSION_ID: Final = "session.id"  # what backends on OpenInference look for

EVALUATION: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"

# --- attributes and events of our own -------------------------------------------------------------

INSTANCE: Final = "duolog.session.instance"
PROBLEM: Final = "duolog.session.problem"
CLOCK: Final = "duolog.session.clock"
SESSION_URL: Final = "duolog.session.url"
CLOSE_REASON: Final = "duolog.session.close_reason"
SESSION_ROUNDS: Final = "duolog.session.rounds"
SESSION_UTILITY: Final = "duolog.session.utility"
ACTOR: Final = "duolog.actor.name"
ACTOR_KIND: Final = "duolog.actor.kind"
TURN_ACTS: Final = "duolog.turn.acts"
TURN_SNAPSHOTS: Final = "duolog.turn.snapshots"
ROUND: Final = "duolog.round.index"
ROUND_STAGE: Final = "duolog.round.stage"
ROUND_UPDATED: Final = "duolog.round.updated"
ROUND_UTILITY: Final = "duolog.round.utility"
ROUND_RATING: Final = "duolog.round.rating"
EFFORT: Final = "duolog.effort."  # and the measure behind it
PURPOSE: Final = "duolog.model.purpose"
ATTEMPT: Final = "duolog.model.attempt"
COST: Final = "duolog.model.cost"
POSITION: Final = "duolog.log.position"
KIND: Final = "duolog.event.kind"
SCORER: Final = "duolog.scorer.name"
SCORER_VERSION: Final = "duolog.scorer.version"
SCORER_CONFIG: Final = "duolog.scorer.config"
SCORE_PART: Final = "duolog.score.part."  # and the part behind it
STALE: Final = "duolog.round.stale"
TAU: Final = "duolog.stop.tau"
ENFORCED: Final = "duolog.stop.enforced"
DIRECTION: Final = "duolog.effort.direction"

APPROVAL_DECISION: Final = "duolog.approval.decision"
APPROVAL_SOURCE: Final = "duolog.approval.source"

STOP: Final = "duolog.stop.decision"
FLAGGED: Final = "duolog.simulator.flagged"
FAULT: Final = "duolog.simulator.fault"

# --- metrics --------------------------------------------------------------------------------------


class Instrument(NamedTuple):
    """A metric.

    Attributes:
        kind: a counter, which only grows, or a histogram.
        unit: as UCUM has it; one in braces is left out of Prometheus names.
        about: what is measured.
        bounds: the bounds of a histogram's buckets.
    """

    kind: Literal["counter", "histogram"]
    unit: str
    about: str
    bounds: tuple[float, ...] = ()


_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96)
_LONG: Final = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0)
_SHARE: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
TOKEN_USAGE: Final = "gen_ai.client.token.usage"
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
TURN_DURATION: Final = "gen_ai.invoke_agent.duration"
SESSION_DURATION: Final = "gen_ai.workflow.duration"
ROUND_DURATION: Final = "duolog.round.duration"
EVENTS: Final = "duolog.events"
MODEL_COST: Final = "duolog.model.cost"
SCORES: Final = "duolog.score.value"
RATINGS: Final = "duolog.progress.rating"
FINAL_UTILITY: Final = "duolog.session.utility"
SCORER_FAILURES: Final = "duolog.scorer.failures"
STOPS: Final = "duolog.stop.decisions"
APPROVALS: Final = "duolog.approvals"
APPROVAL_LATENCY: Final = "duolog.approval.latency"
INTERRUPTIONS: Final = "duolog.interruptions"
STRETCH_ACTS: Final = "duolog.agent.stretch.acts"
STRETCH_DURATION: Final = "duolog.agent.stretch.duration"
QUESTIONS: Final = "duolog.agent.questions"
CORRECTIONS: Final = "duolog.corrections"
FAILURES_REPORTED: Final = "duolog.failures.reported"
EFFORT_ROUNDS: Final = "duolog.effort.rounds"
EFFORT_ACTS: Final = "duolog.effort.acts"
EFFORT_DEFERRALS: Final = "duolog.effort.deferrals"
EFFORT_TIME: Final = "duolog.effort.time"
EFFORT_TOKENS: Final = "duolog.effort.tokens"

INSTRUMENTS: Final[Mapping[str, Instrument]] = {
    OPERATION_DURATION: Instrument(
        "histogram", "s", "Duration of model calls.", (*_SECONDS, 81.92)
    ),
    TOKEN_USAGE: Instrument(
        "histogram",
        "{token}",
        "Tokens of model calls, by direction.",
        tuple(4.0**power for power in range(14)),
    ),
    TOOL_DURATION: Instrument("histogram", "s", "Duration of actions.", (*_SECONDS, 81.92)),
    APPROVALS: Instrument("counter", "{approval}", "Approvals, by decision and by who decided."),
    APPROVAL_LATENCY: Instrument(
        "histogram", "s", "Time that persons took to decide on an approval.", _LONG
    ),
    INTERRUPTIONS: Instrument(
        "counter",
        "{interruption}",
        "Messages of humans while an action of an agent was in flight, and stops of agents at work.",
    ),
    STRETCH_ACTS: Instrument(
        "histogram",
        "{act}",
        "Acts of agents between acts of humans.",
        tuple(2.0**power for power in range(11)),
    ),
    STRETCH_DURATION: Instrument(
        "histogram", "s", "Time from the first to the last of these acts.", _LONG
    ),
    QUESTIONS: Instrument("counter", "{message}", "Messages of agents with a question."),
    CORRECTIONS: Instrument("counter", "{message}", "Messages of humans that correct an agent."),
    FAILURES_REPORTED: Instrument(
        "counter", "{message}", "Messages of humans that report dissatisfaction."
    ),
    TURN_DURATION: Instrument("histogram", "s", "Duration of agents' turns.", _LONG),
    SESSION_DURATION: Instrument("histogram", "s", "Duration of sessions, when they close.", _LONG),
    ROUND_DURATION: Instrument("histogram", "s", "Duration of rounds.", _LONG),
    EVENTS: Instrument("counter", "{event}", "Events in the log, by kind."),
    MODEL_COST: Instrument("counter", "usd", "What model calls cost, where that is known."),
    SCORES: Instrument("histogram", "1", "Utilities that scorers gave.", _SHARE),
    RATINGS: Instrument("histogram", "1", "Ratings of progress, 1 to 5.", (1, 2, 3, 4, 5)),
    FINAL_UTILITY: Instrument("histogram", "1", "Utility that stands as a session closes.", _SHARE),
    SCORER_FAILURES: Instrument("counter", "{failure}", "Sessions in which a scorer failed."),
    STOPS: Instrument("counter", "{decision}", "Stops advised, by tolerance."),
    EFFORT_ROUNDS: Instrument("counter", "{round}", "Rounds in which humans acted."),
    EFFORT_ACTS: Instrument("counter", "{act}", "Acts of humans."),
    EFFORT_DEFERRALS: Instrument("counter", "{deferral}", "Vague asks of humans."),
    EFFORT_TIME: Instrument("counter", "s", "Time that humans spent."),
    EFFORT_TOKENS: Instrument("counter", "{token}", "Tokens that humans wrote, and had to read."),
}
"""Every metric by its name. None has a label that tells sessions or people apart."""
