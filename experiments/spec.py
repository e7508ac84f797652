"""The specification of an experiment: agents, users, instances, models and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar, final

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import JSON
from ..engine.loading import load
from ..engine.redacting import DEFAULT, said_of
from ..engine.settings import mismatch, read_settings
from ..engine.text import suggestion
from ..users.personas import plays

if TYPE_CHECKING:
    from ..engine.models.gateway import Models, Outage, Terms
    from ..engine.models.prompting.conversation import ModelUse
    from ..engine.models.protocol import ModelClient
    from ..engine.models.traffic.budget import Spending
    from ..engine.task import Cell, Setting, Task
    from .parts import OwnParts

__all__ = (
    "ALL",
    "OFF",
    "RULES",
    "BudgetTable",
    "Experiment",
    "LimitTable",
    "ModelTable",
    "describes_experiments",
    "is_alone",
    "is_of_task",
    "key_of",
    "read_experiments",
    "read_table",
)


def is_of_task(agent: str, task: Task) -> bool:
    """Whether the task has an agent of this kind; a variant is named as ``KIND:SETTING``."""
    return agent.partition(":")[0] in task.agents


def is_alone(agent: str, task: Task) -> bool:
    """Whether it works without a human, as far as the task says."""
    return is_of_task(agent, task) and task.automated(agent)


OFF: Final = "off"
"""Stands for no end to users' patience."""

RULES = "rules"
"""Stands for no model: the task's own rules decide."""

ALL = "*"
"""The table in a file that applies to every model without a separate table."""

_SESSIONS = 30
_MOST = 1_000_000  # sessions in one run
_DIGITS = 18  # of a number in a range of instances
_AT_ONCE = 64
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_RATES = ("concurrency", "requests_per_minute", "tokens_per_minute")
_USES = ("temperature", "max_tokens", "context", "text_actions", "tries", "options")
_ABOVE = ("max_tokens", "context", "tries", "timeout", "attempts", *_RATES)
_PRICES = ("input_cost_per_token", "output_cost_per_token")


class LimitTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """When a session ends; see ``Limits``."""

    rounds: int = 30
    actions: int = 200
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


class BudgetTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Limits on the usage of the whole experiment; see ``Budget``."""

    tokens: int | None = None
    cost: float | None = None


class ModelTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How one model is called and reached, and its prices; see ``ModelUse``, ``Rates`` and ``Terms``.

    The prices are US dollars per token, for models whose price LiteLLM does not know.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    context: int | None = None
    text_actions: bool | None = None
    tries: int | None = None
    options: Mapping[str, JSON] | None = None
    api_base: str | None = None
    stream: bool | None = None
    timeout: float | None = None
    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    attempts: int | None = None
    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None


@final
class Experiment(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """An experiment: agents, users, instances, models and limits.

    Attributes:
        task: name of the task; a file may list several, each of which is an experiment.
        dataset: file or directory with data of the task's own kind.
        agents: kinds of agents, or ``file.py:Name``; None for those that the task has by default.
        users: kinds of users, likewise; behind a persona's name its numbers, see ``find_persona``.
        agent_timeout: seconds that an external agent has for a turn; None for the default.
        agent_env: environment variables that the program of an external agent gets too.
        redact: the secrets that are not recorded: ``default``, ``off``, or a file of patterns.
        models: behind the agents; `RULES` for the task's own rules.
        user_model: behind the simulated users; None for rules.
        judge_model: behind the judges; None for none.
        sessions: instances per cell, from the first on.
        instances: which instances instead, e.g. ``0-9`` or ``17``.
        seed: decides the world and all randomness; of several, each poses its own problems.
        repeats: how often each problem is played, with other draws each time.
        concurrency: how many sessions run at the same time.
        log: path or URL of the log.
        stop_at: unproductive rounds, as the judge rates them, after which sessions are stopped;
            None for never.
        patience: unproductive rounds, as users rate them, after which they give up; ``off`` for
            never.
        api_base: base URL of your model server, if you run one.
        cache: directory of the response cache; None for none.
        limits: the limits of a session.
        budget: the budget of all sessions together.
        model: tables of single models, by name; `ALL` for all others.
    """

    task: str
    dataset: str | None = None
    agents: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None
    agent_timeout: float | None = None
    agent_env: tuple[str, ...] = ()
    redact: str = DEFAULT
    models: tuple[str, ...] = (RULES,)
    user_model: str | None = None
    judge_model: str | None = None
    sessions: int | None = None
    instances: tuple[str, ...] | None = None
    seed: int | tuple[int, ...] = 0
    repeats: int = 1
    concurrency: int = 32
    log: str = "duolog.db"
    stop_at: int | None = None
    patience: int | Literal["off"] = OFF
    api_base: str | None = None
    cache: str | None = None
    limits: LimitTable = LimitTable()
    budget: BudgetTable = BudgetTable()
    model: Mapping[str, ModelTable] = {}

    @property
    def named_models(self) -> tuple[str, ...]:
        """All models that are asked, each once."""
        named = [*self.models, self.user_model or RULES, self.judge_model or RULES]
        return tuple(dict.fromkeys(name for name in named if name != RULES))

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds, each once."""
        return (self.seed,) if isinstance(self.seed, int) else tuple(dict.fromkeys(self.seed))

    @property
    def _patience(self) -> int | None:
        return None if self.patience == OFF else self.patience

    def with_options(
        self,
        *,
        text_actions: Sequence[str] | None = None,
        limits: Mapping[str, float | None],
        budget: Mapping[str, float | None],
        **options: object,
    ) -> Experiment:
        """A copy with the given options changed; None leaves an option as it is.

        Args:
            text_actions: models that write their actions as text.
            limits: by name.
            budget: by name.
            options: other fields.

        Raises:
            InvalidInput: an option that no experiment has, or a value of another kind.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if given.get("instances") is not None:
            given.setdefault("sessions", None)
        elif given.get("sessions") is not None:
            given.setdefault("instances", None)
        tables = dict(self.model)
        for model in text_actions or ():
            own = tables.get(model, ModelTable())
            tables[model] = msgspec.structs.replace(own, text_actions=True)
        changed = {
            **msgspec.to_builtins(self),
            **given,
            "limits": {**msgspec.to_builtins(self.limits), **_said(limits)},
            "budget": {**msgspec.to_builtins(self.budget), **_said(budget)},
            "model": msgspec.to_builtins(tables),
        }
        try:
            return msgspec.convert(changed, Experiment)
        except msgspec.ValidationError as error:
            raise InvalidInput(mismatch(error)) from None

    def check(self, task: Task, parts: OwnParts | None = None) -> None:
        """Checks names against the task, and the ranges of numbers.

        Args:
            task: the task.
            parts: agents and users that are not the task's; None for none.

        Raises:
            InvalidInput: the first mistake that was found.
        """
        for kind, named, known, own in (
            ("agents", self.agents, task.agents, parts.own_agents if parts else ()),
            ("users", self.users, task.users, parts.users if parts else ()),
        ):
            if named is not None:
                set_up = [n for n in named if kind == "users" and plays(n, known)]
                _check_known(kind, named, [*known, *own, *set_up])
        if not self.models or not all(self.models):
            raise InvalidInput(f"models is empty: name at least one, or {RULES!r} for none")
        if not self.seeds:
            raise InvalidInput("seed is empty: give at least one")
        if self.sessions is not None and self.instances is not None:
            raise InvalidInput("sessions and instances both say which instances: give one of them")
        for name, value in (
            ("sessions", self.sessions),
            ("agent_timeout", self.agent_timeout),
            ("concurrency", self.concurrency),
            ("repeats", self.repeats),
            ("stop_at", self.stop_at),
            ("patience", self._patience),
            *((f"limits.{n}", getattr(self.limits, n)) for n in self.limits.__struct_fields__),
        ):
            _check_above(name, value)
        for name in self.budget.__struct_fields__:
            _check_least(f"budget.{name}", getattr(self.budget, name))
        for name, table in self.model.items():
            if name != ALL and name not in self.named_models:
                raise InvalidInput(f"there is a table for model {name!r}, which no actor uses")
            _check_table(key_of("model", name), table)

    def cells(self, task: Task) -> Iterator[Cell]:
        """All cells, instance by instance, so that a partial run has a part of every kind; repeats last.

        An agent that works without a human has one cell for each model, whatever the users. An
        agent or user that the task does not know came out of a file, and is on no model.

        Raises:
            InvalidInput: there are too many, or the task has fewer instances.
        """
        self._check_number(task)
        return self._cells(task, {seed: self._instances(task, seed) for seed in self.seeds})

    def sample(self, task: Task) -> Iterator[Cell]:
        """Cells of every kind of player with every instance that is named, and both ends of ranges:
        if these can be set up, so can all.
        """
        if self.instances is None:
            return self._cells(task, {seed: task.instances(1, seed) for seed in self.seeds}, 1)
        names = [name for part in self.instances for name in dict.fromkeys(_ends(part))]
        return self._cells(task, {seed: list(dict.fromkeys(names)) for seed in self.seeds}, 1)

    def _cells(
        self, task: Task, instances: Mapping[int, Sequence[str]], repeats: int | None = None
    ) -> Iterator[Cell]:
        from ..engine.task import NOBODY, Cell

        for repeat in range(1, (repeats or self.repeats) + 1):
            for seed, names in instances.items():
                for instance in names:
                    for agent in self.agents or ():
                        for model in self.models if is_of_task(agent, task) else (RULES,):
                            for user in [NOBODY] if is_alone(agent, task) else self.users or ():
                                yield Cell(
                                    agent=agent,
                                    user=user,
                                    instance=instance,
                                    seed=seed,
                                    model=_on(model),
                                    user_model=_on(self.user_model)
                                    if plays(user, task.users)
                                    else None,
                                    judge_model=_on(self.judge_model),
                                    repeat=repeat,
                                )

    def setting(self, models: Models | None = None) -> Setting:
        """What all cells share.

        Args:
            models: access to their models; None without models.
        """
        from ..engine.session.limits import Limits
        from ..engine.task import Setting
        from ..scoring.stopping import ToleranceStop

        stop_at = self.stop_at
        rules: dict[str, JSON] = {
            "stop_at": stop_at,
            "patience": self._patience,
            "redact": said_of(self.redact),
        }
        return Setting(
            limits=Limits(patience=self._patience, **msgspec.structs.asdict(self.limits)),
            stop=None if stop_at is None else lambda session: ToleranceStop(session, stop_at),
            config={name: after for name, after in rules.items() if after is not None},
            models=models,
            uses={name: self._use(name) for name in self.named_models},
        )

    def reach(self, spent: Spending | None, on_outage: Outage | None = None) -> Models | None:
        """Access to the models; None if the experiment names none.

        Args:
            spent: what earlier runs used of the budget; None for nothing.
            on_outage: decides whether calls that failed for good are made again; see ``Models``.

        Raises:
            MissingExtra: models are named, and LiteLLM is not installed.
            InvalidInput: the table of a model is not valid, or the cache is a file.
        """
        if not self.named_models:
            return None
        if self.cache is not None and Path(self.cache).is_file():
            raise InvalidInput(f"{self.cache} is a file; name a directory for the response cache")
        from ..engine.models.clients import ClientPerModel
        from ..engine.models.gateway import Models
        from ..engine.models.traffic.budget import Budget
        from ..engine.models.traffic.cache import ResponseCache

        clients = {name: self._client(name) for name in self.named_models}
        return Models(
            ClientPerModel(clients, clients[self.named_models[0]]),
            terms_of={name: self._terms(name) for name in self.named_models},
            budget=Budget(tokens=self.budget.tokens, cost=self.budget.cost, spent=spent),
            cache=None if self.cache is None else ResponseCache(Path(self.cache)),
            on_outage=on_outage,
        )

    def price(self, model: str) -> tuple[float | None, float | None]:
        """US dollars per prompt token and per completion token; None if the tables do not say."""
        table = self._table(model)
        return table.input_cost_per_token, table.output_cost_per_token

    def _table(self, model: str) -> ModelTable:
        """The table of a model, completed from the table for all models."""
        common, own = self.model.get(ALL, ModelTable()), self.model.get(model, ModelTable())
        given = {k: v for k, v in msgspec.structs.asdict(own).items() if v is not None}
        return msgspec.structs.replace(common, **given)

    def _use(self, model: str) -> ModelUse:
        from ..engine.models.prompting.conversation import ModelUse

        return msgspec.convert({"model": model, **_given(self._table(model), _USES)}, ModelUse)

    def _terms(self, model: str) -> Terms:
        from ..engine.models.gateway import Terms

        table = self._table(model)
        settings = {
            "rates": {"concurrency": _AT_ONCE, **_given(table, _RATES)},
            "retry": _given(table, ("attempts",)),
            **_given(table, ("timeout",)),
        }
        return msgspec.convert(settings, Terms)

    def _client(self, model: str) -> ModelClient:
        from ..engine.models.litellm.client import LiteLLMModel

        table = self._table(model)
        return LiteLLMModel(
            api_base=table.api_base or self.api_base,
            stream=bool(table.stream),
            options=_given(table, _PRICES),
        )

    def _check_number(self, task: Task) -> None:
        """Counts the cells without making them.

        Raises:
            InvalidInput: there are more than one run can take.
        """
        count = _SESSIONS if self.sessions is None else self.sessions
        if self.instances is not None:
            ends = [_ends(part) for part in self.instances]
            count = sum(int(b) - int(a) + 1 if a != b else 1 for a, b in ends)
        agents, users = self.agents or (), self.users or ()
        players = sum(1 if is_alone(agent, task) else len(users) for agent in agents)
        total = count * len(self.models) * players * len(self.seeds) * self.repeats
        if total > _MOST:
            raise InvalidInput(
                f"these are {total:,} sessions, and one run takes {_MOST:,}: give fewer sessions, or "
                "part of the instances at a time"
            )

    def _instances(self, task: Task, seed: int) -> list[str]:
        """The instances to run under a seed: the first ones, or those that are named."""
        if self.instances is None:
            try:
                found = task.instances(self.sessions or _SESSIONS, seed)
            except InvalidInput as error:
                if self.sessions is not None or error.__cause__ is not None:
                    raise
                raise InvalidInput(f"{error}: say how many with --sessions") from None
            if self.sessions is not None and len(found) < self.sessions:
                raise InvalidInput(
                    f"task {task.name!r} has {len(found)} instances, not {self.sessions}"
                )
            return found
        names: list[str] = []
        for first, last in map(_ends, self.instances):
            same = first == last
            names += [first] if same else map(str, range(int(first), int(last) + 1))
        return list(dict.fromkeys(names))


def _check_known(kind: str, named: Sequence[str], known: Sequence[str]) -> None:
    """Checks that names are known.

    Raises:
        InvalidInput: one is not, or there is none.
    """
    if not named:
        raise InvalidInput(f"{kind} is empty: name at least one")
    for name in named:
        if name not in known:
            raise InvalidInput(
                f"unknown {kind.removesuffix('s')} {name!r}{suggestion(name, known)}"
            )


def _ends(part: str) -> tuple[str, str]:
    """The first and the last instance of a range such as 0-9; a name alone is both.

    Raises:
        InvalidInput: it is not a range.
    """
    first, dash, last = part.partition("-")
    if not dash:
        return part, part
    short = len(first) <= _DIGITS and len(last) <= _DIGITS
    if short and first.isdecimal() and last.isdecimal() and int(first) <= int(last):
        return str(int(first)), str(int(last))
    raise InvalidInput(f"{part[:100]!r} in instances is not a range such as 0-9")


def key_of(*names: str) -> str:
    """A key as TOML writes it, e.g. ``model."gpt-4.1".tries``."""
    return ".".join(name if _BARE.match(name) else f'"{name}"' for name in names)


def _check_above(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < float("inf"):  # no event holds an infinity
        raise InvalidInput(f"{name} must be more than 0, got {value:g}")


def _check_least(name: str, value: float | None) -> None:
    if value is not None and not value >= 0:
        raise InvalidInput(f"{name} must be at least 0, got {value}")


def _check_table(where: str, table: ModelTable) -> None:
    """Checks the ranges of numbers, and refuses options that Duolog sets itself."""
    from ..engine.models.litellm.client import check_options

    for name in _ABOVE:
        _check_above(f"{where}.{name}", getattr(table, name))
    for name in ("temperature", *_PRICES):
        _check_least(f"{where}.{name}", getattr(table, name))
    try:
        check_options(table.options or {})
    except InvalidInput as error:
        raise InvalidInput(f"{where}.options: {error}") from None


def _on(model: str | None) -> str | None:
    return None if model == RULES else model


def _said(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _given(table: ModelTable, names: tuple[str, ...]) -> dict[str, JSON]:
    """The values of these fields that a table sets."""
    return {name: value for name in names if (value := getattr(table, name)) is not None}


T = TypeVar("T", bound=msgspec.Struct)

_MODELS = "model"
_LONGEST = 60


_NAMED: Final = "experiment"
"""The name in a Python file."""


def describes_experiments(name: str) -> bool:
    """Whether a task is named by a file of experiments: in TOML, or in Python without ``:NAME``."""
    return name.endswith((".toml", ".py"))


def read_experiments(path: str) -> tuple[Experiment, ...]:
    """The experiments in a file: one for each of its tasks.

    A file in Python assigns an ``Experiment``, or several in a list, to ``experiment``.

    Raises:
        InvalidInput: there is no such file, it is neither TOML nor Python, or it has an unknown key
            or a value of the wrong type. An error of the file's own says in which line it was raised.
    """
    return _from_python(path) if path.endswith(".py") else _from_toml(path)


def _from_python(path: str) -> tuple[Experiment, ...]:
    namespace = load(f"{path}:__dict__").value
    given = namespace.get(_NAMED) if isinstance(namespace, Mapping) else None
    if given is None:
        raise InvalidInput(
            f"{path} does not assign an Experiment to the name {_NAMED!r}; a task in the file is named "
            f"{path}:NAME"
        )
    ones = list(given) if isinstance(given, list | tuple) else [given]
    for one in ones:
        if not isinstance(one, Experiment):
            raise InvalidInput(
                f"{path}: {_NAMED} is of type {type(one).__name__}: an Experiment is expected, or a "
                "list of them"
            )
    if not ones:
        raise InvalidInput(f"{path}: {_NAMED} is an empty list")
    try:
        found = [
            read_table((), msgspec.to_builtins(one, enc_hook=repr), Experiment) for one in ones
        ]
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    logs = dict.fromkeys(one.log for one in found)
    if len(logs) > 1:
        raise InvalidInput(
            f"{path}: the experiments write to several logs ({', '.join(logs)}): name one log in all "
            "of them, or make a file for each"
        )
    if len({one.task for one in found}) < len(found):
        raise InvalidInput(f"{path}: two experiments are of one task: make a file for each")
    return tuple(found)


def _from_toml(path: str) -> tuple[Experiment, ...]:
    content = read_settings(path)
    try:
        tasks = content.get("task")
        if not isinstance(tasks, list):
            return (read_table((), content, Experiment),)
        if not tasks:
            raise InvalidInput("task is empty: name at least one")
        return tuple(
            [
                read_table((), content | {"task": one}, Experiment)
                for one in dict.fromkeys(map(_name, tasks))
            ]
        )
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _name(task: object) -> str:
    if not isinstance(task, str):
        raise InvalidInput(f"task = [{_shown(task)}]: expected a string in it")
    return task


def read_table(at: tuple[str, ...], given: object, kind: type[T]) -> T:
    """A table of a file, or the whole file.

    Args:
        at: the keys that lead to it.
        given: what is there.
        kind: what is read from it.

    Raises:
        InvalidInput: an unknown or missing key, or a value of the wrong type.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{key_of(*at)} = {_shown(given)}: this is a table")
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, object] = {}
    for name, value in given.items():
        if name not in fields:
            raise InvalidInput(f"{key_of(*at, name)}: {_unknown(name, list(fields))}")
        values[name] = _value((*at, name), value, fields[name].type)
    missing = [name for name, field in fields.items() if field.required and name not in values]
    if missing:
        raise InvalidInput(f"{key_of(*at, missing[0])} is missing")
    return kind(**values)


def _value(at: tuple[str, ...], value: object, kind: object) -> object:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return read_table(at, value, kind)
    if at == (_MODELS,) and isinstance(value, Mapping):
        return {name: read_table((*at, name), table, ModelTable) for name, table in value.items()}
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        inside = " in it" if "$[" in str(error) else ""
        why = mismatch(error, within=False)
        raise InvalidInput(f"{key_of(*at)} = {_shown(value)}: {why}{inside}") from None


def _unknown(name: str, known: list[str]) -> str:
    """Why a key is refused. Its value is not shown: it may be a secret that does not belong there."""
    if name == "api_key":
        return "keys are read from the environment only"
    close = get_close_matches(name, known, n=1)
    return f"unknown key; {'did you mean' if close else 'choose from'} " + (
        f"{close[0]}?" if close else ", ".join(known)
    )


def _shown(value: object) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
