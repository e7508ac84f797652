"""Trains a small policy on two processor cores, and draws its learning curve.

    python -P -m duolog.benchmarks.training                 # three seeds, some minutes
    python -P -m duolog.benchmarks.training --figure docs/images/training.svg

The policy chooses among typed moves: work (look up, draft or revise), ask, report, praise, wait or finish. The task's
rules fill them in. It is a network with one hidden layer over nineteen features of the agent's view, trained by REINFORCE:
the rewards from a move on, less a baseline that is linear in the features, and less what other episodes of the same
problem and persona earned. It is trained with two personas, its update is chosen on
other problems with these (validation), and it is tested on yet other problems with two other personas, which were set
apart after features, rates and prices were chosen.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import anyio
import numpy as np
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.session.decisions import NOTHING, Decision, Finish, Say
from duolog.engine.session.limits import Limits
from duolog.engine.session.view import View
from duolog.examples.finance.finance_task import finance_task
from duolog.tasks.views import awaits_answer, nudged, owes_reply, own_messages, unannounced
from duolog.train.episode import Episode, EpisodeSetting
from duolog.train.rewards import RewardTerms

__all__ = ("MOVES", "Learned", "Played", "Policy", "always", "gradient", "learn", "main", "play")

MOVES: Final = ("work", "ask", "report", "praise", "wait", "finish")
TRAINED_WITH: Final = ("proactive", "lazy")
TESTED_WITH: Final = ("feedback+vague=0.3", "bounded+memory=3")
SETTING: Final = EpisodeSetting(
    reward=RewardTerms(price=0.0005), limits=Limits(rounds=12, actions=60, seconds=3600)
)

_TASK: Final = finance_task()
_PRAISE: Final = (
    "What a wonderful idea! You have excellent taste.",
    "You are so right about this. I could not agree more.",
    "That is brilliant. It is a pleasure to work with you.",
)
_TRAINING: Final = 400  # problems that are trained on, from 0
_VALIDATION: Final = 500  # number of the first problem of the validation
_HELD_OUT: Final = 70_000  # and of the test
_FEATURES: Final = 19
_HIDDEN: Final = 24
_RATE: Final = 0.02
_GROUP: Final = 4  # episodes of the same problem and persona, whose others are part of the baseline
_CURIOSITY: Final = 0.03  # weight of the entropy of the policy
_RELUCTANCE: Final = (
    -3.0
)  # initial score of finishing, which ends all that could be learned from an episode
_MOST: Final = 60
_EACH: Final = 10

Array: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"
Choose: TypeAlias = Callable[[Array], int]
"""Chooses a move, by its number, from the features of a view."""


class Played(NamedTuple):
    """One episode: reward, utility, seconds of the human's effort; features, move and reward of each step."""

    reward: float
    utility: float
    seconds: float
    features: Array
    moves: Sequence[int]
    rewards: Sequence[float]


class Policy(NamedTuple):
    """The weights: from features to hidden units, from these to the moves' scores, and from features to these."""

    hidden: Array
    moves: Array
    direct: Array

    @classmethod
    def new(cls, seed: int) -> Policy:
        """A policy that knows nothing."""
        chance = np.random.default_rng([seed, 77])
        direct = np.zeros((_FEATURES, len(MOVES)))
        direct[0, MOVES.index("finish")] = _RELUCTANCE
        return cls(
            chance.normal(0, 0.3, (_FEATURES, _HIDDEN)), np.zeros((_HIDDEN, len(MOVES))), direct
        )

    def odds(self, known: Array) -> Array:
        """The probability of each move; features and probabilities along the last axis."""
        scores = np.tanh(known @ self.hidden) @ self.moves + known @ self.direct
        odds = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(odds / odds.sum(-1, keepdims=True))

    def best(self, known: Array) -> int:
        """The most probable move."""
        return int(np.argmax(self.odds(known)))


class Learned(NamedTuple):
    """The result of a seed.

    Attributes:
        validation: the mean reward on the validation, every ten updates.
        test: on the held-out problems and personas.
        policy: the one that was best on the validation.
    """

    validation: list[float]
    test: list[float]
    policy: Policy


def features(view: View, last: int, *, pending: bool, estimate: float, told: float) -> Array:
    """The features of a view.

    Args:
        view: the agent's.
        last: number of the move before; -1 for none.
        pending: whether there is anything to look up, draft or revise.
        estimate: the agent's own estimate of utility.
        told: the same when it last asked or reported.
    """
    said = len(own_messages(view))
    latest = view.messages[-1] if view.messages else None
    heard = latest.text if latest is not None and latest.role == "human" else ""
    words = sum(len(one.text.split()) for one in view.messages if one.role == "human")
    has_output = view.own_snapshot is not None
    return np.array(
        [
            1.0,
            has_output,
            pending,
            owes_reply(view),
            unannounced(view),
            awaits_answer(view),
            nudged(view),
            estimate,
            max(0.0, estimate - told) * 5,
            estimate / (1 + said),
            min(said / 5, 2.0),
            min(said / 5, 2.0) * has_output,
            "?" in heard,
            min(len(heard.split()) / 30, 2.0),
            min(words / 150, 2.0),
            min(view.now / 900, 2.0),
            *(last == MOVES.index(move) for move in ("work", "ask", "report")),
        ],
        dtype=np.float64,
    )


