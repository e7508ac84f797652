"""The actions of proof: they compute, refuse clearly, and cost what they cost whoever takes them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON, ActionResolved, Role
from duolog.engine.session.environment import Action, Outcome
from duolog.examples.proof.environment import ACTIONS, OVERLOOKED, ProofEnvironment

RIGHT = (
    "Claim A: 8 divides n^2 - 1 for odd n\n"
    "A.1 8 divides n^2 - 1 for odd n [cases mod 8: 1 -> 0, 3 -> 8, 5 -> 24, 7 -> 48]"
)
WRONG = RIGHT.replace("3 -> 8, ", "")


def action(
    name: str, arguments: Mapping[str, JSON], role: Role = "agent", version: int = 5
) -> Action:
    return Action(version=version, actor=role, role=role, name=name, arguments=arguments)


async def perform(
    name: str, arguments: Mapping[str, JSON], role: Role = "agent", version: int = 5
) -> Outcome:
    return await ProofEnvironment("1").perform(action(name, arguments, role, version))


async def test_they_compute() -> None:
    assert (await perform("Expand", {"expression": "(n - 1)(n + 1)"})).observation == "n^2 - 1"
    found = await perform("FindCounterexample", {"claim": "24 divides n^3 - n for all n"})
    assert found.observation == {"n": 2}
    table = await perform("Residues", {"expression": "n^2", "modulus": 4, "integers": "odd n"})
    assert table.observation == {
        "columns": ["n", "value", "remainder"],
        "rows": [[1, 1, 1], [3, 9, 1]],
    }
    assert (await perform("Verify", {"proof": RIGHT})).observation == {"A": []}
    refused = (await perform("Verify", {"proof": WRONG})).observation
    assert refused == {"A": [{"step": "A.1", "why": "the case n = 3 mod 8 is missing"}]}


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("Prove", {}, "unknown action 'Prove'"),
        ("Expand", {}, "called wrongly"),
        ("Expand", {"expression": "x"}, "neither a number"),
        ("Residues", {"expression": "n", "modulus": 1}, "called wrongly"),
        (
            "Residues",
            {"expression": "n", "modulus": 3, "integers": "prime n"},
            "is not a set of integers",
        ),
        ("FindCounterexample", {"claim": "n is odd"}, "is not a claim"),
        ("FindCounterexample", {"claim": RIGHT, "limit": 10**9}, "called wrongly"),
        ("Verify", {"proof": "trust me"}, "0 proofs"),
        ("Check", {"proof": RIGHT}, "for people"),
        ("Accept", {"label": "A"}, "for people"),
    ],
)
async def test_they_refuse_in_one_clear_line(
    name: str, arguments: Mapping[str, JSON], why: str
) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        await perform(name, arguments)
    assert "\n" not in str(refused.value)


async def test_a_person_takes_longer_to_verify_and_what_is_formal_already_takes_seconds() -> None:
    environment = ProofEnvironment("1")
    by_agent = await environment.perform(action("Verify", {"proof": RIGHT}))
    again = await environment.perform(action("Verify", {"proof": RIGHT}, "human"))
    by_hand = await perform("Verify", {"proof": RIGHT}, "human")
    assert (again.seconds or 0) < (by_agent.seconds or 0) < (by_hand.seconds or 0)
    resumed = ProofEnvironment("1")
    resolved = ActionResolved(action=5, outcome="ok", observation=by_agent.observation)
    resumed.recall(action("Verify", {"proof": RIGHT}), resolved)
    assert await resumed.perform(action("Verify", {"proof": RIGHT}, "human")) == again


async def test_a_reader_overlooks_errors_now_and_then_and_hardly_where_a_doubt_is_marked() -> None:
    async def missed(proof: str) -> int:
        found = [await perform("Check", {"proof": proof}, "human", one) for one in range(200)]
        return sum(one.observation == {"A": []} for one in found)

    assert 200 * OVERLOOKED * 0.6 < await missed(WRONG) < 200 * OVERLOOKED * 1.4
    assert await missed(f"{WRONG} (?)") < 200 * OVERLOOKED * 0.5
    assert await missed(RIGHT) == 200


async def test_reading_takes_longer_the_longer_a_proof_is() -> None:
    longer = f"{RIGHT}\n{RIGHT.splitlines()[1]}"
    short = await perform("Check", {"proof": RIGHT}, "human")
    long = await perform("Check", {"proof": longer}, "human")
    assert (short.seconds or 0) < (long.seconds or 0)
    assert all(spec.description and spec.repeatable for spec in ACTIONS.values())
