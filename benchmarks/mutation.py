"""Generates mutants of the engine, and says which of a seeded sample the simulator and the tests notice.

    python -P -m duolog.benchmarks.mutation --sample 20            by the simulator alone
    python -P -m duolog.benchmarks.mutation --sample 20 --tests    then by the tests of the package
    python -P -m duolog.benchmarks.mutation --show 17              one mutant of the sample, as a diff

A mutant differs in one place: a comparison, a constant, an operator, the order of two statements, a call that
is left out, or two arguments that are swapped. Messages, annotations and ``__all__`` stay as they are.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from duolog.benchmarks.mutants import Mutant

__all__ = ("SCOPES", "Change", "Verdict", "changes_in", "sample")

ROOT = Path(__file__).resolve().parent.parent
SCOPES = {
    "engine/log": ("memory", "sqlite"),
    "telemetry": ("product", "sqlite"),
    "scoring/trajectory": ("product", "session"),
    "engine/session": ("session",),
}
"""The packages that are changed, and the stores of the simulator that run their code."""

_LEFT_OUT = ("postgres", "contract.py", "__init__.py")  # no simulated run reaches these
_SEED = "DUOLOG_MUTANT_SEED"
_NUMBER = "DUOLOG_MUTANT"
_COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+"}


class Change(NamedTuple):
    """One place of a module, and what is put there.

    Attributes:
        path: of the module, from the root.
        line: where it is.
        what: the kind of change.
        begin: of the stretch that is replaced, in characters.
        end: of the stretch.
        new: what is put in its place.
    """

    path: str
    line: int
    what: str
    begin: int
    end: int
    new: str

    def mutant(self, store: str) -> Mutant:
        """The change as the hunt takes it."""
        source = (ROOT / self.path).read_text(encoding="utf-8")
        module = self.path.removesuffix(".py").replace("/", ".")
        changed = source[: self.begin] + self.new + source[self.end :]
        return Mutant(f"{self.path}:{self.line}, {self.what}", module, source, changed, store)


class Verdict(NamedTuple):
    """What noticed a mutant: ``simulator``, ``tests``, or nothing; and after how long."""

    by: str
    seconds: float
    failure: str


def changes_in(path: str, source: str) -> Iterator[Change]:
    """All changes of a module, in order."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.splitlines()

    def at(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)

    for node in _reached(ast.parse(source)):
        for what, begin, end, new in _edits(node, source, span):
            yield Change(path, node.lineno, what, begin, end, new)


