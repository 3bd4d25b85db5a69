"""The REST server over the public API: what it answers, to whom, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import germane
from commandline import run
from germane.servers import Limits, openapi_document, rest_app

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[Any]:
    with germane.connect(tmp_path / "m.db", embedder=None) as handle:
        yield handle


def client(handle: Any, key: str, **options: Any) -> TestClient:
    app = rest_app(handle, hosts=["testserver"], **options)
    return TestClient(app, headers={"authorization": f"Bearer {key}"}, raise_server_exceptions=False)


def agent_client(handle: Any, agent: str, *may: str, **options: Any) -> TestClient:
    rights = may or ("read", "write", "admin")
    return client(handle, handle.create_key(agent, may=rights).text, **options)


def remember(http: TestClient, content: str, **fields: Any) -> dict[str, Any]:
    answer = http.post("/v1/memories", json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    memory: dict[str, Any] = answer.json()["memory"]
    return memory


def test_what_is_remembered_is_found_assembled_and_explained(handle: Any) -> None:
    http = agent_client(handle, "newton")
    memory = remember(http, "We chose PostgreSQL for billing.", kind="decision")
    found = http.post("/v1/recall", json={"query": "Which database for billing?"}).json()
    assert [each["memory"]["id"] for each in found["results"]] == [memory["id"]]
    made = http.post("/v1/assemble", json={"query": "billing", "budget": 200, "record": True}).json()
    assert "PostgreSQL" in made["text"]
    assert made["tokens"] <= 200
    explained = http.post("/v1/explain", json={"query": "billing"}).json()
    assert explained["trace"]["entries"][0]["parts"]
    assert http.post(f"/v1/ledger/{made['ref']}/replay").json()["same"] is True
    counted = http.post("/v1/feedback", json={"ref": made["ref"], "used": [memory["id"]]}).json()
    assert counted["counted"] == 1
    assert handle.agent("newton").get(memory["id"]).access_count == 1


def test_a_conversation_is_learned_from_and_a_run_undone(handle: Any) -> None:
    http = agent_client(handle, "newton")
    messages = [{"role": "user", "content": "I live in Nagoya."}]
    http.post("/v1/conversations/chat/messages", json={"messages": messages})
    run = http.post("/v1/conversations/chat/learn", json={}).json()["run"]
    assert [each["outcome"] for each in run["decisions"]] == ["new"]
    assert http.get("/v1/learning-runs").json()["runs"] == [run]
    assert http.get("/v1/learning-runs", params={"session": "other"}).json()["runs"] == []
    assert http.post("/v1/learning-runs", json={}).json()["runs"] == []
    assert agent_client(handle, "ada").get("/v1/learning-runs").json()["runs"] == []
    undo = f"/v1/learning-runs/{run['id']}/undo"
    assert agent_client(handle, "newton", "read").post(undo, json={}).status_code == 403
    assert agent_client(handle, "ada").post(undo, json={}).status_code == 404
    assert http.post(undo, json={}).json()["run"]["decisions"][0]["undone"] is True
    assert http.get("/v1/memories").json()["memories"] == []
    assert http.post("/v1/conversations/nothing/learn", json={}).status_code == 404


def test_what_is_known_about_somebody_and_decisions_on_names(handle: Any) -> None:
    http, reader = agent_client(handle, "newton"), agent_client(handle, "newton", "read")
    remember(http, "The user's sister Anna lives in Rome.", kind="fact")
    report = reader.get("/v1/entities", params={"name": "my sister"}).json()
    assert [each["names"] for each in report["entities"]] == [["Anna", "the user's sister"]]
    assert report["entities"][0]["facts"][0]["current"] is True
    assert agent_client(handle, "ada").get("/v1/entities", params={"name": "Anna"}).json()["entities"] == []
    decision = {"name": "Anna", "other": "Annie"}
    assert reader.post("/v1/entities/names", json=decision).status_code == 403
    made = http.post("/v1/entities/names", json=decision).json()["run"]
    assert http.get("/v1/entities", params={"name": "annie"}).json()["entities"][0]["name"] == "Anna"
    http.post(f"/v1/learning-runs/{made['id']}/undo", json={})
    assert http.get("/v1/entities", params={"name": "annie"}).json()["entities"] == []
    assert http.get("/v1/entities", params={"name": " "}).status_code == 422


def test_an_answer_has_the_form_that_the_command_line_prints(handle: Any, tmp_path: Path) -> None:
    http = agent_client(handle, "newton")
    memory = remember(http, "Billing runs at night.", tags=["billing"], metadata={"ratio": 0.123456789})
    shown = run("memory", "show", memory["id"], "--agent", "newton", "--json", db=tmp_path / "m.db").json()[
        "memory"
    ]
    assert {name: shown[name] for name in memory} == memory


def test_a_write_with_the_etag_of_a_former_version_is_refused(handle: Any) -> None:
    http = agent_client(handle, "newton")
    address = f"/v1/memories/{remember(http, 'Billing runs at night.')['id']}"
    tag = http.get(address).headers["etag"]
    assert http.get(address, headers={"if-none-match": tag}).status_code == 304
    assert (
        http.patch(address, json={"content": "Billing runs at noon."}, headers={"if-match": tag}).status_code
        == 200
    )
    again = http.patch(address, json={"content": "Billing runs never."}, headers={"if-match": tag})
    assert again.status_code == 412
    assert again.json()["type"] == "germane:StaleRevision"
    assert http.post(f"{address}/forget", headers={"if-match": tag}).status_code == 412
    assert http.get(address).json()["memory"]["content"] == "Billing runs at noon."


def test_a_request_goes_on_from_the_state_of_the_answer_before(handle: Any) -> None:
    http = agent_client(handle, "newton")
    remember(http, "Deploys are frozen on Fridays.", kind="rule")
    talk = [
        {"role": role, "content": f"Step {number}: the worker reads its orders from the queue of {role}s."}
        for number in range(40)
        for role in ("user", "assistant")
    ]
    address = "/v1/conversations/monday/messages"
    assert http.post(address, json={"messages": talk}).status_code == 201
    wish: dict[str, Any] = {"memory": "layered", "window": 900, "reserve": 100}
    engine = handle.agent("newton")
    before = engine.request(engine.conversation("monday"), **wish)
    first = http.post("/v1/request", json={**wish, "session": "monday"}).json()
    turn = [{"role": "assistant", "content": "All read."}, {"role": "user", "content": "And on Friday?"}]
    http.post(address, json={"messages": turn})
    usage = {"prompt_tokens": first["tokens"] + 20}
    wanted = engine.request(
        engine.conversation("monday"), **wish, previous=before, calibration=before.calibrate(usage)
    )
    then = http.post(
        "/v1/request", json={**wish, "session": "monday", "previous": first["state"], "usage": usage}
    ).json()
    assert then["arguments"] == wanted.arguments()
    assert then["limit"] == wanted.limit < first["limit"]
    assert wanted.reused_prefix(before) > before.tokens / 3
    refused = http.post("/v1/request", json={**wish, "session": "monday", "usage": usage})
    assert (refused.status_code, "previous" in refused.json()["detail"]) == (422, True)
    refused = http.post("/v1/request", json={**wish, "session": "monday", "previous": {"start": "x"}})
    assert (refused.status_code, "not the state of a request" in refused.json()["detail"]) == (422, True)


def test_a_request_that_is_sent_again_is_done_once(handle: Any) -> None:
    http = agent_client(handle, "newton")
    headers = {"idempotency-key": "one"}
    body = {"messages": [{"role": "user", "content": "Hello there."}]}
    first = http.post("/v1/conversations/monday/messages", json=body, headers=headers)
    second = http.post("/v1/conversations/monday/messages", json=body, headers=headers)
    assert (first.status_code, second.headers["idempotency-replayed"]) == (201, "true")
    assert first.json() == second.json()
    assert len(handle.agent("newton").conversation("monday").messages()) == 1
    other = {"messages": [{"role": "user", "content": "Something else."}]}
    assert http.post("/v1/conversations/monday/messages", json=other, headers=headers).status_code == 422


def test_pages_hold_every_memory_once(handle: Any) -> None:
    http = agent_client(handle, "newton")
    ids = [remember(http, f"Fact number {number}.")["id"] for number in range(7)]
    seen, after = [], None
    while True:
        page = http.get("/v1/memories", params={"limit": 3, **({"after": after} if after else {})}).json()
        seen += [each["id"] for each in page["memories"]]
        after = page["after"]
        if after is None:
            break
    assert (sorted(seen), page["total"]) == (sorted(ids), 7)


@pytest.mark.parametrize(
    ("method", "path", "sent", "status"),
    [
        ("GET", "/v1/nothing", {}, 404),
        ("GET", "/nothing", {}, 404),
        ("PUT", "/v1/recall", {}, 405),
        ("POST", "/v1/recall", {"content": b"\xff\xfe"}, 422),
        ("POST", "/v1/recall", {"content": b'{"query": '}, 422),
        (
            "POST",
            "/v1/recall",
            {"content": b'{"query": "\xff"}', "headers": {"content-type": "application/json"}},
            400,
        ),
        ("POST", "/v1/recall", {"json": {"query": "x", "unknown": 1}}, 422),
        ("POST", "/v1/recall", {"json": {"query": 7}}, 422),
        ("POST", "/v1/memories", {"json": {"content": "x", "kind": "nothing like it"}}, 422),
        ("POST", "/v1/memories", {"json": {"content": ""}}, 422),
        ("POST", "/v1/assemble", {"json": {"query": "x", "budget": -1}}, 422),
        ("GET", "/v1/memories", {"params": {"limit": 0}}, 422),
        ("GET", "/v1/memories/unknown", {}, 404),
        ("GET", "/v1/spaces/unknown", {}, 404),
        ("GET", "/v1/conversations/unknown", {}, 404),
        ("GET", "/v1/ledger/unknown", {}, 404),
        ("DELETE", "/v1/memories/unknown", {}, 422),
    ],
)
def test_every_error_is_a_problem(
    handle: Any, method: str, path: str, sent: dict[str, Any], status: int
) -> None:
    answer = agent_client(handle, "newton").request(method, path, **sent)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    shape = answer.json()
    assert shape["status"] == status
    assert shape["detail"]


def test_a_body_that_is_no_json_is_shown_where_it_breaks(handle: Any) -> None:
    sent: dict[str, Any] = {"content": b'{"query": 7', "headers": {"content-type": "application/json"}}
    answer = agent_client(handle, "newton").post("/v1/recall", **sent)
    assert answer.json()["detail"] == "body: This isn't JSON at character 11: Expecting ',' delimiter."


SECRET = "kumquat"  # noqa: S105 - A fruit.
NAMED = ("memory_id", "assembly_id", "first", "session", "space", "run_id", "message_id", "group")
BODIES: dict[str, dict[str, Any]] = {
    "patch_memories_memory_id": {"content": "Mine."},
    "post_memories": {"content": "Something of my own."},
    "post_memories_memory_id_supersede": {"draft": {"content": "Mine."}},
    "post_memories_memory_id_review": {"outcome": "success"},
    "post_conversations_session_compact": {"budget": 300},
    "post_conversations_session_uncompact": {"hides": []},
    "post_spaces_space_promote": {"agent": "leibniz"},
    "post_spaces_space_fail_over": {"failed": "newton"},
}


@pytest.mark.parametrize(
    ("owner", "other"),
    [
        pytest.param({"agent": "newton"}, {"agent": "leibniz"}, id="two agents"),
        pytest.param(
            {"agent": "newton", "user": "ann"}, {"agent": "newton", "user": "bob"}, id="two users of an agent"
        ),
    ],
)
def test_what_another_has_is_not_found_by_any_operation(
    handle: Any, owner: dict[str, str], other: dict[str, str]
) -> None:
    rights = ["read", "write", "admin"]
    mine, others = (client(handle, handle.create_key(**who, may=rights).text) for who in (owner, other))
    names = _everything_secret(mine)
    before = _shown(mine, names)
    seen, wrong = {"not found": 0, "answered": 0}, []
    for path, methods in openapi_document()["paths"].items():
        for method, operation in methods.items():
            body = _body(operation["operationId"], names)
            answer = others.request(
                method.upper(),
                path.format(**names),
                params={"confirm": "true"} if method == "delete" else {},
                json=body,
            )
            is_missing = _names_what_is_not_there(path, operation["operationId"])
            if path == "/v1/users/{user}":
                is_missing = "user" in other
            if SECRET in answer.text or (answer.status_code == 404) != is_missing:
                wrong.append((method, path, answer.status_code, answer.text))
            seen["not found"] += is_missing
            seen["answered"] += answer.is_success
    assert wrong == []
    assert seen["not found"] >= 40
    assert seen["answered"] >= 25
    assert _shown(mine, names) == before


def _everything_secret(http: TestClient) -> dict[str, str]:
    """Store the secret in everything that an agent can have; the names of what there is then."""
    memory = remember(http, f"I live in Nagoya with a {SECRET}.", metadata={"fruit": SECRET})
    message = {"role": "user", "content": f"My favourite fruit is {SECRET}."}
    (stored,) = http.post("/v1/conversations/monday/messages", json={"messages": [message]}).json()[
        "messages"
    ]
    http.put("/v1/conversations/monday/state", json={"text": SECRET})
    http.put("/v1/conversations/monday/anchors/goal", json={"text": SECRET})
    run = http.post("/v1/conversations/monday/learn", json={}).json()["run"]
    assert [each["outcome"] for each in run["decisions"]] == ["new"]
    made = http.post("/v1/assemble", json={"query": SECRET, "record": True}).json()
    assert SECRET in made["text"]
    assert http.post("/v1/spaces", json={"name": "team", "admits": None}).is_success
    assert http.post("/v1/working-sets/default/items", json={"memories": [memory["id"]]}).is_success
    return {
        "memory_id": memory["id"],
        "assembly_id": made["ref"],
        "first": made["ref"],
        "second": made["ref"],
        "session": "monday",
        "message_id": stored["id"],
        "group": stored["group"],
        "name": "default",
        "space": "team",
        "run_id": run["id"],
        "user": http.get("/v1/me").json()["user"] or "nobody",
    }


def _body(operation: str, names: dict[str, str]) -> dict[str, Any] | None:
    """What the operation needs, with another's ids wherever an id can be named."""
    if operation.startswith(("get_", "delete_")):
        return None
    ids, question = [names["memory_id"]], {"query": "Which fruit?"}
    return {
        **BODIES,
        "post_recall": question,
        "post_assemble": question,
        "post_explain": question,
        "post_request": question,
        "post_refresh": {**question, "previous": names["assembly_id"]},
        "post_feedback": {"ref": names["assembly_id"], "used": ids},
        "post_spaces_space_share": {"memory_id": ids[0]},
        "post_working_sets_name_items": {"memories": ids},
    }.get(operation, {})


