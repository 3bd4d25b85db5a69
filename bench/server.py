"""What `germane serve` takes: one client's time beside the in-process call, and many clients at once.

    python bench/server.py [--memories 10000] [--clients 64] [--seconds 60] [--rounds 300]
                           [--databases sqlite,postgres] [--skip-load]

For each database, with its server in a process of its own: first one client on one connection, by turns with
the same call in this process and with `GET /healthz`, a route that does nothing; "overhead" is the difference
of the medians, in time and in processor time of the process, which other programs hardly disturb. Then so
many clients send what an agent does (of ten requests six recalls, three assemblies and one new memory) for so
many seconds, beside as many threads that call the engine in this process, and as many clients of `/healthz`,
for a sixth of the time each. Questions are all different. PostgreSQL is started for it. Times are
milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count, cycle
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from corpus import drafts, questions

import germane

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.http_server import Serving, serving
from support.postgres_server import Server

__all__ = ["main"]

Times: TypeAlias = Mapping[str, Sequence[float]]

_BUDGET = 1000
_SHARES = ("recall",) * 6 + ("assemble",) * 3 + ("remember",)


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--memories", type=int, default=10_000)
    arguments.add_argument("--clients", type=int, default=64)
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--rounds", type=int, default=300)
    arguments.add_argument("--databases", default="sqlite,postgres")
    arguments.add_argument("--skip-load", action="store_true")
    given = arguments.parse_args()
    for name in given.databases.split(","):
        with _location(name) as location:
            with germane.connect(location) as store:
                store.agent("newton").remember_many(drafts(given.memories, seed=1), quality="mark")
            print(f"\n{name}, {given.memories:,} memories")
            _alone(location, given.rounds)
            if not given.skip_load:
                _together(location, given.clients, given.seconds)


@contextmanager
def _location(database: str) -> Iterator[str]:
    with ExitStack() as stack:
        if database == "sqlite":
            yield str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "m.db")
            return
        server = Server()
        stack.callback(server.stop)
        server.create()
        server.start()
        yield server.url(server.fresh())


# One client.


def _alone(location: str, rounds: int) -> None:
    wanted = iter(questions(6 * rounds + 60, seed=3))
    http_times: dict[str, list[tuple[float, float]]] = defaultdict(list)
    own: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with ExitStack() as stack:
        server = stack.enter_context(serving(location, embedder=None))
        engine = stack.enter_context(germane.connect(location)).agent("newton")
        connection = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", server.port)))
        for turn in range(-10, rounds):
            for verb in ("recall", "assemble", "remember"):
                sent = _both(partial(_post, connection, server, verb, next(wanted)), server.process.pid)
                called = _both(partial(_call, engine, verb, next(wanted)), os.getpid())
                if turn >= 0:
                    http_times[verb].append(sent)
                    own[verb].append(called)
            nothing = _both(partial(_get, connection, "/healthz"), server.process.pid)
            if turn >= 0:
                http_times["nothing"].append(nothing)
    print(
        f"  one client, {rounds} rounds   over HTTP p50    p99   in process p50    p99   overhead p50"
        "   processor p50"
    )
    for verb, pairs in http_times.items():
        times, worked = zip(*pairs, strict=True)
        line = f"    {verb:<24}{_at(times, 50):>14.2f}{_at(times, 99):>7.2f}"
        if verb in own:
            beside, worked_beside = zip(*own[verb], strict=True)
            line += f"{_at(beside, 50):>17.2f}{_at(beside, 99):>7.2f}"
            line += f"{_at(times, 50) - _at(beside, 50):>15.2f}"
            line += f"{_at(worked, 50) - _at(worked_beside, 50):>16.2f}"
        else:
            line += f"{_at(worked, 50):>55.2f}"
        print(line)


def _both(call: Callable[[], object], process: int) -> tuple[float, float]:
    """The milliseconds of a call, and those of a process's work in between (Linux)."""
    clock = ~process << 3 | 2  # The kernel's number for the processor time of a whole process.
    before = time.clock_gettime(clock)
    seconds = _seconds(call)
    return seconds, (time.clock_gettime(clock) - before) * 1e3


def _post(connection: http.client.HTTPConnection, server: Serving, verb: str, text: str) -> None:
    connection.request("POST", _PATHS[verb], _body(verb, text), {**server.headers, **_JSON})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status in (200, 201), content


