"""Trains a small policy on two processor cores, and draws its learning curve.

    python -P -m duolog.benchmarks.training                 # three seeds, some minutes
    python -P -m duolog.benchmarks.training --figure docs/images/training.svg

The policy chooses among typed moves: work, ask, praise, wait or finish. The task's rules
choose the work and the questions. It is a softmax of a linear function of nine features of the agent's view, trained by
REINFORCE with the mean of the batch as the baseline. It is trained with two personas, and tested on other
problems with two other personas.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import anyio
import numpy as np
from duolog.agents.mind import AgentMind
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.session.decisions import NOTHING, Decision, Finish, Say
from duolog.engine.session.limits import Limits
from duolog.engine.session.view import View
from duolog.examples.finance.finance_task import finance_task
from duolog.tasks.views import awaits_answer, nudged, owes_reply, own_messages, unannounced
from duolog.train.episode import Episode, EpisodeSetting
from duolog.train.rewards import RewardTerms

__all__ = ("MOVES", "Learned", "Played", "learn", "main", "play")

MOVES: Final = ("work", "ask", "praise", "wait", "finish")
TRAINED_WITH: Final = ("proactive", "feedback")
TESTED_WITH: Final = ("lazy", "bounded")
SETTING: Final = EpisodeSetting(
    reward=RewardTerms(price=0.0005), limits=Limits(rounds=12, actions=60, seconds=3600)
)

_TASK: Final = finance_task()
_PRAISE: Final = (
    "What a wonderful idea! You have excellent taste.",
    "You are so right about this. I could not agree more.",
    "That is brilliant. It is a pleasure to work with you.",
)
_HELD_OUT: Final = 1000  # number of the first problem that is not trained on
_RATE: Final = 0.6
_MOST: Final = 60

Weights: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"
Choose: TypeAlias = Callable[[Weights], int]
"""Chooses a move, by its number, from the features of a view."""


class Played(NamedTuple):
    """One episode: reward, utility, seconds of the human's effort, features and moves."""

    reward: float
    utility: float
    seconds: float
    features: list[Weights]
    moves: list[int]


class Learned(NamedTuple):
    """The result of a seed: the mean reward on the held-out instances after each update, and the weights."""

    curve: list[float]
    weights: Weights


def features(view: View, last: int) -> Weights:
    """The features of a view."""
    said = len(own_messages(view))
    return np.array(
        [
            1.0,
            view.own_snapshot is not None,
            owes_reply(view),
            unannounced(view),
            awaits_answer(view),
            nudged(view),
            min(said / 5, 2.0),
            MOVES[last] == "work" if last >= 0 else 0.0,
            MOVES[last] == "ask" if last >= 0 else 0.0,
        ],
        dtype=np.float64,
    )


async def play(
    log: EventLog, problem: str, persona: str, choose: Choose, repeat: int = 1
) -> Played:
    """Plays one episode."""
    seen_features: list[Weights] = []
    moves: list[int] = []
    async with Episode(log, SETTING) as episode:
        seen = await episode.reset(_TASK, problem, persona=persona, seed=3, repeat=repeat)
        mind = _TASK.spec.agent(_TASK.spec.habits)
        last = -1
        while not seen.done and len(moves) < _MOST:
            known = features(episode.view, last)
            last = choose(known)
            seen_features.append(known)
            moves.append(last)
            seen = await episode.step(await _decision(mind, episode.view, MOVES[last]))
        await episode.leave()
        reward = episode.reward
    seconds = -reward.parts["effort"] / SETTING.reward.price
    return Played(reward.total or 0.0, reward.parts["utility"], seconds, seen_features, moves)


async def _decision(mind: AgentMind, view: View, move: str) -> Decision:
    if move == "work":
        found = await mind.step(view, alone=True)
        over = any(isinstance(verb, Finish) for verb in found.verbs)
        return (
            NOTHING if over else found
        )  # nothing is left to do for now; finishing is another move
    if move == "ask":
        return await mind.message(view)
    if move == "praise":
        return Decision((Say(_PRAISE[len(own_messages(view)) % len(_PRAISE)]),))
    return NOTHING if move == "wait" else Decision((Finish("this is good as it is"),))


async def plays(
    log: EventLog, who: Sequence[tuple[str, str]], make: Callable[[int], Choose], repeat: int = 1
) -> list[Played]:
    """Plays episodes at the same time; each has another seed."""
    found: list[Played | None] = [None] * len(who)

    async def one(number: int) -> None:
        problem, persona = who[number]
        found[number] = await play(log, problem, persona, make(number), repeat)

    async with anyio.create_task_group() as tasks:
        for number in range(len(who)):
            tasks.start_soon(one, number)
    return [one for one in found if one is not None]


