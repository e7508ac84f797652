"""Names of metrics as Prometheus gets to see them, through OpenTelemetry's exporter."""

from __future__ import annotations

import re
import time

import duolog
from duolog.engine.events import ScorerRef, Tokens
from duolog.engine.scorers.protocol import Scorer, SessionScorer
from duolog.scoring.scorers.feedback import FeedbackUtility
from duolog.scoring.scorers.progress import rule_judge
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, generate_latest

NAMES = {
    "duolog_agent_stretch_acts": "histogram",
    "duolog_agent_stretch_duration_seconds": "histogram",
    "duolog_effort_acts_total": "counter",
    "duolog_effort_rounds_total": "counter",
    "duolog_effort_time_seconds_total": "counter",
    "duolog_effort_tokens_total": "counter",
    "duolog_events_total": "counter",
    "duolog_model_cost_usd_total": "counter",
    "duolog_progress_rating": "histogram",
    "duolog_round_duration_seconds": "histogram",
    "duolog_score_value": "histogram",
    "duolog_scorer_failures_total": "counter",
    "duolog_session_utility": "histogram",
    "duolog_stop_decisions_total": "counter",
    "gen_ai_client_operation_duration_seconds": "histogram",
    "gen_ai_client_token_usage": "histogram",
    "gen_ai_execute_tool_duration_seconds": "histogram",
    "gen_ai_invoke_agent_duration_seconds": "histogram",
    "gen_ai_workflow_duration_seconds": "histogram",
}


class Faulty:
    """A scorer that raises."""

    ref = ScorerRef(name="faulty", version="1", config="")

    def begin(self, session: str) -> SessionScorer:
        raise ValueError("it does not even begin")


async def scrape() -> str:
    """What Prometheus reads after a session in which everything happens."""
    reader = PrometheusMetricReader()
    meters = MeterProvider([reader])
    try:
        async with duolog.open("memory://") as log:
            scorers: list[Scorer] = [FeedbackUtility(), rule_judge(), Faulty()]
            log.watch(scorers=scorers).start()
            async with duolog.otel_export(log, meter_provider=meters, deadline=60):
                s = await log.session("s", task="support", agent="v7", judge="human")
                for number in range(3):
                    at = time.time() + 10 * (number + 1)  # a session is opened now, and continues
                    await s.human.says("Where is it?", at=at)
                    await s.agent.called_model(
                        "openai/gpt-4o",
                        tokens=Tokens(prompt=10, completion=5),
                        latency=0.5,
                        cost=0.001,
                        at=at + 1,
                    )
                    await s.agent.acts("look_up", result="nowhere", at=at + 2)
                    await s.agent.submits(f"draft {number}", at=at + 3)
                    await s.human.rates(1, at=at + 4)
                await s.human.feedback(thumbs="down")
                await s.close()
        return generate_latest(REGISTRY).decode()
    finally:
        meters.shutdown()


async def test_prometheus_names_come_out_well() -> None:
    text = await scrape()
    ours = dict(re.findall(r"^# TYPE ((?:duolog|gen_ai)_\w+) (\w+)$", text, re.MULTILINE))
    assert ours == NAMES
    helps = dict(re.findall(r"^# HELP ((?:duolog|gen_ai)_\w+) (.+)$", text, re.MULTILINE))
    assert set(helps) == set(NAMES)
    assert re.search(
        r'^duolog_stop_decisions_total{.*duolog_stop_tau="1".*} 1\.0$', text, re.MULTILINE
    )
    assert re.search(
        r'^duolog_effort_tokens_total{duolog_effort_direction="written",.*} \d+\.0$',
        text,
        re.MULTILINE,
    )
    assert 'gen_ai_conversation_id="' not in text
