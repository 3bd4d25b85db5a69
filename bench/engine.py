"""How fast remember, recall, assemble and maintain are, cold and warm, by size; memory and file size.

    python bench/engine.py [--sizes 1000,10000,100000] [--questions 200] [--json]

Each size is measured in a process of its own, so that its peak memory is its own. Cold is the first
call of a fresh process on a file that another process wrote; the machine's file cache stays warm.
Warm is a process that has answered as many other questions before.
CPU is the process's own time, which tells more than the clock where other work shares the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Literal

import numpy as np
from corpus import NOW, drafts, questions

import germane

_AGENT = "bench"
_OTHER = 12
_SINGLES = 200
_BATCH = 1000
_COLD_RUNS = 5
_BUDGET = 8000
_CALLS: dict[str, Callable[[germane.Engine, str], object]] = {
    "recall": lambda engine, question: engine.recall(question, limit=10),
    "assemble layered": lambda engine, question: engine.assemble(question, budget=_BUDGET),
    "assemble relevance": lambda engine, question: engine.assemble(
        question, budget=_BUDGET, plan="relevance"
    ),
}


def main() -> None:
    """Measure every size and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=["write", "warm", "cold", "maintain"], help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--call", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        steps = {"write": _write, "warm": _warm, "cold": _cold, "maintain": _maintain}
        print(json.dumps(steps[given.step](given)))
        return
    results = [measured(int(size), given.questions) for size in given.sizes.split(",")]
    print(json.dumps({"results": results}, indent=2) if given.json else table(results))


def measured(size: int, count: int) -> dict[str, Any]:
    """Every figure of one size."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "bench.db")
        common = ["--file", file, "--questions", str(count), "--sizes", str(size)]
        result = {"memories": size, **_step("write", *common)}
        result["warm"] = _step("warm", *common)
        result["cold"] = {
            call: _figures([_step("cold", *common, "--call", call)["ms"] for _ in range(_COLD_RUNS)])
            for call in _CALLS
        }
        # At last, since it changes what is stored.
        return result | _step("maintain", *common)


def _step(step: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--step", step, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this very script.
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _write(given: argparse.Namespace) -> dict[str, Any]:
    """Fill the file: all but the last few in batches, those one durable call each."""
    size = int(given.sizes)
    made = drafts(size)
    batched = list(islice(made, size - min(_SINGLES, size // 2)))
    with _open(given.file) as engine:
        started = perf_counter()
        for start in range(0, len(batched), _BATCH):
            engine.remember_many(batched[start : start + _BATCH])
        seconds = perf_counter() - started
        singles = []
        for draft in made:
            before = perf_counter()
            engine.remember_many([draft])
            singles.append(1000 * (perf_counter() - before))
        stored = engine.stats()
        assert stored.memories == size, stored
    return {
        "remember_many_per_second": round(len(batched) / seconds),
        "remember": _figures(singles),
        "file_mb": round(stored.bytes / 1e6, 1),
        "write_peak_mb": _peak_mb(),
    }


def _warm(given: argparse.Namespace) -> dict[str, Any]:
    queries = questions(given.questions)
    figures: dict[str, Any] = {}
    with _open(given.file) as engine:
        for name, call in _CALLS.items():
            for question in questions(given.questions, seed=_OTHER):
                call(engine, question)
            taken, busy = [], []
            for question in queries:
                before, worked = perf_counter(), process_time()
                call(engine, question)
                taken.append(1000 * (perf_counter() - before))
                busy.append(1000 * (process_time() - worked))
            figures[name] = _figures(taken)
            figures[f"{name}, CPU"] = _figures(busy)
    return {**figures, "peak_mb": _peak_mb()}


def _cold(given: argparse.Namespace) -> dict[str, Any]:
    """The first call, opening included, imports not."""
    question = questions(1)[0]
    before = perf_counter()
    with _open(given.file) as engine:
        _CALLS[given.call](engine, question)
        return {"ms": 1000 * (perf_counter() - before)}


def _maintain(given: argparse.Namespace) -> dict[str, Any]:
    """The first upkeep: seconds by the clock and of the processor, and how many steps were due."""
    with _open(given.file) as engine:
        before, used = perf_counter(), process_time()
        steps = engine.maintain().steps
        seconds, cpu = perf_counter() - before, process_time() - used
        return {"maintain": {"seconds": round(seconds, 2), "cpu": round(cpu, 2), "steps": len(steps)}}


def _open(file: str) -> germane.Engine:
    # As on the command line, GERMANE_EMBEDDER=none measures words alone.
    embedder: Literal["bundled"] | None = None if os.environ.get("GERMANE_EMBEDDER") == "none" else "bundled"
    return germane.open(file, agent=_AGENT, embedder=embedder, clock=lambda: NOW)


def _figures(milliseconds: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": round(float(np.percentile(milliseconds, percent)), 3) for percent in (50, 95)}


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def table(results: Sequence[dict[str, Any]]) -> str:
    """The figures of several sizes beside each other."""
    rows = [["", *(f"{result['memories']:,}" for result in results)]]
    rows.append(["remember_many, per second", *(f"{r['remember_many_per_second']:,}" for r in results)])
    rows.append(["remember, ms", *(_shown(result["remember"]) for result in results)])
    rows.extend(
        [f"{call}, {state}, ms", *(_shown(result[state][call]) for result in results)]
        for state in ("warm", "cold")
        for call in results[0][state]
        if call != "peak_mb"
    )
    upkeep = ("{seconds:.2f} / {cpu:.2f}".format(**result["maintain"]) for result in results)
    rows.append(["maintain, s by the clock / of CPU", *upkeep])
    rows.append(["peak memory of a reader, MB", *(f"{result['warm']['peak_mb']:.0f}" for result in results)])
    rows.append(["file, MB", *(f"{result['file_mb']:.1f}" for result in results)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return f"p50 / p95; assemble at {_BUDGET:,} tokens\n" + "\n".join(lines)


def _shown(figures: dict[str, float]) -> str:
    return f"{figures['p50']:.2f} / {figures['p95']:.2f}"


if __name__ == "__main__":
    main()