def _get(connection: http.client.HTTPConnection, path: str) -> None:
    connection.request("GET", path)
    connection.getresponse().read()


_PATHS = {"recall": "/v1/recall", "assemble": "/v1/assemble", "remember": "/v1/memories"}
_JSON = {"content-type": "application/json"}


def _body(verb: str, text: str) -> bytes:
    if verb == "remember":
        return json.dumps({"content": f"Somebody asked: {text}", "kind": "note"}).encode()
    return json.dumps({"query": text, **({"budget": _BUDGET} if verb == "assemble" else {})}).encode()


def _call(engine: germane.Engine, verb: str, text: str) -> object:
    if verb == "recall":
        return engine.recall(text)
    if verb == "assemble":
        return engine.assemble(text, budget=_BUDGET)
    return engine.remember(f"Somebody asked: {text}", kind="note")


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def _at(times: Sequence[float], percent: int) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[percent - 1]


# Many at once.


def _together(location: str, clients: int, seconds: float) -> None:
    print(f"  {clients} clients{'':<20} requests/s      p50      p99   errors")
    with serving(location, embedder=None) as server:
        for label, length, what in (
            ("over HTTP", seconds, "verbs"),
            ("a route that does nothing", seconds / 6, ""),
        ):
            with ExitStack() as stack:
                # The clients have a process of their own, as they have in life.
                process = stack.enter_context(
                    subprocess.Popen(  # noqa: S603 - It is this file.
                        [sys.executable, __file__, "--clients-of"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                )
                out, _ = process.communicate(json.dumps([server.port, server.token, clients, length, what]))
            _print_load(label, length, json.loads(out))
    with germane.connect(location) as store:
        _print_load("in process", seconds / 6, _threads(store.agent("newton"), clients, seconds / 6))


def _print_load(label: str, seconds: float, done: Mapping[str, Any]) -> None:
    errors = done["errors"]
    for verb, times in sorted(done["times"].items()):
        found = f"{len(times) / seconds:>10.1f}{_at(times, 50):>9.1f}{_at(times, 99):>9.1f}"
        print(f"    {label + ', ' + verb:<28}{found}   {errors.get(verb, 0)}")
    if errors:
        print(f"    errors: {errors}")


async def _clients(port: int, token: str, clients: int, seconds: float, what: str) -> dict[str, Any]:
    times: dict[str, list[float]] = defaultdict(list)
    errors: Counter[str] = Counter()
    numbers = count(1)
    ends = time.perf_counter() + seconds

    async def one(number: int) -> None:
        chance = Random(number)
        wanted = cycle(questions(200, seed=1000 + number))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < ends:
            verb = chance.choice(_SHARES) if what else "nothing"
            body = _body(verb, f"{next(wanted)} {next(numbers)}") if what else b""
            first = f"POST {_PATHS[verb]}" if what else "GET /healthz"
            head = f"{first} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            start = time.perf_counter()
            writer.write(head.encode() + body)
            try:
                answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
                await reader.readexactly(length)
            except (OSError, asyncio.IncompleteReadError, ValueError) as error:
                errors[f"{verb}: {type(error).__name__}"] += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            status = int(answer.split(" ")[1])
            if status not in (200, 201):
                errors[f"{verb}: {status}"] += 1
            times[verb].append((time.perf_counter() - start) * 1e3)
        writer.close()

    await asyncio.gather(*map(one, range(clients)))
    return {"times": times, "errors": errors}


def _threads(engine: germane.Engine, clients: int, seconds: float) -> dict[str, Any]:
    times: dict[str, list[float]] = defaultdict(list)
    errors: Counter[str] = Counter()
    numbers = count(1)
    ends = time.perf_counter() + seconds

    def one(number: int) -> None:
        chance = Random(number)
        wanted = cycle(questions(200, seed=5000 + number))
        while time.perf_counter() < ends:
            verb = chance.choice(_SHARES)
            text = f"{next(wanted)} {next(numbers)}"
            try:
                times[verb].append(_seconds(partial(_call, engine, verb, text)))
            except germane.GermaneError as error:
                errors[f"{verb}: {type(error).__name__}"] += 1

    threads = [threading.Thread(target=one, args=[number]) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return {"times": times, "errors": errors}


if __name__ == "__main__":
    if sys.argv[1:] == ["--clients-of"]:
        print(json.dumps(asyncio.run(_clients(*json.load(sys.stdin)))))
    else:
        main()