def _names_what_is_not_there(path: str, operation: str) -> bool:
    if operation.startswith("put_conversations") or operation == "post_conversations_session_messages":
        return False  # These make a conversation of one's own.
    if operation in ("post_feedback", "post_working_sets_name_items"):
        return True  # These name it in what they send.
    return any(f"{{{name}}}" in path for name in NAMED)


def _shown(http: TestClient, names: dict[str, str]) -> list[Any]:
    addresses = (
        f"memories/{names['memory_id']}",
        f"memories/{names['memory_id']}/history",
        "memories",
        "conversations/monday",
        f"ledger/{names['assembly_id']}",
        f"learning-runs/{names['run_id']}",
        f"spaces/{names['space']}",
        "working-sets/default",
    )
    return [http.get(f"/v1/{address}").json() for address in addresses]


def test_a_key_does_what_it_may_until_it_is_revoked(handle: Any) -> None:
    reader = handle.create_key("newton", may=["read"])
    http = client(handle, reader.text)
    assert http.get("/v1/me").json() == {"agent": "newton", "user": None, "may": ["read"], "expires_at": None}
    assert http.post("/v1/memories", json={"content": "No."}).status_code == 403
    assert http.post("/v1/assemble", json={"query": "x", "record": True}).status_code == 403
    assert http.get("/metrics").status_code == 403
    handle.revoke_key(reader.key.id)
    assert client(handle, reader.text).get("/v1/me").status_code == 401
    wrong = client(handle, reader.text[:-1] + "x").get("/v1/me")
    assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, 'Bearer realm="germane"')
    assert reader.text not in str(handle.keys())


