"""The plan of a study, as its TOML file has it: conditions, assignment, texts and questionnaires."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar, cast, final
from urllib.parse import urlsplit

import msgspec

from ...engine.errors import InvalidInput
from ...engine.settings import read_settings
from ...engine.text import suggestion
from ..parts import default_agents, named_task
from ..spec import is_of_task, read_table
from .instruments import KINDS, Item, items_of

__all__ = (
    "Condition",
    "Questionnaire",
    "Recruitment",
    "Study",
    "When",
    "check_name",
    "read_study",
    "resolved",
)

T = TypeVar("T", bound=msgspec.Struct)

When: TypeAlias = Literal["before", "condition", "end"]
"""When a questionnaire is asked: before the first condition, after each condition, or at the end."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}\Z")
_MOST: Final = 12  # conditions of a study
_LISTED: Final = 1000  # instances that a name is looked up in
_TABLES: Final = ("condition", "questionnaire", "item")


@final
class Recruitment(msgspec.Struct, frozen=True, kw_only=True):
    """Where participants come from.

    Attributes:
        participant: the parameter of the address that names a participant; empty if the server gives each
            visitor a code.
        parameters: the parameters that are kept, in a file apart from the data.
    """

    participant: str = ""
    parameters: tuple[str, ...] = ()


@final
class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition: a task, and the agent in it.

    Attributes:
        name: the name of the condition; participants never see it.
        task: name of a task, or ``FILE.py:NAME``.
        agent: kind of agent, or ``FILE.py:NAME``; empty for the task's first one that works with people.
        model: behind the agent; empty for rules.
        instances: instances to draw from; empty for the task's first ones.
        minutes: after which the session ends; 0 for no limit. Absences count.
        instructions: shown before this condition.
    """

    name: str
    task: str
    agent: str = ""
    model: str = ""
    instances: tuple[str, ...] = ()
    minutes: float = 0.0
    instructions: str = ""


@final
class Questionnaire(msgspec.Struct, frozen=True, kw_only=True):
    """A questionnaire.

    Attributes:
        name: as the export has it.
        kind: ``nasa-tlx``, ``satisfaction`` (ASQ), or ``items`` for your own items only.
        when: ``before``, after each ``condition``, or at the ``end``.
        title: its heading.
        text: shown above its items.
        weights: of NASA-TLX: ask the 15 pairs.
        item: your own items.
    """

    name: str
    kind: str = "items"
    when: When = "condition"
    title: str = ""
    text: str = ""
    weights: bool = False
    item: tuple[Item, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        """All of its items."""
        return items_of(self.kind, self.item, weights=self.weights)


@final
class Study(msgspec.Struct, frozen=True, kw_only=True):
    """A study.

    Attributes:
        name: the name of the study, in its events.
        title: shown to participants.
        consent: what a person agrees to, in Markdown.
        instructions: shown before the first condition, in Markdown.
        thanks: shown at the end.
        completion: address that finishes a participation where people were recruited; empty for none.
        design: ``within``: each participant meets all conditions; ``between``: one of them.
        assignment: ``counterbalanced``: orders of a Latin square, or conditions, in turn; ``random``: drawn
            among those used least so far.
        seed: the seed of the draws, and of the worlds.
        participants: how many may take part; 0 for any number.
        show_result: show participants the utility that was reached.
        recruitment: where they come from.
        condition: the conditions.
        questionnaire: the questionnaires, in order.
    """

    name: str
    consent: str
    title: str = "A study"
    instructions: str = ""
    thanks: str = "Thank you for taking part."
    completion: str = ""
    design: Literal["within", "between"] = "within"
    assignment: Literal["counterbalanced", "random"] = "counterbalanced"
    seed: int = 0
    participants: int = 0
    show_result: bool = False
    recruitment: Recruitment = Recruitment()
    condition: tuple[Condition, ...] = ()
    questionnaire: tuple[Questionnaire, ...] = ()

    def conditions(self) -> Mapping[str, Condition]:
        """The conditions, by name."""
        return {one.name: one for one in self.condition}

    def asked(self, when: When) -> tuple[Questionnaire, ...]:
        """The questionnaires of a time."""
        return tuple(one for one in self.questionnaire if one.when == when)


def read_study(path: Path) -> Study:
    """The plan in a file.

    Raises:
        InvalidInput: there is no such file, it is not TOML, or a key or value is wrong; the message names the
            key, the value and the choices.
    """
    content = read_settings(path)
    try:
        study = _study(content)
        _check(study)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    return study


def _study(content: Mapping[str, object]) -> Study:
    rest = {key: value for key, value in content.items() if key not in _TABLES[:2]}
    if "item" in rest:
        raise InvalidInput("item belongs to a questionnaire: write [[questionnaire.item]]")
    questionnaires = []
    for at, table in _tables("questionnaire", content.get("questionnaire")):
        items = _tables(f"{at}.item", table.get("item"))
        own = tuple(_read(key, one, Item) for key, one in items)
        bare = {key: value for key, value in table.items() if key != "item"}
        questionnaires.append(msgspec.structs.replace(_read(at, bare, Questionnaire), item=own))
    conditions = [
        _read(at, table, Condition) for at, table in _tables("condition", content.get("condition"))
    ]
    study = _read("", rest, Study)
    return msgspec.structs.replace(
        study, condition=tuple(conditions), questionnaire=tuple(questionnaires)
    )


def _read(at: str, table: Mapping[str, object], kind: type[T]) -> T:
    try:
        return read_table((), table, kind)
    except InvalidInput as error:
        raise InvalidInput(f"{at}.{error}" if at else str(error)) from None


def _tables(at: str, given: object) -> list[tuple[str, Mapping[str, object]]]:
    """The tables of a list, each with its key."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise InvalidInput(f"{at} is a list of tables: write [[{at.partition('[')[0]}]]")
    tables = cast("list[dict[str, object]]", given)
    return [(f"{at}[{number}]", table) for number, table in enumerate(tables, start=1)]