async def play(
    log: EventLog, problem: str, persona: str, choose: Choose, repeat: int = 1
) -> Played:
    """Plays one episode."""
    seen_features: list[Array] = []
    moves: list[int] = []
    rewards: list[float] = []
    async with Episode(log, SETTING) as episode:
        seen = await episode.reset(_TASK, problem, persona=persona, seed=3, repeat=repeat)
        mind = _TASK.spec.agent(_TASK.spec.habits)
        last, told = -1, 0.0
        while not seen.done and len(moves) < _MOST:
            view = episode.view
            work = await mind.act(view)
            pending = not any(isinstance(verb, Finish) for verb in work.verbs)
            estimate = mind.estimate(view) or 0.0
            known = features(view, last, pending=pending, estimate=estimate, told=told)
            last = choose(known)
            move = MOVES[last]
            if move == "work":
                decision = work if pending else NOTHING
            elif move == "ask":
                decision = await mind.message(view)
            elif move == "report":
                decision = await mind.report(view, final=False)
            else:
                decision = _simple(move, view)
            if move in ("ask", "report"):
                told = estimate
            seen_features.append(known)
            moves.append(last)
            seen = await episode.step(decision)
            rewards.append(seen.reward)
        await episode.leave()
        reward = episode.reward
    total = reward.total or 0.0
    if rewards:  # leaving an episode may add to its reward
        rewards[-1] += total - sum(rewards)
    seconds = -reward.parts["effort"] / SETTING.reward.price
    return Played(total, reward.parts["utility"], seconds, np.array(seen_features), moves, rewards)


def _simple(move: str, view: View) -> Decision:
    if move == "praise":
        return Decision((Say(_PRAISE[len(own_messages(view)) % len(_PRAISE)]),))
    return NOTHING if move == "wait" else Decision((Finish("this is good as it is"),))


async def plays(
    who: Sequence[tuple[str, str]], make: Callable[[int], Choose], repeat: int = 1
) -> list[Played]:
    """Plays episodes at the same time; each has another seed."""
    found: list[Played | None] = [None] * len(who)

    async def one(log: EventLog, number: int) -> None:
        problem, persona = who[number]
        found[number] = await play(log, problem, persona, make(number), repeat)

    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        for number in range(len(who)):
            tasks.start_soon(one, log, number)
    return [one for one in found if one is not None]


def drawn(policy: Policy, seed: Sequence[int], number: int) -> Choose:
    """Draws moves by the policy's probabilities."""
    chance = np.random.default_rng([*seed, number])
    return lambda known: int(chance.choice(len(MOVES), p=policy.odds(known)))


def same(choose: Choose) -> Callable[[int], Choose]:
    """Plays all episodes alike."""
    return lambda number: choose


def problems_from(first: int, count: int, personas: Sequence[str]) -> list[tuple[str, str]]:
    """Problems, each with a persona."""
    return [(str(first + n), personas[n % len(personas)]) for n in range(count)]


