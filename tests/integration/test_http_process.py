"""A running HTTP server against clients that are slow, wrong or cut off, and against signals and restarts."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import germane
from commandline import run
from germane.servers import Limits, rest_app
from support.http_server import Serving, answer, exchange, serving

TOKEN = "t" * 43
HALF_A_HEAD = b"POST /v1/recall HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("server") / "m.db") as started:
        yield started


def half_a_body(
    server: Serving, body: bytes = b'{"content": "Billing runs at night."}'
) -> tuple[bytes, bytes]:
    """A request that stores a memory, in two halves."""
    head = f"POST /v1/memories HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {server.token}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body[:10], body[10:]


def is_well(server: Serving) -> bool:
    return httpx.get(f"{server.address}/v1/me", headers=server.headers, timeout=20).status_code == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET / NOTHTTP\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 100_000, 431),
        (b"GET /" + b"y" * 100_000, 431),
    ],
)
def test_what_is_no_http_gets_a_problem_and_harms_nobody(server: Serving, sent: bytes, status: int) -> None:
    with server.connect() as connection:
        found, headers, body = exchange(connection, sent)
    assert (found, headers["content-type"]) == (status, "application/problem+json")
    assert json.loads(body)["status"] == status
    assert is_well(server)


_WITH_A_LOG = """
import logging, runpy

class Printed(logging.Handler):
    def emit(self, record):
        print(record.name, record.operation, record.status, record.getMessage(), flush=True, file=sys.stderr)

import sys
logging.getLogger("germane").setLevel(logging.DEBUG)
logging.getLogger("germane.servers").addHandler(Printed())
logging.getLogger("germane.servers").propagate = False  # Libraries may print what reaches the root.
runpy.run_module("germane", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("program", "logged"),
    [
        (("-m", "germane"), []),
        (
            ("-c", _WITH_A_LOG),
            [
                "germane.servers http 400 A request was refused: 400 Bad Request",
                "germane.servers http 431 A request was refused: 431 Request Header Fields Too Large",
            ],
        ),
    ],
)
def test_what_is_no_http_is_one_record_without_its_text(
    tmp_path: Path, program: tuple[str, ...], logged: list[str]
) -> None:
    upgrade = b"GET /v1/me HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade, close"
    printed = tmp_path / "errors.txt"
    with (
        printed.open("w") as errors,
        serving(tmp_path / "m.db", program=program, errors=errors) as server,
    ):
        for sent in (b"GET / NOTHTTP\r\n\r\n", b"GET /" + b"y" * 100_000, upgrade + b"\r\n\r\n"):
            with server.connect() as connection:
                exchange(connection, sent)
    made, *records = printed.read_text().splitlines()
    assert made == f"Made the database {tmp_path / 'm.db'}."
    assert records == logged


def test_clients_that_send_half_of_something_keep_nobody_waiting(server: Serving) -> None:
    with ExitStack() as stack:
        for sent in (HALF_A_HEAD, half_a_body(server)[0]) * 40:
            stack.enter_context(closing(server.connect())).sendall(sent)
        assert is_well(server)
    assert is_well(server)


@pytest.mark.long
def test_half_of_the_headers_or_of_a_body_is_answered_with_408_in_time(server: Serving) -> None:
    with server.connect() as first, server.connect() as second:
        first.sendall(HALF_A_HEAD)
        second.sendall(half_a_body(server)[0])
        answers = [answer(first), answer(second)]
    for status, headers, body in answers:
        assert (status, headers["content-type"]) == (408, "application/problem+json")
        assert "20 s" in json.loads(body)["detail"]


def test_another_host_and_a_missing_token_are_refused(server: Serving) -> None:
    named = httpx.get(f"{server.address}/v1/me", headers={**server.headers, "host": "evil.example"})
    assert named.status_code == 421
    assert httpx.get(f"{server.address}/v1/me").status_code == 401
    assert httpx.get(f"{server.address}/v1/me?token={server.token}").status_code == 401


def test_sigterm_answers_what_is_under_way_and_ends_streams(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "m.db") as server,
        server.connect() as connection,
        httpx.stream("GET", f"{server.address}/v1/events", headers=server.headers, timeout=30) as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        begun, rest = half_a_body(server)
        connection.sendall(begun)
        assert is_well(server)  # By now the server has the half.
        server.process.send_signal(signal.SIGTERM)
        assert not any(line.startswith("data:") for line in lines)
        status, _, body = exchange(connection, rest)
        assert server.process.wait(20) in (0, -signal.SIGTERM)
    assert status == 201
    with germane.connect(tmp_path / "m.db", embedder=None) as handle:
        assert (
            handle.agent("newton").get(json.loads(body)["memory"]["id"]).content == "Billing runs at night."
        )


