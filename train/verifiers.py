"""verifiers: a taskset, an environment and a harness, in which the simulated user is an untrained agent.

``verifiers`` finds what it runs by the name of a top-level module, so export these three from a module of that kind::

    # duolog_users.py
    from duolog.train.verifiers import DuologEnv, DuologHarness, DuologTaskset

    __all__ = ["DuologEnv", "DuologHarness", "DuologTaskset"]

Then ``vf-eval duolog-users --env.taskset.name-of-task travel`` plays it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from itertools import count
from typing import Any, final

import anyio
import httpx
import msgspec
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.clients import EvalClientConfig, ModelContext
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.runtimes import ProgramResult, SubprocessConfig

from ..engine.errors import InvalidInput
from ..engine.log.open import open_log
from ..engine.task import find_task
from ..engine.text import suggestion
from ..interop.http.limits import HttpLimits
from ..interop.http.server import HttpServer
from .chat import carry_out
from .episode import Episode, EpisodeSetting
from .hosted import UserEndpoint, UserName, user_app
from .rewards import Reward, RewardTerms

__all__ = ("DuologEnv", "DuologHarness", "DuologTaskset")

_GREETING = "Hello! How can I help you?"
_SILENCE = "(says nothing)"
_TALKING = "message"  # the agent's replies are its messages
_INFO = "duolog"
_LIMITS = HttpLimits(connections=4096, per_client=4096)


class UserData(vf.TaskData):  # type: ignore[misc]
    """A row: which user of which task."""

    task: str
    persona: str
    problem: str
    seed: int


class UserTask(vf.Task[UserData]):  # type: ignore[misc]
    """A row and its rewards, which are those that Duolog's log has."""

    @vf.reward  # type: ignore[untyped-decorator]
    async def collaboration(self, trace: vf.Trace) -> Mapping[str, float]:
        """The parts of the reward."""
        parts: Mapping[str, float] = trace.info[_INFO]["parts"]
        return parts


class DuologTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which rows there are.

    Attributes:
        name_of_task: the task, as ``duolog run`` takes it.
        problems: how many of its problems.
        personas: the personas of the simulated users; each problem has the next one.
        seed: the seed of the worlds, and of all randomness.
    """

    name_of_task: str = "travel"
    problems: int = Field(100, ge=1)
    personas: list[str] = Field(["proactive"], min_length=1)
    seed: int = 0


@final
class DuologTaskset(vf.Taskset[UserTask, DuologTasksetConfig]):  # type: ignore[misc]
    """The problems of a task, each with a persona."""

    def load(self) -> Iterable[UserTask]:
        """Its rows."""
        config = self.config
        task = find_task(config.name_of_task)
        for number, problem in enumerate(task.instances(config.problems, config.seed)):
            persona = config.personas[number % len(config.personas)]
            yield UserTask(
                UserData(
                    name=f"{task.name}/{persona}/{problem}",
                    task=config.name_of_task,
                    persona=persona,
                    problem=problem,
                    seed=config.seed,
                ),
                config.task,
            )


class DuologHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]
    """Nothing can be set."""


@final
class DuologHarness(vf.Harness[DuologHarnessConfig]):  # type: ignore[misc]
    """A chat with the tools of the task, in this process; without tools, if it plays no agent of an episode.

    Args:
        config: as verifiers has it.
        episode: carries out the calls of tools.
    """

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    def __init__(self, config: DuologHarnessConfig, episode: Episode | None = None) -> None:
        super().__init__(config)
        self._episode = episode

    async def launch(
        self,
        ctx: ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> ProgramResult:
        """Plays until the model replies without a call, or the session is over."""
        system, prompt = self.resolve_prompt(data)
        chat: list[dict[str, Any]] = []
        if system:
            chat.append({"role": "system", "content": system})
        if isinstance(prompt, str):
            chat.append({"role": "user", "content": prompt})
        else:
            chat.extend(message_to_wire(one) for one in prompt or ())
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(timeout=None, headers=headers) as client:
            while True:
                asked = {"model": ctx.model, "messages": chat, **self._tools()}
                answer = await client.post(f"{endpoint}/chat/completions", json=asked)
                if answer.status_code != 200:
                    return ProgramResult(1, "", answer.text)
                said = answer.json()["choices"][0]["message"]
                chat.append(said)
                if self._episode is None or not said.get("tool_calls"):
                    return ProgramResult(0, said.get("content") or "", "")
                chat.extend(await carry_out(self._episode, said))
                if self._episode.result is not None:
                    return ProgramResult(0, "", "")

    def _tools(self) -> dict[str, object]:
        tools = () if self._episode is None else self._episode.tools
        shown = [one.schema for one in tools if one.name != _TALKING]
        return {"tools": shown} if shown else {}


class DuologEnvConfig(vf.EnvConfig):  # type: ignore[misc]
    """The environment.

    Attributes:
        assistant: the agent that is trained.
        user: the simulated user; Duolog is its model.
        log: where the sessions are recorded, as a URL.
        reward: how rewards are made, see ``RewardTerms``.
        tau: the tolerance τ that ends an episode once it is used up; None for none.
    """

    assistant: vf.AgentConfig = vf.AgentConfig(runtime=SubprocessConfig())
    user: vf.AgentConfig = vf.AgentConfig(runtime=SubprocessConfig())
    log: str = "sqlite:///training.db"
    reward: dict[str, int | float | str] = Field(default_factory=dict)
    tau: int | None = None


def setting_of(config: DuologEnvConfig) -> EpisodeSetting:
    """The setting of an environment's episodes.

    Raises:
        InvalidInput: the terms of the reward, or ``tau``, make no sense.
    """
    for name in config.reward:
        if name not in RewardTerms.__struct_fields__:
            raise InvalidInput(
                f"unknown term of a reward {name!r}"
                f"{suggestion(name, RewardTerms.__struct_fields__)}; there are: "
                f"{', '.join(RewardTerms.__struct_fields__)}"
            )
    try:
        terms = msgspec.convert(config.reward, RewardTerms)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"these terms of a reward cannot be used: {error}") from None
    return EpisodeSetting(reward=terms, tau=config.tau)


@final
class DuologEnv(vf.Env[DuologEnvConfig]):  # type: ignore[misc]
    """Relays between the assistant and the simulated user, and takes the reward from the session's log.

    The assistant's replies are its messages. With ``DuologHarness``, which is the default, it has the tools of the
    task, too; any other harness only talks.

    Raises:
        InvalidInput: the terms of the reward, or ``tau``, make no sense.
    """

    def __init__(self, config: DuologEnvConfig) -> None:
        super().__init__(config)
        self._setting = setting_of(config)
        self._numbers = count(1)
        self._open = AsyncExitStack()
        self._endpoint: UserEndpoint | None = None
        self._client = EvalClientConfig()

    async def start(self) -> None:
        """Opens the log, and serves the users on a port of this machine."""
        log = await self._open.enter_async_context(open_log(self.config.log))
        self._endpoint = await self._open.enter_async_context(
            UserEndpoint(log, self._setting, most=100_000)
        )
        bound = self._open.enter_context(socket.create_server(("127.0.0.1", 0), backlog=2048))
        stopping = anyio.Event()
        server = HttpServer(user_app(self._endpoint), stopping, _LIMITS)
        tasks = await self._open.enter_async_context(anyio.create_task_group())
        self._open.callback(server.stop)
        tasks.start_soon(server.run, [bound])
        await server.started()
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
        self._client = EvalClientConfig(base_url=url, api_key_var="DUOLOG_USER_KEY")

    async def stop(self) -> None:
        """Closes open sessions as ``cancelled``, and the log."""
        await self._open.aclose()

    async def setup(self, agents: vf.Agents) -> None:
        """The user is not trained."""
        agents.user.trainable = False

    async def run(self, task: UserTask, agents: vf.Agents) -> None:
        """One episode."""
        assert self._endpoint is not None
        row = task.data
        name = UserName(row.task, row.persona, row.problem, row.seed, f"{next(self._numbers)}").text
        agents.user.config = agents.user.config.model_copy(
            update={"model": name, "client": self._client}
        )
        agents.user.ctx = ModelContext(
            model=name, client=self._client, sampling=vf.SamplingConfig()
        )
        try:
            await self._relay(task, agents, name)
        finally:
            self._endpoint.dismiss(name)

    async def _relay(self, task: UserTask, agents: vf.Agents, name: str) -> None:
        """Has the two talk until the session is over, and takes the reward."""
        assert self._endpoint is not None
        row = task.data
        async with agents.user.interaction(vf.Task(vf.TaskData(idx=row.idx))) as user:
            said = await user.turn(_GREETING)
            hosted = self._endpoint.user(name)
            if hosted is None:
                raise InvalidInput(f"the user {name!r} could not begin: see the trace of the user")
            episode = hosted.episode
            harness = agents.assistant.harness
            if isinstance(harness, DuologHarness):
                agents.assistant.harness = DuologHarness(harness.config, episode)
            system = row.system_prompt or episode.messages[0].content
            assigned = task.with_data(prompt=None, system_prompt=system)
            async with agents.assistant.interaction(assigned) as assistant:
                while episode.result is None and not said.terminated:
                    answer = await assistant.turn(said.last_reply)
                    if answer.terminated or episode.result is not None:
                        break
                    said = await user.turn(answer.last_reply or _SILENCE)
                await episode.leave()
                assistant.trace.info[_INFO] = _recorded(episode, episode.reward)


def _recorded(episode: Episode, reward: Reward) -> dict[str, Any]:
    """The outcome of an episode, for the trace.

    Raises:
        InvalidInput: its utility is missing, and with it the reward.
    """
    if reward.total is None:
        raise InvalidInput(
            f"the reward of session {episode.session!r} is missing: {reward.missing}"
        )
    effort = dict(episode.effort)
    return {"session": episode.session, "parts": dict(reward.parts), "effort": effort}
