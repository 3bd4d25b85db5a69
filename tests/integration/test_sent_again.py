"""Requests with an Idempotency-Key: done once by all processes of a store, and no answer outlives a purge."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import psycopg
import pytest
from starlette.testclient import TestClient

import germane
from germane.access import Answered, Attempt
from germane.errors import InvalidInput
from germane.servers import rest_app
from germane.stores import copy_store, remove_agent
from germane.testing.fakes import START, FixedClock

TOKEN = "t" * 43
NEEDLE = "xyzzyplugh"
AGAIN = {"idempotency-key": "one"}
HELLO = {"messages": [{"role": "user", "content": "Hello there."}]}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store"))
    return str(tmp_path / "m.db")


@pytest.fixture
def handle(store: str) -> Iterator[Any]:
    with germane.connect(store, embedder=None) as handle:
        yield handle


def client(handle: Any, agent: str = "newton", user: str | None = None) -> TestClient:
    app = rest_app(handle, agent=agent, user=user, token=TOKEN, hosts=["testserver"], mcp=False)
    return TestClient(app, headers={"authorization": f"Bearer {TOKEN}"}, raise_server_exceptions=False)


def answers(store: str) -> list[tuple[bytes | None, bytes | None]]:
    """The mark and the answer of every request that a store has."""
    query = "SELECT mark, answer FROM replies"
    if store.startswith("postgres"):
        with psycopg.connect(store) as raw:
            return raw.execute(query.encode()).fetchall()
    with closing(sqlite3.connect(store)) as raw:
        return raw.execute(query).fetchall()


def test_an_answer_is_the_same_after_a_restart(store: str) -> None:
    sent = []
    for _ in range(3):
        with germane.connect(store, embedder=None) as handle:
            sent.append(client(handle).post("/v1/conversations/monday/messages", json=HELLO, headers=AGAIN))
    assert [each.status_code for each in sent] == [201, 201, 201]
    assert [each.headers.get("idempotency-replayed") for each in sent] == [None, "true", "true"]
    assert sent[0].content == sent[1].content == sent[2].content
    assert sent[0].headers["content-type"] == sent[1].headers["content-type"]
    with germane.connect(store, embedder=None) as handle:
        assert len(handle.agent("newton").conversation("monday").messages()) == 1
        other = {"messages": [{"role": "user", "content": "Something else."}]}
        refused = client(handle).post("/v1/conversations/monday/messages", json=other, headers=AGAIN)
        assert refused.status_code == 422


def test_a_key_is_that_of_an_agent_and_its_user(handle: Any) -> None:
    of_whom = [("newton", None), ("newton", "ann"), ("newton", "bob"), ("leibniz", None), ("leibniz", "ann")]
    for agent, user in of_whom:
        content = {"content": f"This is about {agent} and {user}."}
        http = client(handle, agent, user)
        made = http.post("/v1/memories", json=content, headers=AGAIN)
        assert (made.status_code, "idempotency-replayed" in made.headers) == (201, False)
        again = http.post("/v1/memories", json=content, headers=AGAIN)
        assert again.json() == made.json()
        assert again.headers["etag"] == made.headers["etag"]


class _Waits:
    """An embedder that embeds when it is let go on."""

    name, dimension = "waits", 4

    def __init__(self) -> None:
        self.is_at_it, self.may_go_on = Event(), Event()

    def embed(self, texts: Any) -> Any:
        self.is_at_it.set()
        assert self.may_go_on.wait(60)
        return np.ones((len(texts), 4), dtype=np.float32)


def test_a_request_under_way_elsewhere_is_to_be_tried_again_later(store: str) -> None:
    embedder = _Waits()
    sent: list[Any] = []
    body = {"content": "Billing runs at night."}
    with germane.connect(store, embedder=embedder) as one, germane.connect(store, embedder=embedder) as two:

        def send() -> None:
            sent.append(client(one).post("/v1/memories", json=body, headers=AGAIN))

        first = Thread(target=send)
        first.start()
        assert embedder.is_at_it.wait(60)
        meanwhile = client(two).post("/v1/memories", json=body, headers=AGAIN)
        embedder.may_go_on.set()
        first.join()
        later = client(two).post("/v1/memories", json=body, headers=AGAIN)
        assert (meanwhile.status_code, meanwhile.headers["retry-after"]) == (409, "1")
        assert "under way" in meanwhile.json()["detail"]
        assert (later.status_code, later.content) == (201, sent[0].content)
        assert one.agent("newton").stats().memories == 1


_DIES = """
import sys, time, germane
with germane.connect(sys.argv[1], embedder=None) as handle:
    def make():
        handle.agent("newton").remember("It was stored before the process died.")
        print("at it", flush=True)
        time.sleep(600)
    handle.once("newton", "one", b"asked", make)
