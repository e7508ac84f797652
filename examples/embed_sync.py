"""Duolog in a synchronous program, such as a Flask view or a script: the same verbs, no ``await``.

    python examples/embed_sync.py telemetry.db

One background thread writes and scores; recording passes an event to it and returns at once. The
callbacks get the scoring updates in a separate thread.
"""

from __future__ import annotations

import sys
import uuid

import duolog
from duolog.scoring.trajectory.updates import StopAdvice, Update, UtilityUpdated

__all__ = ("main",)


def on_update(update: Update) -> None:
    """Called with every update; utility is one kind."""
    if isinstance(update, UtilityUpdated) and update.value is not None:
        say(f"  round {update.round}: the human kept {update.value:.0%} of the agent's draft")


def on_stop(advice: StopAdvice) -> None:
    """Called when a user is about to give up: time to ask a colleague for help."""
    say(f"  round {advice.round}: rounds {advice.rounds} were unproductive, rated {advice.ratings}")


def main(path: str) -> None:
    """Records a short collaboration on a letter, and prints the updates of scoring."""
    with duolog.open_sync(f"sqlite:///{path}") as log:
        watch = log.watch(
            scorers=[duolog.rule_judge(), duolog.RetentionUtility()],
            on_update=on_update,
            on_stop=on_stop,
        )
        s = log.session(f"letter-{uuid.uuid4().hex[:8]}", task="letters", agent="writer-v1")
        s.human.says("Please write to the landlord: the heating is broken.")
        s.agent.acts("look_up", {"name": "landlord"}, result="Mr Grant")
        s.agent.submits("Dear Mr Grant,\nthe heating is broken.\nRegards")
        s.human.edits("Dear Mr Grant,\nthe heating has been broken since Monday.\nRegards")
        s.human.says("Ask him to have it mended by Friday.")
        with s.agent.saying() as message:  # the chunks of a streamed reply become one message
            for piece in ("I would rather ", "not set ", "a date."):
                message.write(piece)
        s.human.says("That is not what I asked for. By Friday!")
        s.agent.says("Dates can sound harsh. Shall I make it friendlier?")
        s.human.says("No, that is still wrong. I will do it myself.")
        s.close("abandoned", by="human", durable=True)  # waits until all of it is on the disk
        watch.settle()  # and until it is scored, for which a product does not have to wait
        say(f"{path}: {log.statistics().written} events, {watch.statistics().stops} stops advised")


def say(text: str) -> None:
    """Prints a line."""
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "telemetry.db")