def _reached(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    """The nodes that may be changed: what runs when the program does."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
            continue
        if isinstance(node, ast.Call) and "log" in ast.unparse(node.func).lower().split(".")[0:1]:
            continue
        if isinstance(node, ast.expr | ast.stmt):
            yield node
        skipped: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign):
            skipped = [node.annotation]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            skipped = [node.returns, node.args, *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            skipped = [*node.bases, *node.decorator_list, *(one.value for one in node.keywords)]
        waiting += [child for child in ast.iter_child_nodes(node) if child not in skipped]


def _edits(node: ast.expr | ast.stmt, source: str, span) -> Iterator[tuple[str, int, int, str]]:  # type: ignore[no-untyped-def]  # noqa: ANN001, C901  (one branch for each kind of change)
    begin, end = span(node)
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            between = span(left)[1], span(right)[0]
            if "(" not in source[slice(*between)] and ")" not in source[slice(*between)]:
                yield "comparison", *between, f" {_COMPARED[type(op)]} "
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
            between = span(left)[1], span(right)[0]
            if "(" not in source[slice(*between)] and ")" not in source[slice(*between)]:
                yield "operator", *between, f" {_COMPUTED[type(op)]} "
        case ast.UnaryOp(op=ast.Not()):
            yield "negation", begin, begin + len("not "), ""
        case ast.BoolOp(op=op, values=[first, second, *_]):
            between = span(first)[1], span(second)[0]
            words = source[slice(*between)].split()
            other = {"and": "or", "or": "and"}
            if len(words) == 1 and len(node.values) == 2:
                yield "operator", *between, f" {other[words[0]]} "
        case ast.Constant(value=bool(value)):
            yield "constant", begin, end, str(not value)
        case ast.Constant(value=int(value)):
            yield "constant", begin, end, str(value + 1)
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield "call left out", begin, end, "pass"
        case ast.Call(
            args=[ast.Name() | ast.Attribute() as first, ast.Name() | ast.Attribute() as second, *_]
        ):
            one, two = span(first), span(second)
            swapped = source[slice(*two)] + source[one[1] : two[0]] + source[slice(*one)]
            yield "arguments swapped", one[0], two[1], swapped
    for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
        for first, second in (
            zip(body or (), (body or ())[1:], strict=False) if isinstance(body, list) else ()
        ):
            if isinstance(first, _SIMPLE) and isinstance(second, _SIMPLE) and not _is_text(first):
                one, two = span(first), span(second)
                swapped = source[slice(*two)] + source[one[1] : two[0]] + source[slice(*one)]
                yield "statements swapped", one[0], two[1], swapped


_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def sample(seed: int, count: int) -> list[Change]:
    """Changes drawn from all that there are; a longer sample begins with a shorter one of its seed."""
    every: list[Change] = []
    for scope in SCOPES:
        for path in sorted((ROOT / scope).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if not any(part in name for part in _LEFT_OUT):
                every += changes_in(name, path.read_text(encoding="utf-8"))
    random.Random(seed).shuffle(every)
    return every[:count]


def _stores(change: Change) -> Sequence[str]:
    return next(stores for scope, stores in SCOPES.items() if change.path.startswith(scope))


def _judge(number: int, seed: int, runs: int, *, tests: bool) -> Verdict:
    """What notices a mutant of the sample."""
    began = time.perf_counter()
    change = sample(seed, number + 1)[number]
    environment = os.environ | {_SEED: str(seed), _NUMBER: str(number)}
    command = [sys.executable, "-P", "-m", __spec__.name, "--hunt", str(runs)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        said, missed = (done.stdout + done.stderr).strip(), done.returncode == 0
    except subprocess.TimeoutExpired:
        said, missed = "it never ends", False
    if not missed:
        return Verdict(
            "simulator", time.perf_counter() - began, said.splitlines()[-1] if said else ""
        )
    if tests:
        folder = next(scope for scope in SCOPES if change.path.startswith(scope))
        command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-n", "0", "-p", __spec__.name]
        command += ["-p", "no:cacheprovider", "--timeout", "300", f"tests/{folder}"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = [
                line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
            ]
            return Verdict("tests", time.perf_counter() - began, lines[-1] if lines else "")
    return Verdict("", time.perf_counter() - began, "")


def _chosen() -> Change | None:
    """The mutant that this process is to be."""
    number = os.environ.get(_NUMBER)
    return None if number is None else sample(int(os.environ[_SEED]), int(number) + 1)[-1]


def _hunt(change: Change, runs: int) -> int:
    """Runs the simulator on a mutant; 1 if it notices."""
    from duolog.testing.simulator.scenario import STORES, draw
    from duolog.testing.simulator.stage import prepared

    with prepared() as stage:
        for store in STORES:
            for seed in range(runs if store in _stores(change) else 0):
                outcome = stage.run(draw(store, seed))
                if outcome.failure:
                    print(f"{store} {seed}: {outcome.failure}")
                    return 1
    return 0


def main() -> int:
    """Judges a sample, and prints it as a table with the share that was noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=20, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--runs", type=int, default=300, help="of the simulator, for each store")
    parser.add_argument("--tests", action="store_true", help="run the tests on those that survive")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--show", type=int, help="one mutant as a diff")
    parser.add_argument("--hunt", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hunt is not None:
        change = _chosen()
        assert change is not None
        return _hunt(change, options.hunt)
    drawn = sample(options.seed, options.sample)
    if options.show is not None:
        mutant = drawn[options.show].mutant("")
        diff = difflib.unified_diff(
            mutant.old.splitlines(), mutant.new.splitlines(), lineterm="", n=2
        )
        print(mutant.what, *list(diff)[2:], sep="\n")
        return 0
    print("| | mutant | noticed by | seconds |\n|---|---|---|---|")
    found = {"simulator": 0, "tests": 0, "": 0}
    judge = partial(_judge, seed=options.seed, runs=options.runs, tests=options.tests)
    with ThreadPoolExecutor(options.processes) as pool:
        for number, verdict in enumerate(pool.map(judge, range(len(drawn)))):
            found[verdict.by] += 1
            what = f"{drawn[number].path}:{drawn[number].line}, {drawn[number].what}"
            print(
                f"| {number} | {what} | {verdict.by or 'nothing'} | {verdict.seconds:.0f} |",
                flush=True,
            )
    both = len(drawn) - found[""]
    print(f"\n{found['simulator']} of {len(drawn)} by the simulator, {both} by both")
    return 0


def _become() -> None:
    """Has this process import the mutant instead of the module."""
    change = _chosen()
    if change is not None:
        from duolog.benchmarks.mutant_hunt import Finder

        sys.meta_path.insert(0, Finder(change.mutant("")))


_become()

if __name__ == "__main__":
    raise SystemExit(main())