def test_a_users_key_sees_the_users_memories_and_no_other_users(handle: Any) -> None:
    agent = agent_client(handle, "newton")
    user = client(handle, handle.create_key("newton", user="ann", may=["read", "write"]).text)
    memory = remember(user, "Ann prefers tea.")
    assert agent.get(f"/v1/memories/{memory['id']}").status_code == 404
    assert agent.get(f"/v1/memories/{memory['id']}", headers={"germane-user": "ann"}).status_code == 200
    assert agent.get(f"/v1/memories/{memory['id']}", headers={"germane-user": "bob"}).status_code == 404
    assert user.get("/v1/me", headers={"germane-user": "bob"}).status_code == 403
    assert agent.get("/v1/users").json()["users"] == ["ann"]
    assert agent.delete("/v1/users/ann", params={"confirm": True}).json()["was_there"] is True
    assert user.get(f"/v1/memories/{memory['id']}").status_code == 404


def test_a_body_over_the_limit_and_another_host_are_refused(handle: Any) -> None:
    http = agent_client(handle, "newton", limits=Limits(body=1000))
    assert http.post("/v1/memories", json={"content": "x" * 2000}).status_code == 413
    assert http.get("/healthz", headers={"host": "evil.example"}).status_code == 421


def test_more_requests_than_a_key_may_send_have_to_wait(handle: Any) -> None:
    http = agent_client(handle, "newton", limits=Limits(rate=2))
    answers = [http.get("/v1/plans") for _ in range(5)]
    assert [each.status_code for each in answers[:2]] == [200, 200]
    late = next(each for each in answers if each.status_code == 429)
    assert int(late.headers["retry-after"]) >= 1