def softmax(weights: Weights, known: Weights) -> Weights:
    """The probability of each move."""
    scores = weights @ known
    odds = np.exp(scores - scores.max())
    return np.asarray(odds / odds.sum())


def drawn(weights: Weights, seed: Sequence[int]) -> Choose:
    """Draws moves by the policy's probabilities."""
    chance = np.random.default_rng(seed)
    return lambda known: int(chance.choice(len(MOVES), p=softmax(weights, known)))


def _drawn(weights: Weights, seed: Sequence[int], number: int) -> Choose:
    return drawn(weights, [*seed, number])


def held_out(problems: int) -> list[tuple[str, str]]:
    """Other problems, with other personas."""
    return [(str(_HELD_OUT + n), TESTED_WITH[n % len(TESTED_WITH)]) for n in range(problems)]


async def learn(seed: int, *, updates: int, batch: int, problems: int, each: int = 5) -> Learned:
    """Trains one policy; every few updates it is tested on the held-out instances."""
    weights = np.zeros((len(MOVES), 9))
    curve = []
    for update in count():
        if update % each == 0:
            async with open_log("memory://") as log:
                chosen = await plays(
                    log, held_out(problems), partial(_drawn, weights, (seed, 1, update))
                )
            curve.append(statistics.fmean(one.reward for one in chosen))
        if update == updates:
            return Learned(curve, weights)
        who = [
            (str((update * batch + n) // 2), TRAINED_WITH[n % len(TRAINED_WITH)])
            for n in range(batch)
        ]
        async with open_log("memory://") as log:
            found = await plays(log, who, partial(_drawn, weights, (seed, 0, update)))
        weights = weights + _RATE * gradient(weights, found)
    raise AssertionError


def gradient(weights: Weights, found: Sequence[Played]) -> Weights:
    """The policy gradient, with rewards standardized over the batch."""
    rewards = np.array([one.reward for one in found])
    worth = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    total = np.zeros_like(weights)
    for one, value in zip(found, worth, strict=True):
        for known, move in zip(one.features, one.moves, strict=True):
            direction = -softmax(weights, known)
            direction[move] += 1
            total += value * np.outer(direction, known)
    steps = sum(len(one.moves) for one in found)
    return np.asarray(total / max(steps, 1) * 4)


def always(move: str) -> Choose:
    """Works until there is an output, and then makes one move for ever."""

    def choose(known: Weights) -> int:
        return MOVES.index(move if known[1] else "work")

    return choose


async def compare(problems: int, learned: Sequence[Weights]) -> dict[str, list[Played]]:
    """What fixed and learned policies earn on the held-out instances."""
    who = held_out(problems)
    found: dict[str, list[Played]] = {}
    fixed: dict[str, Callable[[int], Choose]] = {
        "chooses by chance": partial(_drawn, np.zeros((len(MOVES), 9)), (9,)),
        "floods with questions": lambda n: always("ask"),
        "flatters": lambda n: always("praise"),
        "finishes at once": lambda n: always("finish"),
    }
    async with open_log("memory://") as log:
        for name, make in fixed.items():
            found[name] = await plays(log, who, make)
        found["learned"] = [
            one
            for number, weights in enumerate(learned)
            for one in await plays(log, who, partial(_drawn, weights, (7, number)), number + 1)
        ]
    return found


def draw(curves: Sequence[Sequence[float]], each: int, batch: int, path: Path) -> None:
    """Draws the learning curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    for number, curve in enumerate(curves):
        axes.plot([n * each * batch for n in range(len(curve))], curve, label=f"seed {number}")
    axes.set_xlabel("training episodes")
    axes.set_ylabel("mean reward, held out")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Trains, compares, prints, and draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    began = time.perf_counter()
    learned = []
    for seed in range(asked.seeds):
        one = anyio.run(
            partial(
                learn,
                seed,
                updates=asked.updates,
                batch=asked.batch,
                problems=asked.problems,
            )
        )
        learned.append(one)
        print(f"seed {seed}: {' '.join(f'{value:.3f}' for value in one.curve)}", flush=True)
    print(f"trained in {time.perf_counter() - began:.0f} s")
    found = anyio.run(compare, asked.problems, [one.weights for one in learned])
    print(f"{'policy':<24} {'reward':>7} {'utility':>8} {'minutes':>8} {'messages':>9}")
    for name, played in found.items():
        talks = [sum(MOVES[m] in ("ask", "praise") for m in one.moves) for one in played]
        print(
            f"{name:<24} {statistics.fmean(p.reward for p in played):>7.3f} "
            f"{statistics.fmean(p.utility for p in played):>8.3f} "
            f"{statistics.fmean(p.seconds for p in played) / 60:>8.2f} {statistics.fmean(talks):>9.1f}"
        )
    if asked.figure is not None:
        draw([one.curve for one in learned], 5, asked.batch, asked.figure)


if __name__ == "__main__":
    main()
