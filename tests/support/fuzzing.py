"""Throws inputs that are made up at every importer and endpoint, in a process with little memory.

``python fuzzing.py SEED RUNS`` is that process. An input passes if it is read, or refused with an
error of Duolog. Anything else ends the process, with the seed of the input that did it.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

__all__ = ("HANGS", "MEMORY", "fuzz")

MEMORY: Final = 3 * 2**29
"""Bytes of addresses that the process may have. The inputs have at most a few hundred kB."""

HANGS: Final = 120
"""Seconds after which an input counts as one that never ends."""

KEYS: Final = (
    "id type role content text messages message uuid parentUuid sessionId timestamp name kind actor body "
    "events event payload item response_item session_meta steps trajectory history action observation "
    "thought query info model usage input output tool_calls function arguments tool_use tool_result "
    "resourceSpans scopeSpans spans traceId spanId attributes key value stringValue intValue arrayValue "
    "kvlistValue values startTimeUnixNano data observations metadata conversations from conversation_id "
    "eval samples epoch scores simulations tasks trajectory_id schema_version agent session stream version "
    "schema time source cause reward traj task_id user_id isSidechain toolUseResult patch diff"
).split()
WORDS: Final = (
    "user assistant system tool human gpt agent ann trace MessageSent SessionOpened SnapshotTaken "
    "2026-01-01T10:00:00Z 1767261600 s1 message text tool_use function_call reasoning env \ud800 \x00 ~~~ "
    "**a** | - > ``` Bearer sk-proj-abcdefgh123456 eyJhbGciOi.x.y"
).split(" ")
FORMATS: Final = (
    "ag-ui atif chat claude-code codex cogym inspect langfuse lmsys openinference otlp openhands sharegpt "
    "swe-agent tau"
).split()


HERE: Final = "http://127.0.0.1:8730"
POSTED: Final = (
    "/enter /v1/reviews/add /v1/links/make /v1/links/revoke /v1/alerts/add /v1/alerts/remove"
).split()
SHOWN: Final = (
    "/session /sessions /review /compare /v1/export/session /v1/export/session?format=md "
    "/v1/export/sessions /v1/sessions/named"
).split()
BUNDLED: Final = (
    "bundle.json manifest.json report.json report.txt DATA_CARD.md SHA256SUMS records.jsonl"
).split()


TASK: Final = f"{Path(__file__).with_name('participation_task.py')}:ShoppingTask"
STUDY: Final = f"""
name = "fuzz"
title = "Shopping"
consent = "You may leave at any time."
recruitment = {{ participant = "PID", parameters = ["PID"] }}
condition = [{{ name = "one", task = "{TASK}" }}]