def check_name(name: str) -> None:
    """Raises InvalidInput if a study cannot have this name."""
    if not _NAME.match(name):
        raise InvalidInput(f"name = {name!r}: use 1 to 40 lower-case letters, digits and hyphens")


def _check(study: Study) -> None:
    """Raises InvalidInput for what no study can have."""
    check_name(study.name)
    if not study.consent.strip():
        raise InvalidInput("consent is empty: write what participants agree to")
    if not 1 <= len(study.condition) <= _MOST:
        raise InvalidInput(
            f"{len(study.condition)} conditions: give 1 to {_MOST}, as [[condition]]"
        )
    if study.participants < 0:
        raise InvalidInput(f"participants = {study.participants}: give 0 (any number) or more")
    if study.completion and urlsplit(study.completion).scheme not in ("http", "https"):
        raise InvalidInput(f"completion = {study.completion!r}: give an address with https://")
    _check_names("condition", [one.name for one in study.condition])
    _check_names("questionnaire", [one.name for one in study.questionnaire])
    for number, condition in enumerate(study.condition, start=1):
        if not 0 <= condition.minutes < float("inf"):
            raise InvalidInput(
                f"condition[{number}].minutes = {condition.minutes:g}: give 0 (no limit) or more"
            )
    for number, asked in enumerate(study.questionnaire, start=1):
        _check_questionnaire(f"questionnaire[{number}]", asked)
    _check_recruitment(study.recruitment)


def _check_questionnaire(at: str, one: Questionnaire) -> None:
    if one.kind not in KINDS:
        raise InvalidInput(f"{at}.kind = {one.kind!r}{suggestion(one.kind, KINDS)}")
    if one.weights and one.kind != "nasa-tlx":
        raise InvalidInput(f'{at}.weights belongs to kind = "nasa-tlx", not {one.kind!r}')
    if not one.items:
        raise InvalidInput(f"{at}.item is missing: add [[questionnaire.item]]")
    _check_names(f"{at}.item", [item.name for item in one.items])
    for place, item in enumerate(one.item, start=1):
        item.check(f"{at}.item[{place}]")


def _check_names(at: str, names: Sequence[str]) -> None:
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise InvalidInput(f"{at}[{number}].name is empty")
        if name in names[: number - 1]:
            raise InvalidInput(f"{at}[{number}].name = {name!r}: two of them have this name")


def _check_recruitment(recruitment: Recruitment) -> None:
    parameters = recruitment.parameters
    for name in parameters:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,39}", name):
            raise InvalidInput(f"recruitment.parameters holds {name!r}: use letters, digits and _")
        if name in ("p", "leave"):
            raise InvalidInput(
                f"recruitment.parameters holds {name!r}, which addresses use already"
            )
    if recruitment.participant and recruitment.participant not in parameters:
        hint = suggestion(recruitment.participant, parameters) if parameters else ""
        raise InvalidInput(
            f"recruitment.participant = {recruitment.participant!r} is not in "
            f"recruitment.parameters{hint}"
        )
    if parameters and not recruitment.participant:
        raise InvalidInput(
            f"recruitment.participant is missing: which of {', '.join(parameters)} names a "
            f"participant?"
        )


def resolved(study: Study) -> Study:
    """The study with the agent and the instances of each condition filled in; loads its tasks.

    Raises:
        InvalidInput: a task, agent or instance that does not exist.
    """
    conditions = []
    for number, one in enumerate(study.condition, start=1):
        at = f"condition[{number}]"
        try:
            task = named_task(one.task, None).task
        except InvalidInput as error:
            raise InvalidInput(f"{at}.task = {one.task!r}: {error}") from None
        usual = [kind for kind in default_agents(task) if not task.automated(kind)]
        kinds = [kind for kind in task.agents if not task.automated(kind) and kind != "human-alone"]
        agent = one.agent or next(iter([*usual, *kinds]), "")
        own = ":" in agent and not is_of_task(agent, task)
        if not own and agent.partition(":")[0] not in kinds:
            raise InvalidInput(
                f"{at}.agent = {agent!r}: not an agent of task {one.task!r} that works with "
                f"people{suggestion(agent, kinds)}"
            )
        instances = one.instances or tuple(task.instances(len(study.condition), study.seed))
        if one.instances:
            known = set(task.instances(_LISTED, study.seed))
            more = len(known) >= _LISTED  # a generated world has any number of them
            for name in instances:
                if name not in known and not (more and name.isdigit()):
                    raise InvalidInput(
                        f"{at}.instances holds {name!r}: not an instance of task {one.task!r}"
                        f"{suggestion(name, known)}"
                    )
        conditions.append(msgspec.structs.replace(one, agent=agent, instances=instances))
    return msgspec.structs.replace(study, condition=tuple(conditions))
