"""The simulator of logs: seeds that must hold, and that it finds what does not."""

from __future__ import annotations

import gc
import importlib.util
import inspect
import sys
import threading
import warnings
from pathlib import Path
from types import CodeType, ModuleType

import msgspec
import pytest
from duolog.engine.log.memory import MemoryLog
from duolog.engine.log.subscriptions import BufferedSubscription
from duolog.engine.log.summary import SessionState
from duolog.testing import check_log_in_simulation
from duolog.testing.simulator.campaign import command, run_seeds
from duolog.testing.simulator.machine.vfs import UnsupportedSqlite, intercepted
from duolog.testing.simulator.scenario import PLUG_INS, Fault, Store, draw
from duolog.testing.simulator.stage import prepared
from duolog.testing.simulator.watchdog import watchdog


def needs_sqlite() -> None:
    try:
        with intercepted(lambda: None):
            pass
    except UnsupportedSqlite as error:
        pytest.skip(str(error))


def test_a_log_in_memory_keeps_its_word() -> None:
    campaign = run_seeds("memory", range(130))
    assert campaign.failures == ()
    assert set(campaign.happened) == {"cancel", "hook", "clock"}


@pytest.mark.slow
def test_a_log_in_a_file_keeps_its_word() -> None:
    needs_sqlite()
    campaign = run_seeds("sqlite", range(130, 166))
    assert campaign.failures == ()
    faults = {"cancel", "hook", "kill", "power", "torn", "write", "sync", "lie", "full", "read"}
    assert set(campaign.happened) >= faults | {"slow", "pause"}


def test_sessions_end_as_they_would_have() -> None:
    campaign = run_seeds("session", range(16))
    assert campaign.failures == ()
    assert set(campaign.happened) == {"kill", "cancel", "policy", "scorer"}


def test_what_runs_leave_behind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = []
    take = MemoryLog._take

    def hoarding(self: MemoryLog, append: object) -> object:
        kept.append([append])
        return take(self, append)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryLog, "_take", hoarding)
    [failure] = run_seeds("memory", range(500)).failures
    assert failure.what.startswith("what the process holds grew from")


@pytest.mark.slow
def test_a_product_bears_whatever_its_plug_ins_raise() -> None:
    campaign = run_seeds("product", range(16))
    assert campaign.failures == ()
    assert set(campaign.happened) >= set(PLUG_INS) - {"on_stop"} | {"cancel"}


@pytest.mark.slow
def test_a_server_and_its_clients_agree_on_a_network_that_fails() -> None:
    campaign = run_seeds("network", range(40))
    assert campaign.failures == ()
    on_links = {"cut", "vanish", "delay", "stop"}
    assert set(campaign.happened) == on_links | {"half", "twice", "left", "late", "mute", "storm"}


def test_a_run_that_does_not_end_is_ended_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    ended = threading.Event()
    with (
        watchdog(0.0, lambda code: ended.set()) as watch,
        watch.over(lambda: "the command that repeats it"),
    ):
        assert ended.wait(300)
    told = capsys.readouterr().err
    assert "repeat it: the command that repeats it" in told
    assert "test_a_run_that_does_not_end" in told


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_fresh_seeds(seed: int) -> None:
    counts: dict[Store, int] = {
        "memory": 20_000,
        "sqlite": 2000,
        "session": 500,
        "product": 500,
        "network": 1000,
    }
    for store, count in counts.items():
        first = seed * 1_000_000
        failures = run_seeds(store, range(first, first + count)).failures
        assert [(command(each.scenario), each.what) for each in failures] == []


@pytest.mark.parametrize("store", ["memory", "session"])
def test_processes_that_are_killed_leave_no_coroutine_that_nobody_awaits(store: Store) -> None:
    with warnings.catch_warnings(record=True) as warned, prepared() as stage:
        warnings.simplefilter("always")
        for seed in range(25):
            stage.run(draw(store, seed))
        gc.collect()
    assert [str(each.message) for each in warned if each.category is RuntimeWarning] == []


def test_one_seed_is_one_run() -> None:
    needs_sqlite()
    with prepared() as stage:
        for seed in (2, 5):
            assert stage.run(draw("sqlite", seed)) == stage.run(draw("sqlite", seed))


