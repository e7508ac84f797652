"""The action space of actors on models: texts that are actions, and prose that never is."""

from __future__ import annotations

import json

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON
from duolog.engine.models import ToolCall
from duolog.engine.models.prompting.actions import (
    ActionSpace,
    approve_action,
    finish_action,
    message_action,
    note_action,
    submit_action,
    task_actions,
    wait_action,
)
from duolog.engine.models.rehearsal import encode_verbs
from duolog.engine.session.decisions import Act, Approve, Finish, Note, Say, Submit, Verb, Wait
from duolog.engine.session.environment import ActionSpec
from hypothesis import given
from hypothesis import strategies as st

SEARCH = ActionSpec(
    name="search",
    description="Search a city.",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its name."},
            "mode": {"anyOf": [{"enum": ["car", "taxi"]}, {"type": "null"}]},
        },
        "required": ["city"],
        "additionalProperties": False,
    },
)
SPACE = ActionSpace(
    [
        *task_actions({"search": SEARCH}),
        submit_action({"type": "string"}, "text/markdown"),
        message_action("user (human)"),
        note_action(),
        wait_action(),
        finish_action(),
        approve_action(7),
    ]
)


def call(name: str, arguments: str = "") -> ToolCall:
    return ToolCall(id="c", name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "verb"),
    [
        ("search", {"city": "Rome"}, Act("search", {"city": "Rome"})),
        ("search", {"city": "Rome", "mode": None}, Act("search", {"city": "Rome", "mode": None})),
        ("submit", {"content": "Day 1:\nRome"}, Submit("Day 1:\nRome", "text/markdown")),
        ("message", {"text": "Hi"}, Say("Hi")),
        ("note", {"text": "Rome"}, Note("Rome")),
        ("wait", {}, Wait()),
        ("finish", {}, Finish()),
        ("approve", {"approved": False, "comment": "no"}, Approve(7, False, "no")),
    ],
)
def test_one_action_is_the_same_as_a_call_and_as_text(
    name: str, arguments: dict[str, object], verb: Verb
) -> None:
    text = f"Thought: now.\nAction: {json.dumps({'name': name, 'arguments': arguments})}"
    assert SPACE.read_calls([call(name, json.dumps(arguments))]) == (verb,)
    assert SPACE.read_text(text) == (verb,)


@pytest.mark.parametrize(
    "text",
    [
        'Action: {"name": "wait"}',
        '**Action:** {"name": "wait", "arguments": {}}',
        'Thought: hm\nAction:\n{"name": "wait", "arguments": null}',
        'Action: ```json\n{"name": "wait",\n "arguments": {}}\n```',
        'ACTION: `{"name": "wait"}`',
        'Action: {"name": "wait"}\nObservation: it is done\nAction: {"name": "finish"}',
        'Action: {"name": "wait"}\n\nI leave it to them.',
    ],
)
def test_the_ways_in_which_models_write_an_action(text: str) -> None:
    assert SPACE.read_text(text) == (Wait(),)


def test_texts_may_break_lines_as_models_do() -> None:
    text = 'Action: {"name": "submit", "arguments": {"content": "Day 1:\nRome\tand\nAction: no"}}'
    assert SPACE.read_text(text) == (Submit("Day 1:\nRome\tand\nAction: no", "text/markdown"),)


def test_several_actions_at_once() -> None:
    both = [{"name": "note", "arguments": {"text": "a"}}, {"name": "wait"}]
    assert SPACE.read_text(f"Action: {json.dumps(both)}") == (Note("a"), Wait())
    assert SPACE.read_calls([call("note", '{"text": "a"}'), call("wait")]) == (Note("a"), Wait())