[[questionnaire]]
name = "first"
when = "before"
item = [{{ name = "age", text = "Age?", type = "number" }}, {{ name = "why", text = "Why?", type = "text" }}]
"""
ACT: Final = '"session":SESSION,"actor":"user","id":"fuzz-0001"'
TAKING: Final[tuple[tuple[str, str], ...]] = (
    ("study/consent", '{"agreed":true,"ids":%s}'),
    ("study/answers", '{"questionnaire":"first","place":null,"answers":%s}'),
    ("study/answers", '{"questionnaire":"first","place":null,"answers":{"age":1,"why":%s}}'),
    ("study/begin", '{"place":%s}'),
    ("participate/begin", '{"task":%s}'),
    ("participate/act", f'{{"act":"say","text":%s,{ACT}}}'),
    ("participate/act", f'{{"act":"submit","content":%s,{ACT}}}'),
    ("participate/act", f'{{"act":"do","name":"x","arguments":%s,{ACT}}}'),
    ("participate/act", f'{{"act":"judge","of":%s,"kept":%s,{ACT}}}'),
    ("participate/changes", '{"session":SESSION,"actor":"user","text":%s}'),
    ("participate/merge", '{"session":SESSION,"actor":"user","base":null,"mine":%s}'),
    ("participate/effort", '{"session":SESSION,"actor":"user","reading":%s,"inserted":%s}'),
    ("participate/join", '{"session":%s}'),
    ("study/withdraw", "%s"),
)
"""Posts of people in a study: an address, and a body with places for made-up parts."""
SEEN: Final = (
    "/study /study/leave /participate /v1/participate/state /v1/participate/output".split()
)
"""The addresses of pages and streams that they open."""


def fuzz(seed: int, runs: int) -> None:
    """Makes up inputs one after the other, and reads each through one door."""
    doors = _doors()
    for number in range(seed, seed + runs):
        chance = random.Random(number)
        name = chance.choice(sorted(doors))
        data = _input(chance)
        signal.alarm(HANGS)
        try:
            doors[name](data, chance)
        except Exception as error:
            raise AssertionError(f"input {number} at {name}: {data[:300]!r}") from error
    signal.alarm(0)


def _input(chance: random.Random) -> bytes:
    """JSON of the shapes that formats have, often spoiled or blown up in some place."""
    value = _value(chance, 4)
    if chance.random() < 0.5:
        value = [value, *(_value(chance, 3) for _ in range(chance.randrange(4)))]
    lines = chance.random() < 0.4 and isinstance(value, list)
    text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    if chance.random() < 0.5:
        text = _blown_up(chance, text)
    data = text.encode("utf-8", "surrogatepass")
    for _ in range(chance.choice((0, 0, 0, 1, 5))):
        at = chance.randrange(len(data) + 1)
        data = data[:at] + bytes([chance.randrange(256)]) + data[at + chance.randrange(3) :]
    return data[: chance.randrange(len(data) + 1)] if chance.random() < 0.1 else data


def _value(chance: random.Random, depth: int) -> Any:  # noqa: ANN401 (JSON of any shape)
    kind = chance.random()
    if not depth or kind < 0.35:
        return chance.choice(
            (
                chance.choice(WORDS),
                " ".join(chance.choices(WORDS, k=chance.randrange(20))),
                chance.randrange(-5, 10 ** chance.randrange(1, 25)),
                chance.random() * 10 ** chance.randrange(-9, 300),
                None,
                True,
                {},
                [],
                json.dumps({chance.choice(KEYS): chance.choice(WORDS)}),
            )
        )
    if kind < 0.6:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(5))]
    return {chance.choice(KEYS): _value(chance, depth - 1) for _ in range(chance.randrange(1, 9))}


def _blown_up(chance: random.Random, text: str) -> str:
    """The text with a stretch repeated, or something nested or long put into it."""
    at = chance.randrange(len(text) + 1)
    times: int = 10 ** chance.randrange(1, 6)
    piece = chance.choice(
        ("{},", "[", '{"a":', "*", "a", '"a":1,', "[],", "\\u0041", "| ", "\n", ", ")
    )
    if chance.random() < 0.5:
        stretch = text[at : at + chance.randrange(1, 200)]
        return text[:at] + stretch * min(times, 300_000 // max(len(stretch), 1)) + text[at:]
    return text[:at] + piece * min(times, 100_000) + text[at:]


def _doors() -> dict[str, Callable[[bytes, random.Random], None]]:  # noqa: C901  (one function for each door)
    """What reads an input, by name; each raises what is not an error of Duolog."""
    import anyio
    import httpx
    from duolog.agents.external.json_rpc import read_message
    from duolog.agents.external.lines import read_reply
    from duolog.engine.errors import DuologError
    from duolog.engine.events import MessageSent, SnapshotTaken
    from duolog.engine.log.exchange.jsonl_export import from_jsonl
    from duolog.engine.log.open import MemoryLog
    from duolog.engine.records import Draft
    from duolog.engine.redaction import redact, redact_forms
    from duolog.engine.settings import settings_in
    from duolog.experiments.bundle import verify_bundle
    from duolog.experiments.studies.people import read_people
    from duolog.experiments.studies.plan import read_study, resolved
    from duolog.experiments.studies.recruiting import Recruits, places_of
    from duolog.experiments.studies.running import Sittings
    from duolog.experiments.studies.site import OPEN, guests, study_part
    from duolog.experiments.workbench import SessionHost
    from duolog.interop.http.limits import HttpLimits
    from duolog.interop.http.requests import read_batch
    from duolog.interop.http.traces import read_spans
    from duolog.interop.importers.preview import preview_foreign
    from duolog.interop.importers.protocol import Reading
    from duolog.interop.importers.registry import find_importer, recognise
    from duolog.interop.workbench.access.identity import Access, Identity
    from duolog.interop.workbench.app import PARTS, make_workbench, make_workbench_app
    from duolog.interop.workbench.markup.text import rich_text
    from duolog.interop.workbench.participation.merging import merge, stretches
    from duolog.interop.workbench.participation.routes import participation
    from duolog.scoring.columns.parquet import MANIFEST, load_manifest
    from duolog.scoring.display.diff import changes
    from duolog.scoring.trajectory.files import read_trajectories
    from duolog.train.hosted import UserEndpoint, user_app
    from starlette.exceptions import HTTPException

    place = Path(tempfile.mkdtemp()) / "x.jsonl"

    def importer(name: str) -> Callable[[bytes, random.Random], None]:
        found = find_importer(name)

        def read(data: bytes, chance: random.Random) -> None:
            place.write_bytes(data)
            try:
                preview_foreign(place, found, Reading(growing=chance.random() < 0.1))
            except DuologError:
                return

        return read

    def recognised(data: bytes, chance: random.Random) -> None:
        place.write_bytes(data)
        try:
            recognise(place)
        except DuologError:
            return

    def posted(data: bytes, chance: random.Random) -> None:
        read_batch(data[: 1 << 20], 0.0, 1000)

    def spans(data: bytes, chance: random.Random) -> None:
        media = chance.choice(("application/json", "application/x-protobuf"))
        try:
            read_spans(data, media, chance.random() < 0.05, HttpLimits().of_traces)
        except HTTPException:
            return

    def line(data: bytes, chance: random.Random) -> None:
        try:
            from_jsonl(data)
        except DuologError:
            return

    def shown(data: bytes, chance: random.Random) -> None:
        text = data.decode("utf-8", "replace")
        rich_text(text)
        half = len(text) // 2
        changes(text[:half].split(), text[half:].split())

    def cleaned(data: bytes, chance: random.Random) -> None:
        text = data.decode("utf-8", "replace")
        once = redact_forms(text)
        assert redact_forms(once) == once
        redact(text[:20_000])

    def told(data: bytes, chance: random.Random) -> None:
        for read in (read_message, lambda line: read_reply(line.decode("utf-8", "replace"))):
            try:
                read(data)
            except DuologError:
                continue

    def judged(data: bytes, chance: random.Random) -> None:
        lines = data.decode("utf-8", "replace").replace(",", "\n").split("\n")
        texts = ["\n".join(chance.sample(lines, len(lines))) for _ in range(3)]
        stretches(*texts[:2])
        merge(*texts)

    def asked(data: bytes, chance: random.Random) -> None:
        """A simulated user, whose name the harness writes before what was made up."""
        if chance.random() < 0.5:
            words = json.dumps(data.decode("utf-8", "replace")[:10_000])
            seed = chance.choice((1, 10**17, 10**30, 10**4000))
            content = f'{{"role":"{chance.choice(("user", "assistant"))}","content":{words}}}'
            data = f'{{"model":"tutoring/lazy/0/{seed}","messages":[{content}]}}'.encode()

        async def ask() -> None:
            async with MemoryLog() as log, UserEndpoint(log) as endpoint:
                transport = httpx.ASGITransport(user_app(endpoint))
                async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
                    headers = {"Content-Type": "application/json"}
                    answer = await client.post(
                        "/v1/chat/completions", content=data, headers=headers
                    )
                    assert answer.status_code < 500, answer.text

        anyio.run(ask)

    def worked(data: bytes, chance: random.Random) -> None:
        """The workbench: the requests it gets, and the pages and exports of a session."""
        text = data.decode("utf-8", "replace")
        role: Literal["viewer", "operator"] = chance.choice(("viewer", "operator"))

        async def work() -> None:
            access = Access("the secret of the fuzzer")
            cookies = {access.cookie_name: access.cookie(Identity(role))}
            async with MemoryLog() as log, anyio.create_task_group() as tasks:
                events = (MessageSent(text=text), SnapshotTaken(content=text, digest=""))
                for event in events:
                    try:
                        await log.append("s", [Draft(event, "bot", "agent", 1.0)])
                    except DuologError:
                        continue
                workbench = make_workbench(log, access, name="fuzz")
                tasks.start_soon(workbench.sessions.run)
                transport = httpx.ASGITransport(make_workbench_app(workbench))
                async with httpx.AsyncClient(
                    transport=transport, base_url=HERE, cookies=cookies, headers={"Origin": HERE}
                ) as client:
                    answers = [
                        await client.post(
                            path, content=data, headers={"Content-Type": "application/json"}
                        )
                        for path in POSTED
                    ]
                    answers += [
                        await client.get(path, params={"id": "s", "q": text[:200]})
                        for path in SHOWN
                    ]
                for answer in answers:
                    assert answer.status_code < 500, f"{answer.request.url}: {answer.text[:300]}"
                tasks.cancel_scope.cancel()

        anyio.run(work)

    def studied(data: bytes, chance: random.Random) -> None:
        """A study and the seat of a participant: requests and pages."""
        text = data.decode("utf-8", "replace")
        folder = Path(tempfile.mkdtemp())
        plan = folder / "fuzz.toml"
        plan.write_text(STUDY, encoding="utf-8")
        study = resolved(read_study(plan))
        recruits = Recruits.at(places_of(plan), study.recruitment.parameters)
        held = text if chance.random() < 0.5 else json.dumps(text)

        async def take() -> None:
            async with MemoryLog() as about, MemoryLog() as log, anyio.create_task_group() as tasks:
                people = await read_people(study, about, log)
                host = SessionHost(log, tasks)
                bench = make_workbench(log, Access("the secret of the fuzzer"), name="fuzz")
                site = study_part(people, recruits, Sittings(people, host, log))
                app = make_workbench_app(
                    bench,
                    None,
                    (*PARTS, participation(host), site),
                    open_at=OPEN,
                    guest_of=guests(people, recruits),
                )
                async with httpx.AsyncClient(
                    transport=httpx.ASGITransport(app), base_url=HERE, headers={"Origin": HERE}
                ) as client:
                    answers = [await client.get("/study", params={"PID": "p"})]
                    session = "none"

                    async def post(path: str, body: str) -> httpx.Response:
                        body = body.replace("SESSION", json.dumps(session))
                        answers.append(
                            await client.post(
                                f"/v1/{path}",
                                content=body.encode("utf-8", "replace"),
                                headers={"Content-Type": "application/json"},
                            )
                        )
                        return answers[-1]

                    for path, body in chance.sample(TAKING[:3], 3):
                        await post(path, body.replace("%s", held))
                    await post("study/consent", '{"agreed":true}')
                    known = '{"questionnaire":"first","place":null,"answers":{"age":30,"why":"no"}}'
                    await post("study/answers", known)
                    begun = await post("study/begin", '{"place":1}')
                    if begun.status_code == 200:
                        session = httpx.URL(begun.json()["next"]).params["id"]
                    for path, body in chance.sample(TAKING, 5):
                        await post(path, body.replace("%s", held))
                    seen = {"id": session, "PID": text[:200]}
                    answers += [await client.get(path, params=seen) for path in SEEN]
                for answer in answers:
                    assert answer.status_code < 500, f"{answer.request.url}: {answer.text[:300]}"
                tasks.cancel_scope.cancel()

        try:
            anyio.run(take)
        finally:
            shutil.rmtree(folder)

    def tabled(data: bytes, chance: random.Random) -> None:
        """Settings in TOML, trajectories, and the manifest of tables."""
        tables = place.parent
        (tables / MANIFEST).write_bytes(data)
        place.write_bytes(b'{"session":"s","rounds":' + data)
        for read in (
            lambda: settings_in(data.decode("utf-8", "replace"), "x.toml"),
            lambda: load_manifest(tables),
            lambda: [*read_trajectories(place)],
        ):
            try:
                read()
            except DuologError:
                continue

    def bundled(data: bytes, chance: random.Random) -> None:
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in BUNDLED:
                archive.writestr(name, data)
        try:
            anyio.run(verify_bundle, place)
        except DuologError:
            return

    doors = {f"import {name}": importer(name) for name in FORMATS}
    return doors | {
        "recognise": recognised,
        "post": posted,
        "traces": spans,
        "line": line,
        "show": shown,
        "redact": cleaned,
        "agent": told,
        "output": judged,
        "user": asked,
        "workbench": worked,
        "bundle": bundled,
        "study": studied,
        "tables": tabled,
    }


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fuzz(int(sys.argv[1]), int(sys.argv[2]))
