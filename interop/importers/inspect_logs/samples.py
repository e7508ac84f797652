"""Steps, times and scores, out of a sample of Inspect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import JSON, ScorerRef, Tokens, UtilityScored
from ..chat.steps import steps_of
from ..conversation.numbers import count_of, share_of
from ..conversation.steps import Ending, ModelUse, Reasoning, Step, ToolResult
from .files import Evaluation, Sample

__all__ = (
    "ending_of",
    "messages_in",
    "scores_of",
    "steps_of_message",
    "times_of",
    "usage_of_sample",
)

_ATTACHED: Final = "attachment://"
_GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0} | {
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
"""What Inspect takes for numbers: correct, partly, incorrect, no answer, and yes and no."""
_SCORING: Final = "scorers"
_ONE_SCORER: Final = "score"


def messages_in(sample: Sample) -> Sequence[Mapping[str, JSON]]:
    """The messages of a sample; of one that broke off before any, its input."""
    if sample.messages or sample.input is None:
        return sample.messages or ()
    if isinstance(sample.input, str):
        return [{"role": "user", "content": sample.input}]
    listed = sample.input if isinstance(sample.input, Sequence) else ()
    return [message for message in listed if isinstance(message, Mapping)]


def ending_of(sample: Sample) -> Ending:
    """How a sample ended, as far as the log says."""
    if isinstance(sample.error, Mapping):
        return Ending("failed", detail=_short(sample.error.get("message")))
    if isinstance(sample.limit, Mapping):
        return Ending("limit", detail=_short(sample.limit.get("type")))
    return Ending()


def _short(value: JSON) -> str:
    return "" if value is None else str(value)[:200]


def steps_of_message(message: Mapping[str, JSON], attachments: Mapping[str, str]) -> Iterator[Step]:
    """The steps of a message, with what was attached in its place.

    Raises:
        InvalidInput: it is no message.
    """
    content = _whole(message.get("content"), attachments)
    if message.get("role") == "tool":
        yield _result(message, content)
        return
    if not isinstance(content, str) and isinstance(content, Sequence):
        for block in content:
            if isinstance(block, Mapping) and block.get("type") == "reasoning":
                yield Reasoning(str(block.get("reasoning") or ""))
        content = [
            block
            for block in content
            if not (isinstance(block, Mapping) and block.get("type") == "reasoning")
        ]
    calls = message.get("tool_calls")
    listed: list[JSON] = []
    for call in calls if isinstance(calls, Sequence) and not isinstance(calls, str) else ():
        if not isinstance(call, Mapping):
            raise InvalidInput("a tool call is no object")
        name, arguments = call.get("function"), _whole(call.get("arguments"), attachments)
        listed.append({"id": call.get("id"), "function": {"name": name, "arguments": arguments}})
    if content == "" and listed:
        content = None
    yield from steps_of({"role": message.get("role"), "content": content, "tool_calls": listed})


def _result(message: Mapping[str, JSON], content: JSON) -> ToolResult:
    error = message.get("error")
    why: str | None = None
    if isinstance(error, Mapping):
        why = str(error.get("message") or error.get("type") or "it failed")
    call = message.get("tool_call_id")
    return ToolResult(call if isinstance(call, str) else "", content, why)


def _whole(value: JSON, attachments: Mapping[str, str]) -> JSON:
    """A value with the texts that stand elsewhere in the sample."""
    if isinstance(value, str):
        if not value.startswith(_ATTACHED):
            return value
        return attachments.get(value.removeprefix(_ATTACHED), value)
    if isinstance(value, Mapping):
        return {key: _whole(held, attachments) for key, held in value.items()}
    if isinstance(value, Sequence):
        return [_whole(held, attachments) for held in value]
    return value


def times_of(sample: Sample) -> dict[str, JSON]:
    """When messages came: by id of a reply, and by id of a call for its result; the sample's
    beginning under the empty id.
    """
    times: dict[str, JSON] = {}
    for event in sample.events or ():
        times.setdefault("", event.get("timestamp"))
        if event.get("event") == "model":
            message = _reply(event)
            if message is not None and isinstance(message.get("id"), str):
                when = event.get("completed") or event.get("timestamp")
                times.setdefault(str(message["id"]), when)
        elif event.get("event") == "tool" and isinstance(event.get("id"), str):
            times[str(event["id"])] = event.get("completed") or event.get("timestamp")
    return times


def usage_of_sample(evaluation: Evaluation, sample: Sample) -> Iterator[ModelUse]:
    """The model calls of the sample, those of its scorers left out; where the log does not list
    calls, the sum of the evaluated model.
    """
    listed = False
    for event in sample.events or ():
        kind = event.get("event")
        if kind == "score" or (kind == "span_begin" and event.get("type") == _SCORING):
            break
        if kind == "step" and event.get("name") == _SCORING:
            break
        output = event.get("output")
        if kind == "model" and isinstance(output, Mapping):
            tokens = _tokens(output.get("usage"))
            if tokens is not None:
                listed = True
                yield ModelUse(model=_model(event) or evaluation.model, tokens=tokens)
    if not listed and evaluation.model is not None:
        tokens = _tokens((sample.model_usage or {}).get(evaluation.model))
        if tokens is not None:
            yield ModelUse(model=evaluation.model, tokens=tokens, purpose="act (all calls)")


def scores_of(sample: Sample) -> tuple[UtilityScored, ...]:
    """The scores that the evaluation gave, each as a utility of its own scorer."""
    scores = sample.scores
    if scores is None and sample.score is not None:
        scores = {_ONE_SCORER: sample.score}
    return tuple(_score(name, score) for name, score in (scores or {}).items())


def _score(name: str, score: Mapping[str, JSON]) -> UtilityScored:
    ref = ScorerRef(name=name, version="1", config=codec.digest({"inspect": name}))
    value = score.get("value")
    if isinstance(value, bool):
        value = int(value)
    found = share_of(_number(value) if isinstance(value, str) else value)
    if found is not None:
        return UtilityScored(scorer=ref, value=found)
    return UtilityScored(scorer=ref, missing=f"the score {value!r} is no number in [0, 1]"[:200])


def _number(value: str) -> float | None:
    try:
        return _GRADES[value] if value in _GRADES else float(value)
    except ValueError:
        return _GRADES.get(value.lower())


def _reply(event: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    output = event.get("output")
    choices = output.get("choices") if isinstance(output, Mapping) else None
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        return None
    first = choices[0]
    message = first.get("message") if isinstance(first, Mapping) else None
    return message if isinstance(message, Mapping) else None


def _model(event: Mapping[str, JSON]) -> str | None:
    model = event.get("model")
    return model if isinstance(model, str) else None


def _tokens(usage: JSON) -> Tokens | None:
    if not isinstance(usage, Mapping):
        return None
    names = {
        "prompt": "input_tokens",
        "completion": "output_tokens",
        "cached": "input_tokens_cache_read",
        "cache_creation": "input_tokens_cache_write",
        "reasoning": "reasoning_tokens",
    }
    return Tokens(**{field: count_of(usage.get(name)) for field, name in names.items()})
