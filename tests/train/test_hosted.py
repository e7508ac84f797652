"""Simulated users for other harnesses: their answers, and their effort in the log."""

from __future__ import annotations

import gc
from typing import Any

import anyio
import duolog
import httpx
import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.log.open import open_log
from duolog.train.hosted import STOP, Talk, UserEndpoint, user_app

MODEL = "tutoring/proactive/0/7"


async def talk(
    endpoint: UserEndpoint, said: list[dict[str, str]], model: str = MODEL, **more: object
) -> dict[str, Any]:
    """One request; the reply is added to the conversation."""
    body = msgspec.json.encode({"model": model, "messages": said, **more})
    found = dict(await endpoint.complete(body))
    said.append(msgspec.to_builtins(found["choices"])[0]["message"])
    return found


def test_a_harness_talks_to_a_user_whose_effort_is_in_the_log() -> None:
    async def main() -> None:
        async with open_log("memory://") as log:
            async with UserEndpoint(log) as endpoint:
                said = [{"role": "user", "content": "Hello! How can I help you?"}]
                first = await talk(endpoint, said)
                assert "due tomorrow" in said[-1]["content"]
                for _ in range(3):
                    said.append({"role": "user", "content": "What is 3/4 + 1/4?"})
                    last = await talk(endpoint, said)
                assert first["duolog"]["session"] == last["duolog"]["session"]
            session = last["duolog"]["session"]
            trajectory = await duolog.score_log(log, session)
            assert trajectory.state == "cancelled"
            effort = last["duolog"]["effort"]
            assert effort["acts"] >= 3
            assert effort["acts"] <= (trajectory.points[-1].effort["acts"] or 0)

    anyio.run(main)  # installed tasks are looked for, which reads files


def test_conversations_are_told_apart_by_what_was_said() -> None:
    async def main() -> None:
        async with open_log("memory://") as log, UserEndpoint(log) as endpoint:
            one: list[dict[str, str]] = [{"role": "user", "content": "Hello!"}]
            other: list[dict[str, str]] = [{"role": "user", "content": "Hello!"}]
            first, second = await talk(endpoint, one), await talk(endpoint, other)
            assert first["duolog"]["session"] != second["duolog"]["session"]
            one.append({"role": "user", "content": "What is 1/2 + 1/4?"})
            other.append({"role": "user", "content": "What is 3/4 - 1/4?"})
            asked = list(one)
            found = [await talk(endpoint, one), await talk(endpoint, other)]
            assert len({each["duolog"]["session"] for each in found}) == 2
            again = await talk(endpoint, asked)
            assert again["choices"] == found[0]["choices"]
            with pytest.raises(InvalidInput, match="conversation is unknown"):
                await talk(endpoint, [*one[:1], {"role": "assistant", "content": "No."}, one[0]])

    anyio.run(main)


def test_a_conversation_with_a_name_is_known_by_it() -> None:
    async def main() -> None:
        async with open_log("memory://") as log, UserEndpoint(log) as endpoint:
            hello = [{"role": "user", "content": "Hello!"}]
            found = [await talk(endpoint, [*hello], f"{MODEL}/{name}") for name in ("a", "b", "a")]
            sessions = [each["duolog"]["session"] for each in found]
            assert sessions[0] == sessions[2] != sessions[1]
            short = [
                {"role": "assistant", "content": "(earlier messages were left out)"},
                {"role": "user", "content": "What is 1/2 + 1/4?"},
            ]
            answered = await talk(endpoint, [*short], f"{MODEL}/a", output="x = 3")
            assert answered["duolog"]["session"] == sessions[0]
            again = await talk(endpoint, [*short], f"{MODEL}/a", output="x = 3")
            assert again == answered
            user = endpoint.user(f"{MODEL}/a")
            assert user is not None
            said = [one.text for one in user.episode.view.messages if one.role == "agent"]
            assert said == ["What is 1/2 + 1/4?"]
            assert user.episode.view.own_snapshot is not None

    anyio.run(main)


def test_the_oldest_conversation_makes_room() -> None:
    async def main() -> None:
        async with open_log("memory://") as log:
            async with UserEndpoint(log, most=1) as endpoint:
                one, other = [{"role": "user", "content": "A"}], [{"role": "user", "content": "B"}]
                first = (await talk(endpoint, one))["duolog"]["session"]
                await talk(endpoint, other)
                with pytest.raises(InvalidInput, match="conversation is unknown"):
                    await talk(endpoint, [*one, {"role": "user", "content": "C"}])
            assert (await log.summary(first)).state == "cancelled"
            with pytest.raises(InvalidInput, match="at least one session"):
                UserEndpoint(log, most=0)

    anyio.run(main)


