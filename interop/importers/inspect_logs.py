"""The importer for logs of Inspect, as archives (``.eval``) or JSON: a session for each sample and
epoch.

The user's texts, the sample's input first, are messages of the human. The scores of the evaluation
are measurements of its scorers. A sample in a log is over.
"""

from __future__ import annotations

import copy
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Final, NamedTuple, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput, MissingExtra
from ...engine.events import JSON, DecisionSource, ScorerRef, Tokens, UtilityScored
from .chat import steps_of, text_of
from .conversation.builder import Participants
from .conversation.numbers import count_of, share_of
from .conversation.steps import (
    AGENT,
    HUMAN,
    ApprovalRequest,
    ApprovalResponse,
    Ending,
    ModelUse,
    Reasoning,
    Step,
    ToolResult,
    Utterance,
)
from .conversation.transcript import Entry, Transcript, read_transcript
from .json_files import PIECE, decode, load
from .json_sniff import Shape
from .json_stream import Member, elements_of, members_of, read_at
from .protocol import Diagnostic, Found, Reading
from .timestamps import seconds_of

__all__ = ("InspectImporter",)

_ZSTANDARD: Final = 93
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD})
_UNREADABLE: Final = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,  # it is encrypted, or compressed in a way that is not known
)


def check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    """Checks what all members of an archive would become together, which may share their bytes.

    Raises:
        InvalidInput: it is too much.
        OSError: the size of its file is not known.
    """
    try:
        PIECE.check_inflated(path.stat().st_size, sum(one.file_size for one in archive.infolist()))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The contents of a member of an archive.

    Raises:
        InvalidInput: it is too long for a document, is damaged, or cannot be read.
        MissingExtra: it is compressed with Zstandard, and nothing here reads that.
    """
    info = archive.getinfo(name)
    try:
        PIECE.check_size(info.file_size)
        PIECE.check_inflated(info.compress_size, info.file_size)
    except InvalidInput as error:
        raise InvalidInput(f"{archive.filename}, {name}: {error}") from None
    if info.compress_type not in _METHODS:
        raise InvalidInput(f"{archive.filename}, {name}: Inspect does not use this compression")
    own = info.compress_type != _ZSTANDARD or hasattr(zipfile, "ZIP_ZSTANDARD")
    try:
        if not own:
            return _zstandard(archive, info)
        with archive.open(info) as member:
            # Always pass a size: compressed data may be longer than the archive says.
            return member.read(info.file_size)
    except _UNREADABLE as error:
        raise InvalidInput(f"cannot read {archive.filename}, {name}: {error}") from error


def _zstandard(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        import zstandard
    except ModuleNotFoundError as error:
        what = f"reading {archive.filename}, which is compressed with Zstandard,"
        raise MissingExtra("inspect", what) from error
    with archive.open(_as_stored(info)) as packed:
        try:
            data: bytes = zstandard.ZstdDecompressor().stream_reader(packed).read(info.file_size)
        except zstandard.ZstdError as error:
            raise zipfile.BadZipFile(str(error)) from error
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile("its checksum differs")
    return data


def _as_stored(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """The member as if it were not compressed, so that its stored bytes are read."""
    stored = copy.copy(info)
    stored.compress_type = zipfile.ZIP_STORED
    stored.file_size = info.compress_size
    del stored.CRC  # of the contents; without it, no checksum is compared
    return stored


# --- the samples of a log of Inspect --------------------------------------------------------------


_HEADER: Final = "header.json"
_STARTED: Final = "_journal/start.json"
_SAMPLES: Final = "samples/"
_NAMED = re.compile(r"samples/(.*)_epoch_(\d{1,18})\.json", re.DOTALL)
_MOST: Final = 1 << 18  # samples in a document, which are sorted


class Evaluation(msgspec.Struct):
    """The evaluated task and model."""

    task: str | None = None
    model: str | None = None
    run_id: str | None = None
    eval_id: str | None = None
    created: str | None = None


class Sample(msgspec.Struct):
    """One sample in one epoch."""

    id: str | int
    epoch: int = 1
    messages: list[Mapping[str, JSON]] | None = None
    input: JSON = None
    target: JSON = None
    scores: Mapping[str, Mapping[str, JSON]] | None = None
    score: Mapping[str, JSON] | None = None  # of old, if there was one scorer
    metadata: Mapping[str, JSON] | None = None
    events: list[Mapping[str, JSON]] | None = None
    attachments: Mapping[str, str] | None = None
    model_usage: Mapping[str, Mapping[str, JSON]] | None = None
    error: JSON = None
    limit: JSON = None


class _Log(msgspec.Struct):
    eval: Evaluation


class _Key(msgspec.Struct):
    id: str | int
    epoch: int = 1


class _Found(NamedTuple):
    """The place of a sample in a document."""

    key: tuple[str, int]
    where: str
    place: Member


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of Inspect."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False
    return bool(names & {_HEADER, _STARTED})


def samples_in(path: Path) -> Iterator[tuple[Evaluation, Sample, str] | Diagnostic]:
    """The samples of a log, by their ids as text and by epochs, with their evaluation and place; a
    diagnostic for one that cannot be read.

    Raises:
        InvalidInput: the file cannot be read, or is not a log of Inspect.
        MissingExtra: it is compressed with Zstandard, and nothing here reads that.
    """
    if zipfile.is_zipfile(path):
        yield from _archived(path)
        return
    evaluation, found = _listed(path)
    for one in sorted(found, key=lambda one: one.key):
        yield _sample(evaluation, read_at(path, one.place), one.where)


def _sample(
    evaluation: Evaluation, data: bytes, where: str
) -> tuple[Evaluation, Sample, str] | Diagnostic:
    try:
        return evaluation, decode(data, Sample), where
    except InvalidInput as error:
        return Diagnostic("problem", f"invalid sample: {error}", where)


def _listed(path: Path) -> tuple[Evaluation, list[_Found]]:
    """The contents of one document: the places of its samples, which may not fit into memory."""
    members = members_of(path)
    if "eval" not in members:
        raise InvalidInput(f"{path} is not an Inspect log: it lacks eval")
    evaluation = load(read_at(path, members["eval"]), Evaluation, f"{path}, eval")
    samples = members.get("samples")
    if samples is None or read_at(path, samples._replace(size=1)) != b"[":
        return evaluation, []
    found: list[_Found] = []
    for number, (place, data) in enumerate(elements_of(path, samples.offset), start=1):
        if number > _MOST:
            raise InvalidInput(f"{path} has more than {_MOST:,} samples")
        try:
            key = decode(data, _Key)
        except InvalidInput:
            key = _Key("", 0)
        found.append(_Found((str(key.id), key.epoch), f"{path}, sample {number}", place))
    return evaluation, found


def _archived(path: Path) -> Iterator[tuple[Evaluation, Sample, str] | Diagnostic]:
    """Yields the samples of an archive, ordered by name to decompress each member only once."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_archive(archive, path)
            names = archive.namelist()
            header = next((name for name in (_HEADER, _STARTED) if name in names), None)
            if header is None:
                raise InvalidInput(f"{path} is not an Inspect log: it lacks {_HEADER}")
            log = load(read_member(archive, header), _Log, f"{path}, {header}")
            samples = {
                name for name in names if name.startswith(_SAMPLES) and name.endswith(".json")
            }
            for name in sorted(samples, key=_order):
                where = f"{path}, {name}"
                try:
                    data = read_member(archive, name)
                except InvalidInput as error:
                    yield Diagnostic("problem", f"invalid sample: {error}", where)
                    continue
                yield _sample(log.eval, data, where)
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error