@pytest.mark.parametrize(
    "text",
    [
        "I will not call finish() yet.",
        'I could take the Action: {"name": "finish"} now, but I will not.',
        'Action: finish, or rather not yet: {"name": "finish"}',
        'Action: {"name": "finish"} is what I will do tomorrow.',
        'Action: {"name": "finish"}\nAction: {"name": "wait"}',
        'Action: {"name": "finish"',
        'Action: "finish"',
        "Action: []",
        'Action: {"finish": {}}',
        'Action: {"name": "finish", "why": "done"}',
        'Action: [{"name": "finish"}, {"name": "wait"}]',
        'Action: {"name": "wait", "arguments": []}',
        'Action: {"name": "search", "arguments": {"city": NaN}}',
        "",
    ],
)
def test_what_is_no_single_clear_action_is_none(text: str) -> None:
    with pytest.raises(InvalidInput):
        SPACE.read_text(text)


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("search", "{}", "'city' is a required property"),
        ("search", '{"city": 5}', "city: 5 is not of type 'string'"),
        (
            "search",
            '{"city": "Rome", "mode": "boat"}',
            "mode: 'boat' is not 'car' or 'taxi' or null",
        ),
        ("search", '{"city": "Rome", "day": 1}', "'day' was unexpected"),
        ("search", '["Rome"]', "must be an object"),
        ("search", "{city: Rome}", "are not JSON"),
        ("search", f'{{"city": "Rome", "mode": {2**70}}}', "mode: 1180591620717411303424 is not"),
        ("message", '{"text": ""}', "text: '' should be non-empty"),
        ("seach", "{}", "unknown action 'seach'; choose from search, submit"),
        ("wait", '{"seconds": 5}', "'seconds' was unexpected"),
    ],
)
def test_a_wrong_call_says_how_to_put_it_right(name: str, arguments: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        SPACE.read_calls([call(name, arguments)])


def test_one_wrong_call_spoils_the_others() -> None:
    with pytest.raises(InvalidInput, match="'city' is a required property"):
        SPACE.read_calls([call("note", '{"text": "a"}'), call("search", "{}")])


def test_no_call_is_no_action() -> None:
    with pytest.raises(InvalidInput, match="no action was called"):
        SPACE.read_calls([])


def test_nothing_follows_waiting_or_finishing() -> None:
    with pytest.raises(InvalidInput, match="'finish' comes last"):
        SPACE.read_calls([call("finish"), call("note", '{"text": "a"}')])


def test_what_a_log_cannot_hold_is_spelled_out_or_refused() -> None:
    [verb] = SPACE.read_calls([call("note", '{"text": "half \\ud83d"}')])
    assert verb == Note("half \\ud83d")
    space = ActionSpace(task_actions({"put": ActionSpec(name="put", description="")}))
    with pytest.raises(InvalidInput, match="too large"):
        space.read_calls([call("put", f'{{"number": {2**70}}}')])


def test_a_task_cannot_take_the_names_of_what_everybody_may_do() -> None:
    with pytest.raises(InvalidInput, match="two actions named 'wait'"):
        ActionSpace(
            [wait_action(), *task_actions({"wait": ActionSpec(name="wait", description="")})]
        )


def test_an_unknown_argument_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match="choose from city, mode"):
        SPACE.read_calls([call("search", '{"city": "Rome", "day": 1}')])


def test_an_action_with_an_invalid_schema_is_refused_before_a_model_is_asked() -> None:
    parameters: dict[str, JSON] = {
        "type": "object",
        "properties": {"city": {"$ref": "cities.json"}},
    }
    broken = ActionSpec(name="look", description="", parameters=parameters)
    with pytest.raises(InvalidInput, match="parameters of action 'look': not a valid JSON Schema"):
        ActionSpace(task_actions({"look": broken}))


def test_an_output_may_be_described_by_a_schema_with_definitions() -> None:
    day: dict[str, JSON] = {"type": "object", "properties": {"city": {"type": "string"}}}
    schema: dict[str, JSON] = {
        "type": "array",
        "items": {"$ref": "#/$defs/day"},
        "$defs": {"day": day},
    }
    space = ActionSpace([submit_action(schema, "application/json")])
    [verb] = space.read_calls([call("submit", '{"content": [{"city": "Rome"}]}')])
    assert verb == Submit([{"city": "Rome"}], "application/json")
    with pytest.raises(InvalidInput, match=r"content\[0\].city: 5 is not of type 'string'"):
        space.read_calls([call("submit", '{"content": [{"city": 5}]}')])
    assert "content (a list, each entry an object)" in space.description


@pytest.mark.parametrize("arguments", [f'{{"city": {"1" * 5000}}}', '{"city": ' + "[" * 100_000])
def test_arguments_that_python_cannot_decode_are_refused(arguments: str) -> None:
    with pytest.raises(InvalidInput, match="not JSON"):
        SPACE.read_calls([call("search", arguments)])
    with pytest.raises(InvalidInput, match="not JSON"):
        SPACE.read_text(f'Action: {{"name": "search", "arguments": {arguments}}}')


def test_tools_and_words_describe_the_same_actions() -> None:
    assert [tool.name for tool in SPACE.tools] == [
        "search",
        "submit",
        "message",
        "note",
        "wait",
        "finish",
        "approve",
    ]
    assert SPACE.tools[0].parameters == SEARCH.parameters
    assert "- search: Search a city." in SPACE.description
    assert "    city (text): Its name." in SPACE.description
    assert "    mode ('car' or 'taxi' or null, may be left out)" in SPACE.description
    assert "- wait: Do nothing until" in SPACE.description


words = st.text(max_size=60)


@given(words, words)
def test_prose_that_mentions_actions_never_acts(before: str, after: str) -> None:
    """Whatever surrounds it: only a line that begins with Action: followed by JSON acts."""
    prose = f"{before} finish() Action {after} wait".replace("{", "(").replace("[", "(")
    with pytest.raises(InvalidInput):
        SPACE.read_text(prose)


verbs = st.one_of(
    st.builds(Say, st.text(min_size=1, max_size=80)),
    st.builds(Note, st.text(min_size=1, max_size=80)),
    st.builds(lambda text: Submit(text, "text/markdown"), st.text(max_size=200)),
    st.builds(lambda text: Act("search", {"city": text}), st.text(max_size=30)),
)


@given(st.lists(verbs, min_size=1, max_size=3), st.booleans())
def test_what_is_put_as_a_model_would_put_it_is_read_again(
    decided: list[Verb], as_text: bool
) -> None:
    reply = encode_verbs(decided, as_text=as_text)
    read = SPACE.read_text(reply.text) if as_text else SPACE.read_calls(reply.tool_calls)
    assert read == tuple(decided)
