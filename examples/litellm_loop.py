"""A chat in the terminal with a model through LiteLLM; it prints utility, effort and cost.

    OPENAI_API_KEY=... python examples/litellm_loop.py openai/gpt-4o-mini
    OPENAI_API_KEY=none python examples/litellm_loop.py openai/mine http://127.0.0.1:8000/v1

Type what you want. ``/good`` and ``/bad`` rate the last answer; an empty line ends the chat. The
conversation, every call with its tokens and its price, and all measurements are then in ``chat.db``: see ``duolog sessions chat.db``. Needs ``pip install '.[llm]'``.
"""

from __future__ import annotations

import os
import sys
import uuid

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches prices at import

import anyio
import anyio.to_thread
import duolog
import litellm
import openai
from duolog.engine.events import ModelCalled
from duolog.scoring.trajectory.updates import StopAdvice

__all__ = ("main",)


async def main(model: str, api_base: str | None) -> None:
    """Chats until the person enters an empty line."""
    session = f"chat-{uuid.uuid4().hex[:8]}"
    async with duolog.open("sqlite:///chat.db") as log:
        logger = duolog.litellm_logger(log)
        litellm.callbacks.append(logger)
        log.watch(scorers=[duolog.FeedbackUtility(), duolog.rule_judge()], on_stop=warn).start()
        s = await log.session(session, task="chat", agent=model, judge="rule-judge")
        messages: list[dict[str, str]] = []
        while said := await listen():
            if said in ("/good", "/bad"):
                await s.human.feedback(thumbs="up" if said == "/good" else "down")
                continue
            await s.human.says(said)
            messages.append({"role": "user", "content": said})
            try:
                async with s.agent.saying() as answer:
                    stream = await litellm.acompletion(
                        model=model,
                        api_base=api_base,
                        messages=messages,
                        stream=True,
                        stream_options={"include_usage": True},
                        metadata={"duolog_session": session, "duolog_purpose": "answer"},
                    )
                    async for chunk in stream:
                        for choice in chunk.choices:
                            piece = choice.delta.content or ""
                            answer.write(piece)
                            sys.stdout.write(piece)
                    # LiteLLM reports a call a moment after it was answered: so the call is
                    # in the log before the answer that was taken from it.
                    await logger.settle(session)
                sys.stdout.write("\n")
                messages.append({"role": "assistant", "content": answer.text})
            except openai.APIError as error:  # LiteLLM derives its errors from these
                sys.stdout.write(f"(the model cannot be reached: {type(error).__name__})\n")
        await logger.settle(session)
        await s.close()
        await log.settle()
        await report(log, session)


async def listen() -> str:
    """The next line that is typed; empty at the end."""

    def line() -> str:
        sys.stdout.write("> ")
        sys.stdout.flush()
        return sys.stdin.readline().strip()

    return await anyio.to_thread.run_sync(line)


def warn(advice: StopAdvice) -> None:
    """Warns that a user is about to give up: the moment to ask, or to hand over to a person."""
    sys.stdout.write(
        f"\n(rounds {advice.rounds} were unproductive: tolerance {advice.tau} is used up)\n"
    )


async def report(log: duolog.Log, session: str) -> None:
    """Prints the utility of the conversation, round by round, and its cost."""
    sys.stdout.write("\nround  utility  rating  your tokens  read\n")
    for point in (await duolog.score_log(log, session)).points:
        effort = point.effort
        utility = "-" if point.utility is None else f"{point.utility:.2f}"
        sys.stdout.write(
            f"{point.round:5}  {utility:>7}  {point.rating or '-':>6}  "
            f"{effort['tokens_written']:11}  {effort['tokens_read']:4}\n"
        )
    calls = [
        record.event async for record in log.read(session) if isinstance(record.event, ModelCalled)
    ]
    prompt = sum(call.tokens.prompt or 0 for call in calls)
    completion = sum(call.tokens.completion or 0 for call in calls)
    costs = [call.cost for call in calls if call.cost is not None]
    price = f"{sum(costs):.6f} USD" if costs else "at an unknown price"
    sys.stdout.write(f"{len(calls)} calls, {prompt} + {completion} tokens, {price}\n")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