def _order(name: str) -> tuple[str, int]:
    """The id and the epoch of a sample, which its name says."""
    found = _NAMED.fullmatch(name)
    return (name, 0) if found is None else (found[1], int(found[2]))


# --- steps, times and scores, out of a sample of Inspect ------------------------------------------


_ATTACHED: Final = "attachment://"
_GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0} | {
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
"""What Inspect takes for numbers: correct, partly, incorrect, no answer, and yes and no."""
_SCORING: Final = "scorers"
_APPROVED: Final = frozenset({"approve", "modify"})
_DECISIONS: Final = _APPROVED | {"reject", "terminate"}  # "escalate" is none
_APPROVERS: Final[Mapping[str, DecisionSource]] = {"human": "person", "auto": "setting"}
"""The source of a decision, by the names of the approvers of Inspect itself; others are rules."""
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
    """The steps of a message, with its attachments in place.

    Raises:
        InvalidInput: it is not a message.
    """
    content = _whole(message.get("content"), attachments)
    call = message.get("tool_call_id")
    if message.get("role") == "tool" or (message.get("role") == HUMAN and isinstance(call, str)):
        yield _result(message, content)
        return
    if message.get("role") == HUMAN and call:  # what a tool's message cannot hold, such as images
        yield Utterance("system", None, text_of(content)[0])
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
            raise InvalidInput("a tool call is not an object")
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
    """A value with the texts that are stored elsewhere in the sample."""
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


def approvals_in(sample: Sample) -> dict[str, Mapping[str, JSON]]:
    """The decision about each call that was put to an approver, by the call's id.

    An approver may escalate to the next one, so the last decision counts.
    """
    found: dict[str, Mapping[str, JSON]] = {}
    for event in sample.events or ():
        call = event.get("call")
        if event.get("event") != "approval" or not isinstance(call, Mapping):
            continue
        key = call.get("id")
        if isinstance(key, str) and event.get("decision") in _DECISIONS:
            found[key] = event
    return found


def approval_entries(
    message: Mapping[str, JSON],
    decisions: Mapping[str, Mapping[str, JSON]],
    where: str,
    asked: float | None,
    zone: tzinfo | None,
) -> Iterator[Entry]:
    """The requests for approval of a message's calls, and the answers.

    Args:
        message: the message.
        decisions: by id of a call.
        where: the place in the source.
        asked: when the message came.
        zone: of times that name none.
    """
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, Sequence) and not isinstance(calls, str) else ():
        key = call.get("id") if isinstance(call, Mapping) else None
        if not isinstance(call, Mapping) or not isinstance(key, str) or key not in decisions:
            continue
        decision = decisions[key]
        given, tool = call.get("arguments"), str(call.get("function"))
        arguments = given if isinstance(given, Mapping) else {}
        request = ApprovalRequest(key, tool, arguments, f"May I call {tool}?")
        yield Entry(f"asked/{key}", where, asked, (request,))
        approver, comment = decision.get("approver"), decision.get("explanation")
        answer = ApprovalResponse(
            key,
            decision.get("decision") in _APPROVED,
            comment if isinstance(comment, str) else "",
            _APPROVERS.get(approver, "rule") if isinstance(approver, str) else None,
        )
        time = seconds_of(decision.get("completed") or decision.get("timestamp"), zone)
        yield Entry(f"answered/{key}", where, time, (answer,))