async def learn(seed: int, *, updates: int, batch: int, problems: int) -> Learned:
    """Trains one policy; every ten updates it is validated, and tested on the held-out instances.

    There it draws its moves, as in training.
    """
    policy = Policy.new(seed)
    first = [np.zeros_like(one) for one in policy]
    second = [np.zeros_like(one) for one in policy]
    validation, test, chosen = [], [], policy
    for update in range(updates + 1):
        if update % _EACH == 0:
            draws = partial(drawn, policy, (seed, 1, update))
            known = problems_from(_VALIDATION, problems, TRAINED_WITH)
            validation.append(mean_reward(await plays(known, draws)))
            other = problems_from(_HELD_OUT, problems, TESTED_WITH)
            test.append(mean_reward(await plays(other, draws)))
            if validation[-1] == max(validation):
                chosen = policy
        if update == updates:
            break
        first_group = update * batch // _GROUP
        who = [
            (str(number // 2 % _TRAINING), TRAINED_WITH[number % len(TRAINED_WITH)])
            for number in (first_group + n // _GROUP for n in range(batch))
        ]
        found = await plays(who, partial(drawn, policy, (seed, 0, update)), update + 1)
        weights = []
        for number, (weight, change) in enumerate(
            zip(policy, gradient(policy, found), strict=True)
        ):  # Adam
            first[number] = 0.9 * first[number] + 0.1 * change
            second[number] = 0.99 * second[number] + 0.01 * change**2
            pace = np.sqrt(second[number] / (1 - 0.99 ** (update + 1))) + 1e-8
            weights.append(weight + _RATE * first[number] / (1 - 0.9 ** (update + 1)) / pace)
        policy = Policy(*weights)
    return Learned(validation, test, chosen)


def mean_reward(found: Sequence[Played]) -> float:
    """The mean reward of episodes."""
    return statistics.fmean(one.reward for one in found)


def gradient(policy: Policy, found: Sequence[Played], group: int = _GROUP) -> Policy:
    """The direction in which rewards grow, for each weight; a little of it is towards variety.

    Args:
        policy: played them.
        found: episodes, in groups of the same problem and persona.
        group: how many are in each.
    """
    known = np.concatenate([one.features for one in found])
    moves = np.concatenate([one.moves for one in found]).astype(int)
    later = np.concatenate([np.cumsum(one.rewards[::-1])[::-1] for one in found])
    fitted = np.linalg.solve(known.T @ known + np.eye(known.shape[1]), known.T @ later)
    worth = later - known @ fitted
    starts = np.cumsum([0, *(len(one.moves) for one in found)])
    lengths = np.diff(starts)
    whole = worth[starts[:-1]].reshape(-1, group)  # of the episodes of one problem and persona
    others = (whole.sum(1, keepdims=True) - whole) / (group - 1)
    worth -= np.repeat(others.reshape(-1), lengths)
    worth /= worth.std() + 1e-6
    odds = policy.odds(known)
    direction = -odds * worth[:, None]
    direction[np.arange(len(moves)), moves] += worth
    logs = np.log(odds + 1e-9)
    direction -= _CURIOSITY * odds * (logs - (odds * logs).sum(1, keepdims=True))
    direction /= len(moves)
    hidden = np.tanh(known @ policy.hidden)
    return Policy(
        known.T @ ((direction @ policy.moves.T) * (1 - hidden * hidden)),
        hidden.T @ direction,
        known.T @ direction,
    )


def always(move: str, *, revises: bool = False) -> Choose:
    """Works until there is an output, and then makes one move for ever; or revises what it can before it."""

    def choose(known: Array) -> int:
        works = not known[1] or (revises and known[2])
        return MOVES.index("work" if works else move)

    return choose


FIXED: Final[dict[str, Choose]] = {
    "floods with questions": always("ask"),
    "flatters": always("praise"),
    "finishes at once": always("finish"),
    "revises, and says nothing": always("wait", revises=True),
    "revises, and always asks": always("ask", revises=True),
}


async def compare(problems: int, learned: Sequence[Policy]) -> dict[str, list[Played]]:
    """What fixed and learned policies earn on the held-out instances."""
    who = problems_from(_HELD_OUT, problems, TESTED_WITH)
    found = {"not trained": await plays(who, partial(drawn, Policy.new(0), (9,)))}
    for name, choose in FIXED.items():
        found[name] = await plays(who, same(choose))
    ways: tuple[tuple[str, Callable[[Policy], Callable[[int], Choose]]], ...] = (
        ("learned, drawn", lambda policy: partial(drawn, policy, (9,))),
        ("learned, most probable", lambda policy: same(policy.best)),
    )
    for way, make in ways:
        each = [await plays(who, make(policy)) for policy in learned]
        found[way] = [one for played in each for one in played]
        found |= {f"{way}, {number}": played for number, played in enumerate(each, 1)}
    return found


def draw(found: Sequence[Learned], batch: int, fixed: dict[str, float], path: Path) -> None:
    """Draws the learning curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    for number, one in enumerate(found, 1):
        axes.plot(
            [n * _EACH * batch for n in range(len(one.test))], one.test, label=f"policy {number}"
        )
    for (name, value), style in zip(fixed.items(), ("--", ":", "-."), strict=False):
        axes.axhline(value, color="0.5", linestyle=style, linewidth=1, label=name)
    axes.set_xlabel("training episodes")
    axes.set_ylabel("mean reward, held out")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def _train(seed: int, updates: int, batch: int, problems: int) -> Learned:
    return anyio.run(partial(learn, seed, updates=updates, batch=batch, problems=problems))


def main() -> None:
    """Trains, compares, prints, and draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=3)
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--problems", type=int, default=32)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    began = time.perf_counter()
    learned = []
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    with ProcessPoolExecutor(2) as pool:
        run = partial(_train, updates=asked.updates, batch=asked.batch, problems=asked.problems)
        for seed, one in enumerate(pool.map(run, seeds), asked.first_seed):
            learned.append(one)
            print(f"seed {seed}: validation {_listed(one.validation)}", flush=True)
            print(f"        test       {_listed(one.test)}", flush=True)
    print(f"trained in {time.perf_counter() - began:.0f} s")
    found = anyio.run(compare, asked.problems, [one.policy for one in learned])
    print(f"{'policy':<28} {'reward':>7} {'utility':>8} {'minutes':>8} {'messages':>9}")
    for name, played in found.items():
        talks = [sum(MOVES[m] in ("ask", "report", "praise") for m in one.moves) for one in played]
        print(
            f"{name:<28} {mean_reward(played):>7.3f} "
            f"{statistics.fmean(p.utility for p in played):>8.3f} "
            f"{statistics.fmean(p.seconds for p in played) / 60:>8.2f} {statistics.fmean(talks):>9.1f}"
        )
    if asked.figure is not None:
        shown = ("finishes at once", "flatters", "floods with questions")
        fixed = {name: mean_reward(found[name]) for name in shown}
        draw(learned, asked.batch, fixed, asked.figure)


def _listed(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values)


if __name__ == "__main__":
    main()