def test_every_answer_has_security_headers(handle: Any) -> None:
    http = agent_client(handle, "newton")
    for path in ("/healthz", "/v1/me", "/v1/nothing"):
        headers = http.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "'unsafe-inline'" not in headers["content-security-policy"]


def test_the_metrics_are_prometheus_text_without_names(handle: Any) -> None:
    http = agent_client(handle, "newton")
    remember(http, "A secret plan.")
    remember(client(handle, handle.create_key("newton", user="ann", may=["write"]).text), "Ann likes tea.")
    text = http.get("/metrics").text
    families = {each.name: each for each in text_string_to_metric_families(text)}
    figures = {name: families[f"germane_{name}"].samples[0].value for name in ("agents", "users", "memories")}
    assert figures == {"agents": 1, "users": 1, "memories": 2}
    assert sum(each.value for each in families["germane_requests"].samples) >= 1
    assert "newton" not in text
    assert "secret" not in text


def test_the_document_is_valid_and_is_the_one_checked_in() -> None:
    made = openapi_document()
    validate(made)
    assert made["openapi"] == "3.1.0"
    assert _generated("http_reference.py").document() == (ROOT / "docs/reference/openapi.json").read_text(
        "utf-8"
    )


def test_the_page_of_the_reference_is_current() -> None:
    assert _generated("http_reference.py").page() == (ROOT / "docs/reference/http.md").read_text("utf-8")


