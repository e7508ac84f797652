"""Any format in JSON, by a mapping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import duolog
import pytest
from duolog.engine.budget import Budget
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    ProgressRated,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.interop.importers import mapping
from duolog.interop.importers.mapping import MappingImporter, load_mapping
from duolog.interop.importers.preview import preview_foreign
from duolog.interop.importers.protocol import Reading
from duolog.interop.importers.run import import_foreign
from duolog.testing import check_importer
from foreign_logs import events_of, read

Json = dict[str, Any]

MAPPING = """
[session]
each = "$.tickets[*]"
id = "$.number"
task = "$.queue"
agent = "$.bot.name"
utility = "$.solved"

[message]
each = "$.turns[*]"
role = "$.by"
text = "$.body.text"
time = "$.at"
input_tokens = "$.used.in"

[roles]
customer = "human"
bot = "agent"
note = "skip"

[call]
each = "$.tools[*]"
name = "$.tool"
arguments = "$.given"
result = "$.gave"
error = "$.failed"

[output]
content = "$.draft"
"""

TICKETS: Json = {
    "tickets": [
        {
            "number": 7,
            "queue": "returns",
            "bot": {"name": "b-2"},
            "solved": 1,
            "turns": [
                {"by": "customer", "at": "2026-01-01T10:00:00Z", "body": {"text": "Broken"}},
                {
                    "by": "bot",
                    "at": "2026-01-01T10:00:09Z",
                    "body": {"text": "I look."},
                    "used": {"in": 12},
                    "tools": [
                        {"tool": "find", "given": '{"id": 1}', "gave": {"ok": True}},
                        {"tool": "send", "given": {}, "failed": "no address"},
                    ],
                    "draft": "Dear customer",
                },
                {"by": "note", "body": {"text": "private"}},
            ],
        }
    ]
}


@pytest.fixture
def importer(tmp_path: Path) -> MappingImporter:
    path = tmp_path / "my.toml"
    path.write_text(MAPPING, encoding="utf-8")
    return MappingImporter(load_mapping(path), "my")


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_mapping_says_where_things_are(importer: MappingImporter, tmp_path: Path) -> None:
    events, diagnostics = read(importer, write(tmp_path / "t.json", TICKETS))
    assert not diagnostics
    opened = events[0].draft.event
    assert isinstance(opened, SessionOpened)
    assert (events[0].session, opened.task, opened.clock) == ("7", "returns", "utc")
    assert opened.config["group"] == {"agent": "b-2"}
    found = [event for _, event in events_of(events)]
    assert [event.text for event in found if isinstance(event, MessageSent)] == [
        "Broken",
        "I look.",
    ]
    assert [e.tokens.prompt for e in found if isinstance(e, ModelCalled)] == [12]
    calls = [(e.name, e.arguments) for e in found if isinstance(e, ActionTaken)]
    assert calls == [("find", {"id": 1}), ("send", {})]
    assert [e.error for e in found if isinstance(e, ActionResolved)] == [None, "no address"]
    assert [e.content for e in found if isinstance(e, SnapshotTaken)] == ["Dear customer"]
    [score] = [one.draft.event for one in events if isinstance(one.draft.event, UtilityScored)]
    assert score.value == 1.0


def test_a_role_that_is_not_named_is_a_problem(importer: MappingImporter, tmp_path: Path) -> None:
    strange = json.loads(json.dumps(TICKETS).replace('"customer"', '"client"'))
    _, [diagnostic] = read(importer, write(tmp_path / "t.json", strange))
    assert diagnostic.what == "its role is 'client', but [roles] has only bot, customer, note"
    assert diagnostic.where.endswith("message 1")


def test_paths_that_find_nothing_are_told(importer: MappingImporter, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nothing is found at session.each"):
        read(importer, write(tmp_path / "t.json", {"a": 1}))
    empty = {"tickets": [{"number": 1}]}
    _, [diagnostic] = read(importer, write(tmp_path / "t.json", empty))
    assert "nothing is found at message.each" in diagnostic.what


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[message", "is not TOML: "),
        ("[roles]", "is not a mapping: the key 'message' is missing"),
        (MAPPING.replace("$.by", "by"), "message.role: 'by' is not a JSONPath"),
        (MAPPING.replace("$.by", "$" + ".a" * 500), "a JSONPath has at most 1,000 characters"),
        (MAPPING.replace("$.by", f"$[?{'(' * 480}@.a{')' * 480}]"), "is not a JSONPath: it nests"),
        (MAPPING.replace("$.by", "$[?count($..*) > 1]"), "looks up '$..[*]' again for each value"),
        (MAPPING.replace("$.by", "$[?!(@.a && $.b[*])]"), "again for each value; a filter"),
        (MAPPING.replace("$.by", "$..a..b..c"), "searches at all depths (..) more than 2 times"),
        (MAPPING.replace("$.by", "$..a[?@..b[?@..c]]"), "searches at all depths (..) more"),
        (MAPPING.replace("$.by", "$[?match(@.a, @.b)]"), "a pattern in match() that is not a text"),
        (MAPPING.replace("$.by", "$[?search(@.a, '(a+)+')]"), "could take forever"),
        (
            MAPPING.replace('"skip"', '"ghost"'),
            "is not a mapping: roles[...]: unknown value 'ghost'",
        ),
        (MAPPING + "colour = 1\n", "is not a mapping: output: unknown key 'colour'"),
    ],
)
def test_a_wrong_mapping_is_one_clear_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"my\.toml") as caught:
        load_mapping(path)
    assert message in str(caught.value)


@pytest.mark.asyncio
async def test_the_importer_keeps_the_contract(importer: MappingImporter, tmp_path: Path) -> None:
    await check_importer(importer, write(tmp_path / "t.json", TICKETS))


# --- users, labels, feedback, ratings -------------------------------------------------------------

DESK = """
[session]
id = "$.id"
utility = "$.solved"
user = "$.customer"
labels = { country = "$.country", vip = "$.vip" }
feedback = "$.csat"
comment = "$.note"

