"""How long whole calls of the command line take, the interpreter's start included.

    python bench/cli.py [--memories 300] [--runs 15] [--json]

Each command runs in a process of its own on a small store; p50 and p95 of the wall time, the
processes' own CPU time, and the peak memory of the largest of all. A `hook` is one prompt of a host: its
CPU time is that of the short process, and in parentheses that of the background process for it. `mcp` is the
time until a host that starts the server has the answer to its `initialize`. Python has to
be allowed to keep what it compiles (PYTHONDONTWRITEBYTECODE unset), as it is where the package is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from corpus import drafts

import germane

_QUESTION = "What did we decide about the login retry?"
_KNOWN = "ID"
"""Stands for the id of a memory that is in the store."""
_COMMANDS: dict[str, tuple[str, ...]] = {
    "--help": ("--help",),
    "db stats": ("db", "stats"),
    "recall": ("recall", _QUESTION),
    "assemble": ("assemble", _QUESTION, "--budget", "2000"),
    "context explain": ("context", "explain", _QUESTION, "--budget", "2000"),
    "remember": ("remember", "The login service retries three times."),
    "memory show": ("memory", "show", _KNOWN),
    "memory forget": ("memory", "forget", _KNOWN),
}
_PROMPTS = ("Why did the login retry change?", "Go ahead.", "Which cache do we use?", "What is the deadline?")


def main() -> None:
    """Time every command and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=300)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "small.db")
        with germane.open(store, agent="default") as engine:
            known = engine.remember_many(drafts(given.memories))[0].memory.id
        figures = {
            "(python alone)": _timed([sys.executable, "-c", "pass"], given.runs),
            **{name: _timed(_command(store, known, *words), given.runs) for name, words in _COMMANDS.items()},
            **_hooks(store, Path(folder), given.runs),
            "mcp": _first_answers(_command(store, "", "mcp"), given.runs),
        }
    peak = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1)
    if given.json:
        print(json.dumps({"memories": given.memories, "ms": figures, "peak_mb": peak}))
        return
    print(f"{given.memories} memories, {given.runs} runs, ms of wall time; peak memory {peak:.0f} MB")
    print(f"{'':18}{'p50':>8}{'p95':>8}{'CPU p50':>9}")
    for name, each in figures.items():
        behind = f" ({each['background_cpu']:.0f})" if "background_cpu" in each else ""
        print(f"{name:18}{each['p50']:>8.0f}{each['p95']:>8.0f}{each['cpu_p50']:>9.0f}{behind}")


def _command(store: str, known: str, *words: str) -> list[str]:
    words = tuple(known if word == _KNOWN else word for word in words)
    shared = [] if words == ("--help",) else ["--db", store]
    return [sys.executable, "-m", "germane", *words, *shared]


def _hooks(store: str, folder: Path, runs: int) -> dict[str, dict[str, float]]:
    """The time of the short process per prompt, and what the background process takes for one."""
    if not Path("/proc/self/stat").exists():
        return {}
    os.environ["XDG_CACHE_HOME"] = str(folder)
    command = [*_command(store, "", "hook"), "--idle", "30", "--deadline", "60"]
    events = [
        json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt})
        for prompt in _PROMPTS
    ]
    for event in events[-1:] + events[-1:]:  # The first starts the background process.
        subprocess.run(command, check=True, input=event, text=True, stdout=subprocess.DEVNULL)  # noqa: S603 - As below.
    (server,) = [
        int(each.name)
        for each in Path("/proc").iterdir()
        if each.name.isdigit() and str(folder / "germane").encode() in _arguments(each)
    ]
    before = _processor_seconds(server)
    figures = _timed(command, runs, events)
    worked = 1000 * (_processor_seconds(server) - before) / (runs + 1)
    os.kill(server, signal.SIGTERM)
    return {"hook": {**figures, "background_cpu": round(worked, 1)}}


def _first_answers(command: Sequence[str], runs: int) -> dict[str, float]:
    """The time until a server of MCP has answered its first message."""
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
    taken, busy = [], []
    for _ in range(runs + 1):
        before = perf_counter()
        with subprocess.Popen(  # noqa: S603 - this very interpreter.
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            print(message, file=server.stdin, flush=True)
            answer = server.stdout.readline()
            taken.append(1000 * (perf_counter() - before))
            busy.append(1000 * _processor_seconds(server.pid) if Path("/proc/self/stat").exists() else 0.0)
            assert json.loads(answer)["result"]["serverInfo"]["name"] == "germane"
            server.terminate()
    return _percentiles(taken, busy)


def _arguments(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # It has ended.
        return b""


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _timed(command: Sequence[str], runs: int, inputs: Sequence[str] = ("",)) -> dict[str, float]:
    taken, busy = [], []
    for run in range(runs + 1):
        before, worked = perf_counter(), _children()
        given, quiet = inputs[run % len(inputs)].encode(), subprocess.DEVNULL
        subprocess.run(command, check=True, input=given, stdout=quiet, stderr=quiet)  # noqa: S603 - this very interpreter.
        taken.append(1000 * (perf_counter() - before))
        busy.append(1000 * (_children() - worked))
    return _percentiles(taken, busy)


def _percentiles(taken: Sequence[float], busy: Sequence[float]) -> dict[str, float]:
    # The first run fills the file cache.
    return {
        "p50": round(float(np.percentile(taken[1:], 50)), 1),
        "p95": round(float(np.percentile(taken[1:], 95)), 1),
        "cpu_p50": round(float(np.percentile(busy[1:], 50)), 1),
    }


def _children() -> float:
    """CPU seconds of all finished children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