"""


def test_one_whose_process_died_is_done_again_in_time(store: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _DIES, store], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at it\n"
        clock = FixedClock(datetime.now(UTC))
        with germane.connect(store, embedder=None, clock=clock) as handle:
            assert handle.once("newton", "one", b"asked", twice) == Attempt(Answered.NOT_YET)
            process.kill()
            process.wait(20)
            assert handle.once("newton", "one", b"asked", twice) == Attempt(Answered.NOT_YET)
            clock.advance(timedelta(seconds=121))
            assert handle.once("newton", "one", b"asked", lambda: b"new") == Attempt(Answered.NOW, b"new")
            assert handle.once("newton", "one", b"asked", twice) == Attempt(Answered.BEFORE, b"new")


def twice() -> bytes:
    raise AssertionError("It is done twice.")


def test_one_that_failed_is_done_again(handle: Any) -> None:
    def fails() -> bytes:
        raise RuntimeError("The disk is full.")

    with pytest.raises(RuntimeError, match="The disk is full"):
        handle.once("newton", "one", b"asked", fails)
    assert handle.once("newton", "one", b"asked", lambda: None) == Attempt(Answered.NOW)
    assert handle.once("newton", "one", b"asked", lambda: b"made") == Attempt(Answered.NOW, b"made")
    assert handle.once("newton", "one", b"otherwise", twice) == Attempt(Answered.OTHERWISE)
    assert handle.once("newton", "one", b"asked", lambda: b"made", user="ann").answered is Answered.NOW


PURGES: dict[str, Callable[[Any, str], Any]] = {
    "memory": lambda handle, _: handle.agent("newton").purge(
        handle.agent("newton").recall(NEEDLE)[0].memory.id, confirm=True
    ),
    "conversation": lambda handle, _: handle.agent("newton").conversation("talk").purge(confirm=True),
    "user": lambda handle, _: handle.purge_user("ann", confirm=True),
    "agent": lambda _, store: remove_agent(store, "newton", confirm=True),
    "memory of a space": lambda handle, _: (
        handle.agent("newton")
        .space("team")
        .purge(handle.agent("newton").space("team").recall(NEEDLE)[0].memory.id, confirm=True)
    ),
    "space": lambda handle, _: handle.agent("newton").space("team").disband(confirm=True),
}
"""What purges, and whose answers may hold it."""
MAY_HOLD: dict[str, list[tuple[str, str | None]]] = {
    "memory": [("newton", None), ("newton", "ann")],
    "conversation": [("newton", None)],
    "user": [("newton", "ann")],
    "agent": [("newton", None)],
    "memory of a space": [("newton", None), ("leibniz", None)],
    "space": [("newton", None), ("leibniz", None)],
}


@pytest.mark.parametrize("what", PURGES)
def test_no_answer_outlives_a_purge(store: str, handle: Any, what: str) -> None:
    newton, leibniz = handle.agent("newton"), handle.agent("leibniz")
    for engine in (newton, newton.for_user("ann"), newton.space("team", create=True), leibniz):
        engine.remember(f"{NEEDLE} is the word.")
    leibniz.space("team").join()
    newton.conversation("talk").append("user", f"The word is {NEEDLE}.")
    answer = b"zorkmid: what will be purged"

    def answered(left: list[tuple[str, str | None]]) -> bytes:
        """Purge while the requests of all who are left are under way."""
        if left:
            (agent, user), *rest = left
            assert handle.once(agent, "before", b"", lambda: answer, user=user).answer == answer
            assert handle.once(agent, "meanwhile", b"", lambda: answered(rest), user=user).answer == answer
        else:
            PURGES[what](handle, store)
        return answer

    answered(MAY_HOLD[what])
    assert [each for each in answers(store) if each != (None, None)] == []
    if what not in {"agent", "user"}:
        for agent, user in MAY_HOLD[what]:
            for key in ("before", "meanwhile"):
                assert handle.once(agent, key, b"", twice, user=user) == Attempt(Answered.GONE)
    if not store.startswith("postgres"):
        folder = Path(store).parent
        assert [each.name for each in folder.iterdir() if b"zorkmid" in each.read_bytes()] == []


def test_a_purge_is_answered_once_though_its_answer_goes_with_it(handle: Any) -> None:
    http = client(handle)
    memory = http.post("/v1/memories", json={"content": f"{NEEDLE} is the word."}, headers=AGAIN).json()
    address = f"/v1/memories/{memory['memory']['id']}?confirm=true"
    headers = {"idempotency-key": "two"}
    assert http.delete(address, headers=headers).json()["purged"] == 1
    for again in (
        http.delete(address, headers=headers),
        http.post("/v1/memories", json={"content": f"{NEEDLE} is the word."}, headers=AGAIN),
    ):
        assert (again.status_code, "retry-after" in again.headers) == (409, False)
        assert "isn't done again" in again.json()["detail"]
    assert handle.agent("newton").stats().memories == 0


def test_a_day_later_it_is_another_request_and_maintenance_removes_the_answer(store: str) -> None:
    clock = FixedClock(START)
    with germane.connect(store, embedder=None, clock=clock) as handle:
        handle.once("newton", "one", b"asked", lambda: b"first")
        handle.once("newton", "two", b"asked", lambda: b"first")
        clock.advance(timedelta(hours=23))
        assert handle.once("newton", "one", b"asked", twice).answer == b"first"
        clock.advance(timedelta(hours=2))
        assert handle.once("newton", "one", b"asked", lambda: b"second").answer == b"second"
        assert [answer for _, answer in answers(store)] == [b"second"]
        clock.advance(timedelta(hours=25))
        handle.agent("newton").maintain(dry_run=True)
        assert len(answers(store)) == 1
        handle.agent("newton").maintain()
        assert answers(store) == []


def test_answers_are_few_and_small(tmp_path: Path) -> None:
    store = str(tmp_path / "m.db")
    with germane.connect(store, embedder=None, durability="relaxed") as handle:
        large = bytes(256 << 10)
        for number in range(130):
            handle.once("newton", f"large {number}", b"", lambda: large)
        assert sum(len(answer or b"") for _, answer in answers(store)) <= (32 << 20) + len(large)
        assert handle.once("newton", "large 0", b"", lambda: b"").answered is Answered.NOW
        handle.once("newton", "too large", b"", lambda: large + b"!")
        assert handle.once("newton", "too large", b"", twice) == Attempt(Answered.GONE)
        for number in range(1003):
            handle.once("newton", str(number), b"", lambda: b"")
        assert len(answers(store)) == 1001
        assert handle.once("newton", "1002", b"", twice).answer == b""


def test_a_copy_of_the_store_has_no_answers(store: str, handle: Any, tmp_path: Path) -> None:
    handle.agent("newton").remember("Billing runs at night.")
    handle.once("newton", "one", b"asked", lambda: b"made")
    copy_store(store, tmp_path / "copy.db")
    assert answers(str(tmp_path / "copy.db")) == []
    assert copy_store(store, tmp_path / "copy.db").copied == 0


def test_what_only_reads_is_answered_anew(handle: Any) -> None:
    http = client(handle)
    for found in (0, 1):
        answer = http.post("/v1/recall", json={"query": "billing"}, headers=AGAIN)
        assert len(answer.json()["results"]) == found
        handle.agent("newton").remember("Billing runs at night.")


def test_wrong_arguments_are_refused(handle: Any) -> None:
    with pytest.raises(InvalidInput):
        handle.once("", "one", b"asked", twice)
    with pytest.raises(InvalidInput):
        handle.once("newton", "one", "asked", twice)