def events_of(lines: Iterator[str], most: int) -> list[tuple[str, str, str]]:
    """The next events: the id, the name, and the id of the memory."""
    found: list[tuple[str, str, str]] = []
    event: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            event[name] = value
            continue
        if "data" in event:
            found.append((event["id"], event["event"], json.loads(event["data"])["memory_id"]))
        event = {}
        if len(found) == most:
            return found
    return found


def test_a_stream_goes_on_at_another_process_where_it_ended(tmp_path: Path) -> None:
    def remember(server: Serving, content: str) -> str:
        sent = httpx.post(f"{server.address}/v1/memories", json={"content": content}, headers=server.headers)
        return str(sent.json()["memory"]["id"])

    def following(server: Serving, **headers: str) -> Any:
        sent = {**server.headers, **headers}
        return httpx.stream("GET", f"{server.address}/v1/events", headers=sent, timeout=30)

    with serving(tmp_path / "m.db") as one, serving(tmp_path / "m.db") as two:
        remember(one, "Before anybody listened.")
        with following(one) as stream:
            lines = stream.iter_lines()
            next(lines)  # From here on nothing is missed.
            first = remember(two, "Written by another process.")
            (last, name, memory), *_ = events_of(lines, 1)
        assert (name, memory) == ("stored", first)
        missed = [remember(one, "Nobody listens."), remember(two, "Nobody listens still.")]
        with following(two, **{"last-event-id": last}) as stream:
            assert [each[1:] for each in events_of(stream.iter_lines(), 2)] == [
                ("stored", each) for each in missed
            ]


def test_more_requests_than_run_at_once_get_a_time_to_try_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"

    async def tried(app: Any) -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers
        ) as http:
            await http.post("/v1/memories", json={"content": "The first opens the store."})
            with closing(sqlite3.connect(path)) as other:
                # Whoever writes has to wait now, and keeps its place.
                other.execute("BEGIN IMMEDIATE")
                first = asyncio.create_task(http.post("/v1/memories", json={"content": "It waits."}))
                await asyncio.sleep(0.3)
                second = await http.get("/v1/plans")
                other.rollback()
            return [await first, second, await http.get("/v1/plans")]

    with germane.connect(path, embedder=None) as handle:
        limits = Limits(running=1, wait_seconds=0.1)
        waited, refused, after = asyncio.run(tried(rest_app(handle, token=TOKEN, limits=limits, mcp=False)))
    assert (waited.status_code, refused.status_code, after.status_code) == (201, 503, 200)
    assert int(refused.headers["retry-after"]) >= 1


def test_a_key_of_the_command_line_opens_until_it_is_revoked(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    made = run(
        "keys", "create", "--agent", "newton", "--user", "ann", "--may", "read", "--json", db=path
    ).json()
    listed = run("keys", "list", "--json", db=path)
    assert [each["id"] for each in listed.json()["keys"]] == [made["id"]]
    secret = made["key"].split("_", 2)[2]
    assert secret not in listed.out
    assert not any(secret.encode() in each.read_bytes() for each in tmp_path.iterdir())
    headers = {"authorization": f"Bearer {made['key']}"}
    with serving(path, "--keys") as server:
        me = httpx.get(f"{server.address}/v1/me", headers=headers)
        assert (me.json()["agent"], me.json()["user"], me.json()["may"]) == ("newton", "ann", ["read"])
        run("keys", "revoke", made["id"], db=path)
        for _ in range(50):
            status = httpx.get(f"{server.address}/v1/me", headers=headers).status_code
            if status == 401:
                break
            time.sleep(0.1)
        else:
            pytest.fail("A revoked key was still accepted.")


def test_a_store_in_postgresql_is_served_alike(postgres_store: str) -> None:
    with (
        serving(postgres_store) as server,
        httpx.Client(base_url=server.address, headers=server.headers) as http,
    ):
        made = http.post("/v1/memories", json={"content": "We chose PostgreSQL for billing."}).json()[
            "memory"
        ]
        address = f"/v1/memories/{made['id']}"
        tag = http.get(address).headers["etag"]
        changed = {"content": "We chose SQLite for billing."}
        assert http.patch(address, json=changed, headers={"if-match": tag}).status_code == 200
        assert http.patch(address, json=changed, headers={"if-match": tag}).status_code == 412
        assert "SQLite" in http.post("/v1/assemble", json={"query": "billing", "budget": 200}).json()["text"]
        assert http.get("/readyz").json() == {"status": "ready"}
        assert "germane_memories" in http.get("/metrics").text