def _generated(name: str) -> Any:
    spec = spec_from_file_location(name.removesuffix(".py"), ROOT / "tools" / name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_curves_and_comparisons_are_answered(handle: Any) -> None:
    http = agent_client(handle, "newton")
    first = remember(http, "We chose PostgreSQL for billing.", kind="decision", confidence=0.8)
    http.post(f"/v1/memories/{first['id']}/review", json={"outcome": "success"})
    bins = http.get("/v1/calibration").json()["bins"]
    assert bins == [{"confidence": 0.8, "success": 1.0, "count": 1}]
    points = http.get("/v1/decay", params={"shape": "exponential", "hours": 2}).json()["points"]
    assert [each["weight"] for each in points if each["age_hours"] in (0, 2, 4)] == [1, 0.5, 0.25]
    assert http.get("/v1/decay", params={"shape": "sudden"}).status_code == 422
    refs = [
        http.post("/v1/assemble", json={"query": "billing", "budget": budget, "record": True}).json()["ref"]
        for budget in (200, 300)
    ]
    made = http.post(f"/v1/ledger/{refs[0]}/compare/{refs[1]}").json()
    assert [each["same"] for each in made["texts"]] == [True, True]
    assert made["reused"] == made["texts"][1]["tokens"]


def test_a_conversation_is_compacted_and_given_back(handle: Any) -> None:
    http = agent_client(handle, "newton")
    log = handle.agent("newton").conversation("monday")
    for number in range(8):
        log.append("user", f"Question {number} about the wiring of the old mill. " * 5)
        log.append("assistant", f"Answer {number}: the wire is red.")
    path, given = "/v1/conversations/monday", {"budget": 300}
    proposed = http.post(f"{path}/compact", json={**given, "dry_run": True}).json()
    assert proposed["after"] <= 300 < proposed["before"]
    assert len(log.messages()) == 16
    done = http.post(f"{path}/compact", json=given).json()
    assert done == proposed
    assert [each.group for each in log.messages() if each.group in done["hides"]] == []
    assert log.anchors()["summary"] == done["summary"]
    undo = {name: done[name] for name in ("hides", "anchor", "replaces")}
    assert http.post(f"{path}/uncompact", json=undo).status_code == 200
    assert (len(log.messages()), dict(log.anchors())) == (16, {})
    assert http.post(f"{path}/uncompact", json={"hides": ["unknown"]}).status_code == 404
    assert http.post("/v1/conversations/nothing/compact", json=given).status_code == 404
    assert http.post(f"{path}/compact", json={"budget": 1}).json()["type"] == "germane:BudgetTooSmall"