def usage_of_sample(evaluation: Evaluation, sample: Sample) -> Iterator[ModelUse]:
    """The model calls of the sample, those of its scorers left out; if the log does not list
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
    """The scores that the evaluation gave, each as a utility by a separate scorer."""
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


# --- the importer for logs of Inspect, as archives (``.eval``) or JSON ----------------------------


_NAME: Final = "inspect"


@final
class InspectImporter:
    """Reads logs of Inspect."""

    name = _NAME
    about = "logs of Inspect (.eval or JSON)"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file is an archive of Inspect, or begins like its JSON."""
        if shape is None:
            return source.is_file() and is_archive(source)
        return shape.form == "object" and {"version", "status", "eval"} <= shape.keys

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the samples in a file.

        Raises:
            InvalidInput: it cannot be read.
            MissingExtra: it is compressed with Zstandard, and nothing here reads that.
        """
        for found in samples_in(source):
            if isinstance(found, Diagnostic):
                yield found
            else:
                yield from _read(*found, reading)


def _read(evaluation: Evaluation, sample: Sample, where: str, reading: Reading) -> Iterator[Found]:
    run = evaluation.run_id or evaluation.eval_id or _NAME
    session = f"{run}-{sample.id}-{sample.epoch}"
    times = {key: seconds_of(stamp, reading.zone) for key, stamp in times_of(sample).items()}
    start = times.get("")
    if start is None:
        start = seconds_of(evaluation.created, reading.zone)
    entries: list[Entry] = []
    messages = messages_in(sample)
    decisions = approvals_in(sample)
    for number, message in enumerate(messages, start=1):
        place = f"{where}, message {number}"
        try:
            steps = tuple(steps_of_message(message, sample.attachments or {}))
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid message: {error}", place, session)
            continue
        key = message.get("tool_call_id", message.get("id"))
        entries.append(Entry(number, place, times.get(str(key)), steps))
        entries += approval_entries(message, decisions, place, times.get(str(key)), reading.zone)
    used: tuple[Step, ...] = tuple(usage_of_sample(evaluation, sample))
    entries.append(Entry(len(messages) + 1, where, None, (*used, ending_of(sample))))
    config: dict[str, JSON] = {"sample": f"{sample.id}/{sample.epoch}"}
    if sample.metadata:
        config["metadata"] = sample.metadata
    transcript = Transcript(
        session=session,
        format=_NAME,
        where=where,
        entries=entries,
        participants=Participants(
            (step for entry in entries for step in entry.steps), (HUMAN, AGENT)
        ),
        start=start,
        task=evaluation.task,
        instance=str(sample.id),
        models={AGENT: evaluation.model},
        config=config,
        scores=scores_of(sample),
    )
    yield from read_transcript(transcript, reading)
