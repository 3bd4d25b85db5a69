"""Lists by pages: over HTTP and from the engine, on either database, also while entries are added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import germane
from germane.errors import AssemblyNotFound, InvalidInput
from germane.servers import rest_app

SIZE = 7


@pytest.fixture(params=["sqlite", "postgres"])
def handle(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    at = tmp_path / "m.db" if request.param == "sqlite" else request.getfixturevalue("postgres_store")
    with germane.connect(at, embedder=None) as handle:
        yield handle


@pytest.fixture
def http(handle: Any) -> TestClient:
    key = handle.create_key("newton", may=("read", "write", "admin")).text
    return TestClient(rest_app(handle, hosts=["testserver"]), headers={"authorization": f"Bearer {key}"})


@dataclass
class Listed:
    """A list of the server: its address, how an entry is added, and what tells its entries apart."""

    path: str
    name: str
    mark: str | None
    add: Callable[[int], object]


def lists_of(handle: Any) -> dict[str, Listed]:
    """Each list that comes by pages."""
    engine = handle.agent("newton")
    memory = engine.remember("Version 0 of the plan for billing.", kind="fact")
    team = engine.space("team", create=True)

    def moved(number: int) -> object:
        return engine.restore(memory.id) if number % 2 else engine.retire(memory.id)

    def event(number: int) -> object:
        engine.working_set("desk").add(memory)
        return engine.working_set("desk").touch(memory) if number else None

    def learned(number: int) -> object:
        engine.conversation(f"of {number}").append("user", f"I live in house {number} of Nagoya.")
        return engine.learn_from(f"of {number}")

    def message(number: int) -> object:
        return engine.conversation("monday").append("user", f"Message {number}.")

    def conversation(number: int) -> object:
        if number >= SIZE:
            # The one that would be listed last is the latest by now.
            engine.conversation("session 0").append("user", f"Again {number}.")
        return engine.conversation(f"session {number}").append("user", f"Message {number}.")

    return {
        "memories": Listed("/memories", "memories", "id", lambda n: engine.remember(f"Fact number {n}.")),
        "history": Listed(
            f"/memories/{memory.id}/history",
            "versions",
            "version",
            lambda n: engine.revise(memory.id, content=f"Version {n} of the plan for billing, told anew."),
        ),
        "events": Listed(f"/memories/{memory.id}/events", "events", "number", moved),
        "lifecycle": Listed("/events/lifecycle", "events", "number", moved),
        "changes": Listed("/changes", "changes", "number", lambda n: engine.remember(f"Change {n}.")),
        "ledger": Listed("/ledger", "assemblies", "id", lambda _: engine.assemble("plan", record=True)),
        "conversations": Listed("/conversations", "conversations", "session", conversation),
        "messages": Listed("/conversations/monday", "messages", "seq", message),
        "runs": Listed("/learning-runs", "runs", "id", learned),
        "moves": Listed("/working-sets/desk/events", "events", "number", event),
        "spaces": Listed("/spaces", "spaces", "name", lambda n: engine.space(f"space {n}", create=True)),
        "happened": Listed(
            "/spaces/team/events", "events", "number", lambda n: team.remember(f"Shared fact number {n}.")
        ),
        "users": Listed(
            "/users", "users", None, lambda n: engine.for_user(f"user {n}").remember("I prefer tea.")
        ),
    }


def names(listed: Listed, page: dict[str, Any]) -> list[Any]:
    return [each if listed.mark is None else each[listed.mark] for each in page[listed.name]]


WHICH = (
    *("memories", "history", "events", "lifecycle", "changes", "ledger", "conversations", "messages"),
    *("runs", "moves", "spaces", "happened", "users"),
)


@pytest.mark.parametrize("which", WHICH)
def test_pages_hold_every_entry_once_also_while_some_are_added(
    handle: Any, http: TestClient, which: str
) -> None:
    listed = lists_of(handle)[which]
    numbers = count()
    for _ in range(SIZE):
        listed.add(next(numbers))
    whole = http.get(f"/v1{listed.path}", params={"limit": 1000}).json()
    before = names(listed, whole)
    assert len(before) >= SIZE
    assert whole["after"] is None
    seen: list[Any] = []
    after: dict[str, Any] = {}
    while True:
        page = http.get(f"/v1{listed.path}", params={"limit": 2, **after}).json()
        assert len(names(listed, page)) <= 2
        seen += names(listed, page)
        if page["after"] is None:
            break
        after = {"after": page["after"]}
        if len(seen) <= SIZE:
            listed.add(next(numbers))
    assert len(seen) == len(set(seen))
    assert [each for each in seen if each in before] == before


def test_the_engine_lists_by_pages(handle: Any) -> None:
    engine = handle.agent("newton")
    for number in range(4):
        engine.conversation(f"session {number}").append("user", "Hello.")
        engine.for_user(f"user {number}").remember("I prefer tea.")
    handle.agent("ada").for_user("user 4").remember("I prefer coffee.")
    then = engine.sessions()[0].last_at
    engine.conversation("session 0").append("user", "Hello again.")
    assert [each.session for each in engine.sessions(limit=2)] == ["session 0", "session 3"]
    page = engine.sessions(until=then, limit=2, after="session 2")
    assert [(each.session, each.messages) for each in page] == [("session 1", 1), ("session 0", 1)]
    assert engine.sessions(until=then, after="session 0") == ()
    with pytest.raises(InvalidInput, match="'session 9' is none of these"):
        engine.sessions(after="session 9")
    assert dict(handle.users(agent="newton", limit=1, after="user 2")) == {"user 3": ("newton",)}
    assert list(handle.users(after="user 3")) == ["user 4"]
    refs = [engine.assemble("tea", record=True).ref for _ in range(3)]
    assert [each.id for each in engine.ledger().list(after=refs[2], limit=1)] == [refs[1]]
    with pytest.raises(AssemblyNotFound):
        engine.ledger().list(after=engine.remember("A memory is no assembly.").id)


def test_a_cursor_that_no_page_gave_is_refused(http: TestClient) -> None:
    for after in ("x", "x y", "2026-01-01T00:00:00Z nowhere", "2026-01-01 nowhere"):
        answer = http.get("/v1/conversations", params={"after": after})
        assert (answer.status_code, answer.json()["title"]) == (422, "InvalidInput"), after
