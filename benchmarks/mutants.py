"""Known ways to break the engine: each is a change of a few words in one module."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ("MUTANTS", "Mutant", "mutated")


class Mutant(NamedTuple):
    """A way to break the engine: a replacement in a module, and the runs that show it."""

    what: str
    module: str
    old: str
    new: str
    store: str = "sqlite"


SQLITE = "engine.log.sqlite."
SERVER = "interop.http.server"
MUTANTS = (
    Mutant(
        "never sync",
        SQLITE + "file",
        'f"PRAGMA synchronous = {settings.durability}"',
        '"PRAGMA synchronous = OFF"',
    ),
    Mutant(
        "sync at checkpoints only",
        SQLITE + "file",
        'f"PRAGMA synchronous = {settings.durability}"',
        '"PRAGMA synchronous = NORMAL"',
    ),
    Mutant(
        "no journal",
        SQLITE + "file",
        '"PRAGMA journal_mode = WAL"',
        '"PRAGMA journal_mode = OFF"',
    ),
    Mutant(
        "a failed sync is said to have written nothing",
        SQLITE + "file",
        "    sqlite3.SQLITE_FULL,\n",
        "    sqlite3.SQLITE_FULL,\n    sqlite3.SQLITE_IOERR,\n",
    ),
    Mutant(
        "errors of the disk are not translated",
        SQLITE + "writer",
        "        except sqlite3.Error as error:\n            failure = translate(error, self._url)",
        "        except ZeroDivisionError as error:\n            failure = translate(error, self._url)",
    ),
    Mutant(
        "two records are swapped",
        "engine.log.decide",
        "body, _ in append.envelopes:",
        "body, _ in sorted(append.envelopes, key=lambda each: each[1] + len(each[8] or b'')):",
    ),
    Mutant(
        "positions are given out twice after a failure",
        SQLITE + "commit",
        "        except BaseException:\n            self.reset()\n            for",
        "        except BaseException:\n            for",
    ),
    Mutant(
        "the expected version is not compared",
        "engine.log.decide",
        "    if append.expected is not None and append.expected != version:",
        "    if False:",
    ),
    Mutant(
        "a repeated id is the same whoever it is by",
        "engine.log.append",
        "    if (old.kind, old.actor, old.role, old.cause) != (kind, actor, role, cause):",
        "    if old.kind != kind:",
        "memory",
    ),
    Mutant(
        "a fold that raced with forgetting leaves a row",
        SQLITE + "derived",
        "AND state <> '{FORGOTTEN}' AND position",
        "AND position",
    ),
    Mutant(
        "checkpoints are not compared",
        "engine.log.decide",
        "    if actual != advance.expected:",
        "    if False:",
    ),
    Mutant(
        "checkpoints do not move",
        "engine.log.decide",
        "    _move(append.checkpoint, known, decided)\n    if not append.envelopes:",
        "    if not append.envelopes:",
    ),
    Mutant(
        "closed sessions take events",
        "engine.log.decide",
        "    if append.envelopes and state.refuses(append):",
        "    if False:",
    ),
    Mutant(
        "ids of callers are not looked up",
        SQLITE + "commit",
        "                if append.ids:\n",
        "                if False:\n",
    ),
    Mutant(
        "what others have written is not noticed",
        SQLITE + "commit",
        "if data_version != self._data_version:",
        "if self._data_version < 0:",
    ),
    Mutant(
        "the cache forgets the version of a session",
        SQLITE + "commit",
        "StreamState(key, version or 0)",
        "StreamState(key, 0)",
    ),
    Mutant(
        "the hash chain is not written",
        SQLITE + "commit",
        '            many("INSERT INTO chain VALUES (?, ?, ?)", decided.links)\n',
        "",
    ),
    Mutant(
        "the hash chain begins anew where a session was not in memory",
        SQLITE + "commit",
        "                    entry.hash = row and row[0]",
        "                    entry.hash = None",
    ),
    Mutant(
        "a cancelled append does not wait for its outcome",
        "engine.log.append_writer",
        "                while not append.settled:",
        "                while False:",
    ),
    Mutant(
        "an append is not in one transaction",
        SQLITE + "commit",
        "        self._write_in_bulk(_INSERT, decided.rows)\n",
        '        self._write_in_bulk(_INSERT, decided.rows)\n        self._connection.execute("COMMIT")\n        begin(self._connection)\n',
    ),
    Mutant(
        "the summary is not written",
        SQLITE + "commit",
        '        self._write_in_bulk(_ADVANCE, [(*progress_of(state), "") for state in advanced])\n',
        "",
    ),
    Mutant(
        "a forgotten session keeps bodies",
        SQLITE + "maintenance",
        "WHERE position = ? AND body IS NOT NULL",
        "WHERE position = ? AND version > 1",
    ),
    Mutant(
        "an erasure is not committed",
        SQLITE + "maintenance",
        "        commit(connection, where)\n",
        '        execute("ROLLBACK")\n',
    ),
    Mutant(
        "reading of a session stops after a batch",
        SQLITE + "reader",
        "return self._records(rows), len(found) < BATCH",
        "return self._records(rows), True",
    ),
    Mutant(
        "a slow subscription loses records",
        "engine.log.subscriptions",
        "            if len(self._buffer) + len(records) > BUFFER:\n                self.fall_back()\n",
        "            if len(self._buffer) + len(records) > BUFFER:\n",
        "memory",
    ),
    Mutant(
        "what is published while it catches up is lost",
        "engine.log.subscriptions",
        "                self._ahead.extend(records)",
        "                pass",
        "memory",
    ),
    Mutant(
        "a gap in what is published is not noticed",
        "engine.log.publisher",
        "            self.skip(records[0].position - 1)",
        "            pass",
    ),
    Mutant(
        "a subscription delivers what lies before its start",
        "engine.log.subscriptions",
        "        if records[0].position <= self._cursor:",
        "        if False:",
        "memory",
    ),
    Mutant(
        "in memory, ids of callers are lost",
        "engine.log.decide",
        "    for record in records if append.ids else ():",
        "    for record in ():",
        "memory",
    ),
    Mutant(
        "in memory, closed sessions take events",
        "engine.log.decide",
        "    if append.envelopes and state.refuses(append):",
        "    if False:",
        "memory",
    ),
    Mutant(
        "in memory, a version is taken for granted",
        "engine.log.decide",
        "    if append.expected is not None and append.expected != version:",
        "    if False:",
        "memory",
    ),
    Mutant(
        "in memory, a checkpoint moves before its append is refused",
        "engine.log.decide",
        "    _check_admitted(append, state, entry, known.where)\n    _move(append.checkpoint, known, decided)\n",
        "    _move(append.checkpoint, known, decided)\n    _check_admitted(append, state, entry, known.where)\n",
        "memory",
    ),
    Mutant(
        "a cancellation by a hook passes",
        "engine.plugins",
        "        raise PluginFailed(self._name, error) from error",
        "        return",
        "memory",
    ),
    Mutant(
        "an export loses ids of callers",
        "engine.log.exchange.jsonl_export",
        "record.caller_id",
        "None",
        "memory",
    ),
    Mutant(
        "a round begins one record late",
        "engine.rounds",
        "        self._first = version\n",
        "        self._first = version + 1\n",
        "memory",
    ),
    Mutant(
        "a close leaves its session open",
        "engine.log.summary",
        "                self.state = event.reason",
        "                pass",
        "memory",
    ),
    Mutant(
        "a recorder gives up where the log cannot be written now",
        "telemetry.intake",
        "                await anyio.sleep(delay)\n                delay",
        "                self._done(queue, len(batch))\n                delay",
    ),
    Mutant(
        "a recorder says that the first of a batch is written, and writes it again",
        "telemetry.intake",
        "            self._done(queue, len(results))",
        "            self._done(queue, max(1, len(results) - 1))",
        "memory",
    ),
    Mutant(
        "a scorer's cancellation passes",
        "engine.scorers.runner",
        "        except BaseException as error:  # noqa: BLE001  (its own: nothing was waited for)\n"
        "            return self.quarantine(PluginFailed(self.stream, error))\n",
        "",
        "session",
    ),
    Mutant(
        "a scorer that failed goes on",
        "engine.scorers.runner",
        "        self.observer = None\n        return error",
        "        return error",
        "session",
    ),
    Mutant(
        "what a callback raises passes",
        "telemetry.live_updates",
        "            with PluginCall(name):\n                result = callback(update)\n"
        "                if inspect.isawaitable(result):\n                    await result\n",
        "            result = callback(update)\n"
        "            if inspect.isawaitable(result):\n                await result\n",
        "product",
    ),
    Mutant(
        "what a consumer raises passes",
        "engine.log.consumer",
        '            with PluginCall(f"consumer {consumer.name!r}"):\n'
        "                outputs = await consumer.consume(records)\n",
        "            outputs = await consumer.consume(records)\n",
        "product",
    ),
    Mutant(
        "a measurement that the hook refuses is missing without a word",
        "engine.scorers.runner",
        "        except (CodecError, DuplicateConflict, InvalidInput, PluginFailed) as error:",
        "        except (CodecError, DuplicateConflict, InvalidInput) as error:",
        "product",
    ),
    Mutant(
        "who shows progress ends the product",
        "engine.log.exchange.jsonl_export",
        '        with PluginCall("progress"):\n            progress(count)\n',
        "        progress(count)\n",
        "product",
    ),
    Mutant(
        "an update is delivered twice",
        "telemetry.live_updates",
        "        self._held = None\n        self._delivered += 1",
        "        self._held = None if self._delivered % 5 else update\n"
        "        self._delivered += 1",
        "product",
    ),
    Mutant(
        "who is refused and gone leaves an error",
        SERVER,
        "        except OSError:  # the client is gone already",
        "        except ZeroDivisionError:",
        "network",
    ),
    Mutant(
        "connections are never discarded",
        SERVER,
        "        self._clients[connection.client] -= 1",
        "        self._clients[connection.client] -= 0",
        "network",
    ),
    Mutant(
        "a request that does not arrive is waited for",
        SERVER,
        "call_later(self._patience, self._transport.abort)",
        "call_later(1e9, self._transport.abort)",
        "network",
    ),
    Mutant(
        "the body of a client that has left is counted for ever",
        "interop.http.bodies",
        "            self._buffered -= kept\n",
        "            kept = 0\n",
        "network",
    ),
    Mutant(
        "a body that was taken is counted for ever",
        "interop.http.bodies",
        "        self._buffered -= len(data)\n",
        "        pass\n",
        "network",
    ),
    Mutant(
        "ids of posts are lost",
        "interop.http.trace_writer",
        "draft.time, draft.id, draft.seen)",
        "draft.time, None, draft.seen)",
        "network",
    ),
    Mutant(
        "an expected version is not compared by the server",
        "interop.http.trace_writer",
        "        if expected is not None and expected != state.version:",
        "        if False:",
        "network",
    ),
    Mutant(
        "a stream goes on one record late",
        "interop.http.app",
        '        return _number(last, "Last-Event-ID")',
        '        return _number(last, "Last-Event-ID") + 1',
        "network",
    ),
    Mutant(
        "a stream begins anew where it was cut",
        "interop.http.app",
        '    if last := request.headers.get("last-event-id"):',
        '    if last := "":',
        "network",
    ),
    Mutant(
        "a page is cut one record early",
        "interop.http.app",
        "            after = record.position\n            page.append",
        "            after = record.position + 1\n            page.append",
        "network",
    ),
    Mutant(
        "a fork of the process goes on reading",
        SQLITE + "tail",
        "        self._process.check(self._url)\n",
        "",
    ),
    Mutant(
        "a fork of the process appends",
        "engine.log.stored",
        '        if self._state != "open" or not self._backend.writable or self._process.forked:',
        '        if self._state != "open" or not self._backend.writable:',
    ),
    Mutant(
        "nobody waits for another process",
        SQLITE + "file",
        "            if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= until:",
        "            if True:",
    ),
    Mutant(
        "an id that comes again with other contents is acknowledged and dropped",
        "engine.log.decide",
        "        if record.stream != append.stream or not same(record, envelope):",
        "        if False:",
        "memory",
    ),
    Mutant(
        "in a file, an id that comes again with other contents is acknowledged and dropped",
        "engine.log.decide",
        "        if record.stream != append.stream or not same(record, envelope):",
        "        if False:",
    ),
    Mutant(
        "an id that comes again in another stream is acknowledged and dropped",
        "engine.log.decide",
        "        if record.stream != append.stream or not same(record, envelope):",
        "        if not same(record, envelope):",
        "memory",
    ),
    Mutant(
        "an append of which a part is there is acknowledged and dropped",
        "engine.log.decide",
        "    if len(there) < len(append.envelopes):",
        "    if False:",
        "memory",
    ),
    Mutant(
        "a subscriber that leaves a session silences the others of it",
        "engine.log.publisher",
        "            others.pop(subscription, None)\n            if not others:\n",
        "            others.pop(subscription, None)\n            if True:\n",
        "memory",
    ),
    Mutant(
        "in a file, a subscriber that leaves a session silences the others of it",
        "engine.log.publisher",
        "            others.pop(subscription, None)\n            if not others:\n",
        "            others.pop(subscription, None)\n            if True:\n",
    ),
    Mutant(
        "a redelivered append does not move its checkpoint",
        "engine.log.decide",
        "        _move(append.checkpoint, known, decided, redelivered=True)\n",
        "",
        "memory",
    ),
    Mutant(
        "a redelivered append moves its checkpoint wherever it is",
        "engine.log.decide",
        "    if redelivered and actual == advance.position:\n        return\n    if actual",
        "    if not redelivered and actual",
        "memory",
    ),
    Mutant(
        "forgetting leaves bodies in forks",
        "engine.log.memory",
        "        for name in family:  # grows by the forks of each",
        "        for name in ():",
        "memory",
    ),
    Mutant(
        "in a file, forgetting leaves bodies in forks",
        SQLITE + "maintenance",
        "ON fork.origin = family.session",
        "ON fork.origin = family.session AND 0",
    ),
    Mutant(
        "forgetting leaves bodies in what is read for a subscription meanwhile",
        "engine.log.subscriptions",
        "        self._buffer.extend(_erased(records, source.erased))",
        "        self._buffer.extend(records)",
    ),
    Mutant(
        "forgetting leaves bodies in what waits for a subscription that catches up",
        "engine.log.subscriptions",
        "        self._ahead = list(_erased(self._ahead, sessions))\n",
        "",
        "memory",
    ),
    Mutant(
        "forgetting leaves bodies in what waits for a subscription",
        "engine.log.subscriptions",
        "        self._buffer = deque(_erased(self._buffer, sessions))\n        self._ahead",
        "        self._ahead",
        "memory",
    ),
    Mutant(
        "forgetting is not told to those who follow a file",
        "engine.log.stored",
        "        self._backend.publisher.erase(frozenset(sessions))\n",
        "",
    ),
    Mutant(
        "a copy keeps what was forgotten while it was made",
        "engine.log.exchange.copying",
        "            if state != FORGOTTEN or await _holds_bodies(target, session):",
        "            if state != FORGOTTEN:",
        "memory",
    ),
    Mutant(
        "a follower is one position ahead of what is processed",
        "engine.log.follower",
        "            return first - 1\n",
        "            return first\n",
        "memory",
    ),
    Mutant(
        "a follower that begins again leaves one record out",
        "engine.log.follower",
        "            self._taken = self._checkpoint or self._taken",
        "            self._taken = self._checkpoint + 1 if self._checkpoint else self._taken",
        "memory",
    ),
    Mutant(
        "a checkpoint moves with the first of several outputs",
        "engine.log.follower",
        "                moved = advance if output is outputs[-1] else None",
        "                moved = advance if output is outputs[0] else None",
        "memory",
    ),
    Mutant(
        "in a file, a checkpoint moves with the first of several outputs",
        "engine.log.follower",
        "                moved = advance if output is outputs[-1] else None",
        "                moved = advance if output is outputs[0] else None",
    ),
    Mutant(
        "a subscription that is live is not woken",
        "engine.log.subscriptions",
        "            self._cursor = records[-1].position\n            self._waiter.wake()",
        "            self._cursor = records[-1].position",
        "memory",
    ),
    Mutant(
        "who waits for room is not woken",
        "engine.log.append_writer",
        "            append.settle()\n        self.give_room()",
        "            append.settle()",
    ),
    Mutant(
        "who waits for a follower to settle is not woken",
        "engine.log.follower",
        "        if self._settlers:\n            self._notify()",
        "        if self._settlers:\n            pass",
        "memory",
    ),
    Mutant(
        "an unknown outcome is taken as written",
        SQLITE + "file",
        '        raise OutcomeUnknown(\n            f"{where}: the disk failed while',
        '        return\n        raise OutcomeUnknown(\n            f"{where}: the disk failed while',
    ),
    Mutant(
        "an unknown outcome is taken as not written",
        SQLITE + "file",
        "        if _primary(error) in _NOT_WRITTEN:\n            raise\n        raise OutcomeUnknown(",
        "        if True:\n            raise\n        raise OutcomeUnknown(",
    ),
    Mutant(
        "a lease is given to whoever asks",
        SQLITE + "leases",
        "WHERE holder = excluded.holder OR claimed + leases.seconds <= :now OR claimed > :now",
        "WHERE 1",
    ),
    Mutant(
        "a lease is not renewed",
        "engine.log.leases",
        "                kept = await self._leases.claim(names, self.name, self._terms.lasts)",
        "                kept = frozenset(names)",
    ),
    Mutant(
        "damage of a body is not found",
        "engine.log.integrity.verify",
        "        elif crc != checksum_of(record):",
        "        elif False:",
    ),
)


def mutated(source: str, mutant: Mutant) -> str:
    """The source with the mutant's change.

    Raises:
        ValueError: the words that it replaces are not there once.
    """
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.what}: not once in {mutant.module}: {mutant.old!r}")
    return source.replace(mutant.old, mutant.new)