[message]
each = "$.turns[*]"
role = "$.by"
text = "$.text"
feedback = "$.thumb"
rating = "$.stars"

[roles]
customer = "human"
bot = "agent"
staff = "operator"
"""

CASE: Json = {
    "id": "c1",
    "solved": True,
    "customer": "u-77",
    "country": "NZ",
    "vip": True,
    "csat": "up",
    "note": "thanks",
    "turns": [
        {"by": "customer", "text": "My parcel is late."},
        {"by": "bot", "text": "Which parcel?", "thumb": -1, "stars": 2},
        {"by": "customer", "text": "A person, please."},
        {"by": "staff", "text": "I have sent a new one.", "thumb": True},
    ],
}


def write_text(folder: Path, text: str) -> Path:
    path = folder / "desk.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_desk_has_users_labels_feedback_ratings_operators_and_results(tmp_path: Path) -> None:
    source = write(tmp_path / "case.json", CASE)
    events, diagnostics = read(MappingImporter(load_mapping(write_text(tmp_path, DESK))), source)
    assert not diagnostics
    found = [one.draft.event for one in events]
    opened = found[0]
    assert isinstance(opened, SessionOpened)
    assert opened.config["group"] == {"user": "u-77", "country": "NZ", "vip": "true"}
    assert [(one.name, one.role, one.policy) for one in opened.participants] == [
        ("user", "human", None),
        ("assistant", "agent", None),
        ("operator", "agent", "operator"),
    ]
    said = [(one.draft.actor, one.draft.event) for one in events]
    assert [who for who, event in said if isinstance(event, MessageSent)] == [
        "user",
        "assistant",
        "user",
        "operator",
    ]
    given = [one for one in found if isinstance(one, FeedbackGiven)]
    assert [(one.thumbs, one.comment) for one in given] == [
        ("down", ""),
        ("up", ""),
        ("up", "thanks"),
    ]
    about = [found[one.of - 1] for one in given if one.of is not None]
    assert [one.text for one in about if isinstance(one, MessageSent)] == [
        "Which parcel?",
        "I have sent a new one.",
    ]
    (rated,) = [one for one in found if isinstance(one, ProgressRated)]
    assert (rated.round, rated.rating) == (1, 2)
    (scored,) = [one for one in found if isinstance(one, UtilityScored)]
    assert scored.value == 1.0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"stars": 9}, "its rating is 9"),
        ({"thumb": "perhaps"}, "its feedback is 'perhaps'"),
    ],
)
def test_a_dry_run_refuses_what_an_import_would(change: Json, what: str, tmp_path: Path) -> None:
    turns = [*CASE["turns"][:1], {**CASE["turns"][1], **change}]
    source = write(tmp_path / "case.json", {**CASE, "turns": turns})
    importer = MappingImporter(load_mapping(write_text(tmp_path, DESK)))
    found = preview_foreign(source, importer, Reading())
    problems = [one.what for one in found.diagnostics if one.kind == "problem"]
    assert len(problems) == 1
    assert what in problems[0]


def test_two_sessions_of_one_name_are_refused_by_both(tmp_path: Path) -> None:
    other = {**CASE, "turns": [{"by": "customer", "text": "Another thing."}]}
    source = write(tmp_path / "cases.json", [CASE, other])
    importer = MappingImporter(load_mapping(write_text(tmp_path, DESK)))
    (problem,) = preview_foreign(source, importer, Reading()).diagnostics
    assert "another session of this id" in problem.what

    async def take() -> None:
        async with duolog.open("memory://") as log:
            await import_foreign(log, source, importer)

    with pytest.raises(InvalidInput, match="the log has another"):
        anyio.run(take)
    assert not preview_foreign(write(source, [CASE, CASE]), importer, Reading()).diagnostics


def test_a_label_with_a_field_of_its_own_is_refused(tmp_path: Path) -> None:
    text = DESK.replace("country =", "agent =")
    with pytest.raises(InvalidInput, match=r"session\.labels\.agent: use session\.agent"):
        load_mapping(write_text(tmp_path, text))


@pytest.mark.parametrize(
    "path", ["$[?@.role == $.roles[0]]", "$..steps[?@..tool]", "$[?search(@.text, 'ab+c')]"]
)
def test_filters_that_take_time_in_proportion_are_fine(path: str) -> None:
    assert str(mapping.query(path, "here"))


def test_a_document_of_too_many_values_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mapping._DOCUMENT.objects == 1 << 20  # about 250 MB of objects
    monkeypatch.setattr(mapping, "_DOCUMENT", Budget(objects=1000))
    source = tmp_path / "many.json"
    source.write_text("{" + '"k":0,' * 1000 + '"k":0}')
    importer = MappingImporter(load_mapping(write_text(tmp_path, DESK)))
    (problem,) = preview_foreign(source, importer, Reading()).diagnostics
    assert "1,000" in problem.what


def test_a_path_that_passes_through_values_many_times_is_a_problem_of_its_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mapping, "_DOCUMENT", Budget(objects=1000))
    found = mapping.query("$..[*]..[*]", "here")
    tree: list[Any] = [0]
    for _ in range(8):
        tree = [tree, tree]
    with pytest.raises(InvalidInput, match=r"finds more than 1,000 values"):
        mapping.all_found(found, tree)