def test_a_failure_is_cut_down_to_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions that take nothing live: one append and one that follows show it."""
    monkeypatch.setattr(BufferedSubscription, "offer", lambda self, records: None)
    failures = run_seeds("memory", range(0, 80, 2)).failures  # those that end without a drill
    assert failures
    for failure in failures:
        kinds = [each.kind for each in failure.scenario.operations]
        assert 2 <= len(kinds) <= 3  # one that only takes time may be needed
        assert {"follow", "copy", "reader", "relay"} & set(kinds)
        assert failure.scenario.faults == ()
        words = command(failure.scenario)
        assert f"--seed {failure.scenario.seed}" in words
        fewer = len(kinds) < len(draw("memory", failure.scenario.seed).operations)
        assert ("--operations " in words) == fewer


def test_an_acknowledged_append_that_is_gone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = MemoryLog._take

    def forgetful(self: MemoryLog, append: object) -> object:
        records = take(self, append)  # type: ignore[arg-type]
        if len(self._records) > 5:
            del self._records[-1]
        return records

    monkeypatch.setattr(MemoryLog, "_take", forgetful)
    found = [failure.what for failure in run_seeds("memory", range(40)).failures]
    assert [what for what in found if "is there in part" in what or "is not there" in what]


@pytest.mark.slow
def test_the_power_goes_at_each_operation_of_the_disk() -> None:
    needs_sqlite()
    scenario = draw("sqlite", 7)
    ends: set[tuple[str, ...]] = set()
    with prepared() as stage:
        for at in range(1, 80, 12):
            cut = msgspec.structs.replace(scenario, faults=(Fault("power", at, 0),))
            outcome = stage.run(cut)
            assert outcome.failure == "", at
            ends.add(outcome.happened)
    assert ("power",) in ends


# --- stores of others ---------------------------------------------------------------------------


def test_another_store_is_held_to_the_same() -> None:
    check_log_in_simulation(MemoryLog, runs=60)


def test_another_store_that_breaks_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionState, "refuses", lambda self, append: False)
    with pytest.raises(
        AssertionError, match=r"(?s)seed \d+: .* (and is there|after its close) .*: (forget|close)"
    ):
        check_log_in_simulation(MemoryLog, runs=60)


# --- mutants --------------------------------------------------------------------------------------


@pytest.fixture
def mutants(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", root / "benchmarks" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


def test_mutants_change_what_is_there(mutants: ModuleType, root: Path) -> None:
    assert len(mutants.MUTANTS) >= 30
    for mutant in mutants.MUTANTS:
        path = root / f"{mutant.module.replace('.', '/')}.py"
        compile(mutants.mutated(path.read_text(encoding="utf-8"), mutant), str(path), "exec")


@pytest.mark.parametrize(
    "what",
    [
        "an id that comes again with other contents is acknowledged and dropped",
        "a subscriber that leaves a session silences the others of it",
        "a redelivered append does not move its checkpoint",
        "forgetting leaves bodies in forks",
        "forgetting leaves bodies in what waits for a subscription that catches up",
        "a follower is one position ahead of what is processed",
        "a checkpoint moves with the first of several outputs",
        "a subscription that is live is not woken",
    ],
)
def test_a_bug_that_was_put_into_the_engine_is_found(
    mutants: ModuleType, root: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    [mutant] = [each for each in mutants.MUTANTS if each.what == what]
    module = importlib.import_module(f"duolog.{mutant.module}")
    source = (root / f"{mutant.module.replace('.', '/')}.py").read_text(encoding="utf-8")
    codes = _codes(compile(source, "", "exec"))
    changed = _codes(compile(mutants.mutated(source, mutant), "", "exec"))
    for name, code in changed.items():
        if code != codes[name]:
            function: object = module
            for part in name.split("."):
                function = getattr(function, part)
            function = function.fget if isinstance(function, property) else function
            monkeypatch.setattr(function, "__code__", code)
    with prepared() as stage:
        assert any(stage.run(draw("memory", seed)).failure for seed in range(200))


def _codes(code: CodeType) -> dict[str, CodeType]:
    """The code of each function of a module, by its qualified name."""
    found: dict[str, CodeType] = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            function = each.co_flags & inspect.CO_OPTIMIZED
            found |= {each.co_qualname: each} if function else _codes(each)
    return found