def test_the_last_reply_says_that_it_is_over() -> None:
    async def main() -> None:
        async with open_log("memory://") as log, UserEndpoint(log) as endpoint:
            said = [{"role": "user", "content": "Hello!"}]
            found = await talk(endpoint, said)
            for number in range(60):
                if found["duolog"]["done"]:
                    break
                said.append({"role": "user", "content": f"Lovely weather today! {number}"})
                found = await talk(endpoint, said)
            assert said[-1]["content"].endswith(STOP)
            assert found["duolog"]["ended"] in ("abandoned", "finished", "limit")

    anyio.run(main)


def test_an_endpoint_raises_what_is_wrong_with_a_request_as_it_is() -> None:
    async def main() -> None:
        async with open_log("memory://") as log:
            for user, why in (
                ("travel", "is not a user"),
                ("trvel/lazy/0/7", "unknown task 'trvel'"),
                ("tutoring/lasy/0/7", "unknown user 'lasy'"),
                ("tutoring/lazy/first/7", "unknown instance 'first'"),
            ):
                with pytest.raises(InvalidInput, match=why):
                    async with UserEndpoint(log) as endpoint:
                        await talk(endpoint, [{"role": "user", "content": "Hi"}], user)
            assert not [one async for one in log.sessions()]

    anyio.run(main)


def test_bad_requests_are_answered_in_words_over_http() -> None:
    async def main() -> None:
        async with open_log("memory://") as log, UserEndpoint(log) as endpoint:
            transport = httpx.ASGITransport(app=user_app(endpoint))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:

                async def post(body: object) -> httpx.Response:
                    return await client.post("/v1/chat/completions", json=body)

                hello = [{"role": "user", "content": "Hello!"}]
                good = await post({"model": MODEL, "messages": hello})
                assert good.status_code == 200
                assert good.json()["choices"][0]["message"]["role"] == "assistant"
                for body, why in (
                    ([], "cannot be read as a chat completion"),
                    ({"model": "gpt", "messages": hello}, "is not a user"),
                    ({"model": MODEL[:-1] + "9" * 5000, "messages": hello}, "is not a user"),
                    ({"model": "nowhere/proactive/0/7", "messages": hello}, "unknown task"),
                    ({"model": "tutoring/grumpy/0/7", "messages": hello}, "grumpy"),
                    ({"model": MODEL, "messages": hello, "stream": True}, "does not stream"),
                ):
                    refused = await post(body)
                    assert refused.status_code == 400
                    assert why in refused.json()["error"]["message"]

    anyio.run(main)


def test_a_request_is_bounded_and_comes_from_this_machine() -> None:
    async def main() -> None:
        async with open_log("memory://") as log, UserEndpoint(log) as endpoint:

            async def post(
                data: bytes, token: str | None = None, **headers: str
            ) -> tuple[int, str]:
                transport = httpx.ASGITransport(app=user_app(endpoint, token))
                headers = {"content-type": "application/json", "host": "localhost"} | headers
                async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                    found = await client.post("/v1/chat/completions", content=data, headers=headers)
                    return found.status_code, found.text

            begin = b'{"model":"' + MODEL.encode() + b'","messages":[{"role":"user","content":'
            status, said = await post(begin + b"[" + b"{}," * 300_000 + b"{}]}]}")
            assert (status, "more than 262,144 values" in said) == (413, True)
            status, said = await post(begin + b'"' + b"a" * 9_000_000 + b'"}]}')
            assert (status, "at most 8,388,608 bytes" in said) == (413, True)
            good = begin + b'"Hello!"}]}'
            assert (await post(good, host="evil.example"))[0] == 421
            assert (await post(good, **{"content-type": "text/plain"}))[0] == 415
            assert not [one async for one in log.sessions()]
            assert (await post(good))[0] == 200
            assert (await post(good, "k" * 20))[0] == 401
            assert (await post(good, "k" * 20, authorization="Bearer " + "k" * 20))[0] == 200

    anyio.run(main)


def test_conversations_that_are_left_are_not_kept() -> None:
    async def main() -> None:
        async with open_log("memory://") as log, UserEndpoint(log, most=2) as endpoint:
            gc.collect()
            before = sum(isinstance(one, Talk) for one in gc.get_objects())
            for number in range(6):
                await talk(endpoint, [{"role": "user", "content": f"Hello {number}!"}])
            gc.collect()
            assert sum(isinstance(one, Talk) for one in gc.get_objects()) <= before + 2

    anyio.run(main)
