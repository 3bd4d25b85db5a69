"""The scoped plan: the numbers of its decision record, its resolutions, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Context, InvalidInput, InvalidPlan, Kind, Level, Reason, Scope, UnknownKind
from germane.plans import Profile, ScopedPlan
from germane.testing.fakes import FixedClock, HashEmbedder, WordCounter, make_id

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Project:
    """An engine whose memories are a minute apart, and a budget in words."""

    def __init__(self) -> None:
        self.clock = FixedClock(NOW, timedelta(minutes=1))
        self.engine = germane.open(
            ":memory:",
            embedder=None,
            counter=WordCounter(),
            clock=self.clock,
            kinds=[Kind(name="ticket", priority=8)],
        )

    def note(
        self, name: str, kind: str = "adr", *, words: int = 10, scope: str = "global", **more: object
    ) -> str:
        """A memory of so many words that begins with its name."""
        text = " ".join([name, *("word" for _ in range(words - 1))])
        return self.engine.remember(text, kind=kind, scope=scope, **more).id  # type: ignore[arg-type]  # As it is.


@pytest.fixture
def project() -> Iterator[Project]:
    made = Project()
    with made.engine:
        yield made


def names(context: Context) -> list[str]:
    return [item.text.split()[1] for item in context.items]


def shares(context: Context) -> dict[str, tuple[int, int]]:
    return {use.name: (use.share, use.flowed) for use in context.trace.sections}


def test_the_record_splits_8000_into_4000_2400_and_1600(project: Project) -> None:
    project.note("one")
    context = project.engine.assemble(plan="scoped_estimate", task="T-1", paths=["a.py"])
    assert context.trace.budget == 8000
    assert {name: share for name, (share, _) in shares(context).items()} == {
        "global": 4000,
        "task": 2400,
        "path": 1600,
    }


@pytest.mark.parametrize("budget", [0, 1, 7, 999, 8001, 10_007])
def test_shares_are_rounded_down_and_the_last_scope_has_the_rest(project: Project, budget: int) -> None:
    context = project.engine.assemble(plan="scoped_estimate", task="T-1", paths=["a"], budget=budget)
    first, second = budget // 2, budget * 3 // 10
    assert [share for share, _ in shares(context).values()] == [first, second, budget - first - second]


def test_kinds_come_in_the_order_of_the_record_and_then_the_latest_update(project: Project) -> None:
    kinds = ("changelog", "dependency", "decision", "module", "iplan", "pattern", "adr")
    for kind in ("note", "ticket", *kinds):
        project.note(f"{kind}-old", kind)
        project.note(f"{kind}-new", kind)
    for plan in ("scoped_estimate", "scoped"):
        found = names(project.engine.assemble(plan=plan))
        assert found[:14] == [f"{kind}-{age}" for kind in reversed(kinds) for age in ("new", "old")]
    exact = names(project.engine.assemble(plan="scoped_estimate"))
    # What the record doesn't know shares one place after all it does.
    assert exact[14:] == ["ticket-new", "ticket-old", "note-new", "note-old"]


def test_a_kind_that_nobody_registered_comes_last_and_is_no_error(project: Project) -> None:
    memory = project.engine.get(project.note("alien", "note"))
    project.engine.purge(memory.id, confirm=True)
    project.note("known", "note")
    project.engine.import_memories([memory.evolve(id=make_id("x"), kind="alien", content_hash="x")])
    assert [item.memory.kind for item in project.engine.assemble(plan="scoped").items] == ["note", "alien"]


def test_what_a_scope_leaves_rolls_to_the_next_and_never_back(project: Project) -> None:
    project.note("g", words=100)
    project.note("t", words=60, scope="task:T-1")
    project.note("p", words=50, scope="path:src")
    how = ScopedPlan(name="plain", backfill=False, estimate=True, degrade=False)
    context = project.engine.assemble(
        plan=how, task="T-1", paths=["src/a"], budget=200, counter=WordCounter()
    )
    # 100 of 100; 60 of 60; 40 for 50: what is short last gets nothing back.
    assert shares(context) == {"global": (100, 0), "task": (60, 0), "path": (40, 0)}
    assert names(context) == ["g", "t"]
    context = project.engine.assemble(
        plan=how, task="T-2", paths=["src/a"], budget=200, counter=WordCounter()
    )
    assert shares(context) == {"global": (100, 0), "path": (40, 60), "task": (60, 0)}
    assert names(context) == ["g", "p"]


def test_slack_left_by_skipping_rolls_on_as_well(project: Project) -> None:
    project.note("g1", words=60)
    project.note("g2", words=60)
    project.note("t", words=90, scope="task:T-1")
    how = ScopedPlan(name="plain", backfill=False, estimate=True, degrade=False)
    context = project.engine.assemble(plan=how, task="T-1", budget=200, counter=WordCounter())
    assert names(context) == ["g2", "t"]
    (skipped,) = context.trace.excluded
    assert (skipped.reason, skipped.short_by) == (Reason.OVER_BUDGET, 20)


def test_skipped_ones_are_backfilled_in_the_order_of_all_kinds(project: Project) -> None:
    project.note("module", "module", words=70, scope="path:src")
    project.note("big", "adr", words=80)
    project.note("small", "pattern", words=5)
    how = ScopedPlan(
        name="plain", shares={"global": 0.2, "task": 0.2, "path": 0.6}, estimate=True, degrade=False
    )
    assert names(project.engine.assemble(plan="scoped_estimate", budget=100, counter=WordCounter())) == [
        "small"
    ]
    context = project.engine.assemble(plan=how, paths=["src/a"], budget=160, counter=WordCounter())
    assert names(context) == ["big", "small", "module"]
    assert sum(entry.tokens for entry in context.trace.included) == 155


def test_the_latest_version_alone_is_a_candidate_in_the_scope_that_it_has(project: Project) -> None:
    first = project.note("v1", words=4)
    project.engine.supersede(first, {"content": "v2 word", "kind": "adr", "scope": "task:T-1"})
    context = project.engine.assemble(plan="scoped", task="T-1")
    assert [(item.section, item.text) for item in context.items] == [("task", "- v2 word")]
    assert names(project.engine.assemble(plan="scoped", task="T-2")) == []


def test_a_head_that_does_not_fit_falls_to_its_summary_and_never_to_an_older_version(
    project: Project,
) -> None:
    first = project.note("old", words=5)
    project.engine.revise(first, "new decision. " + "word " * 300)
    context = project.engine.assemble(plan="scoped", budget=150)
    assert names(context) == ["new"]
    assert context.items[0].level is Level.SUMMARY
    exact = project.engine.assemble(plan="scoped_estimate", budget=150)
    assert (names(exact), len(exact.trace.entries)) == ([], 1)


def test_of_two_versions_of_a_memory_the_latest_stands(project: Project) -> None:
    first = project.engine.get(project.note("v1"))
    project.engine.import_memories([first.evolve(version=2, content="v2", content_hash="two")])
    entries = project.engine.assemble(plan="scoped").trace.entries
    assert [(entry.memory_id, entry.version) for entry in entries] == [(first.id, 2)]


def test_an_artifact_in_several_scopes_is_charged_once_in_the_first(project: Project) -> None:
    project.note("both", scope="task:T-1", metadata={"paths": ["/src/"], "scopes": ["task:T-2"]})
    for task in ("T-1", "T-2"):
        context = project.engine.assemble(plan="scoped", task=task, paths=["src/a.py"])
        assert [(entry.section, entry.included) for entry in context.trace.entries] == [("task", True)]
    context = project.engine.assemble(plan="scoped", paths=["src/a.py"])
    assert [entry.section for entry in context.trace.entries] == ["path"]


def test_one_text_in_two_scopes_stands_once_unless_scopes_are_apart_or_the_record_decides(
    project: Project,
) -> None:
    for kind, scope in (("adr", "global"), ("pattern", "global"), ("adr", "task:T-1")):
        project.engine.remember("Sign in with tokens.", kind=kind, scope=scope)

    def shown(plan: str | ScopedPlan) -> list[str]:
        context = project.engine.assemble(plan=plan, task="T-1")
        assert len(context.trace.entries) == 3
        return [item.section for item in context.items]

    assert shown("scoped") == ["global"]
    assert shown(ScopedPlan(roll_over=False, backfill=False)) == ["global", "task"]
    # The record leaves out earlier versions of a chain, and nothing else.
    assert shown("scoped_estimate") == ["global", "global", "task"]


def test_content_alone_counts_in_bytes_by_four_rounded_down(project: Project) -> None:
    project.engine.remember("abc", kind="adr")
    project.engine.remember("ééé", kind="pattern")
    project.engine.remember("x" * 41, kind="iplan")
    context = project.engine.assemble(plan="scoped_estimate", budget=22)
    assert [(entry.tokens, entry.reason) for entry in context.trace.entries] == [
        (0, None),
        (1, None),
        (10, None),
    ]
    assert context.trace.counter == "bytes_div_4_floor"
    assert context.trace.sections[0].used == 11
    assert "content_counted" in [note.code for note in context.trace.notes]
    whole = project.engine.counter.count(context.text)
    assert context.trace.notes[-1].text == (
        f"Token counts here are estimates by bytes_div_4_floor. The whole text has {whole} tokens by the "
        f"engine's counter {project.engine.counter.name}."
    )
    over = project.engine.assemble(plan="scoped_estimate", budget=1)
    assert (names(over), over.trace.notes[-1].text.rpartition(", ")[2]) == (
        ["abc"],
        f"{project.engine.counter.count(over.text) - 1} more than the budget.",
    )
    assert context.explain().splitlines()[0].endswith("estimated by bytes_div_4_floor")
    assert f"has {whole} tokens" in " ".join(context.explain().split())
    assert "estimated" not in project.engine.assemble(plan="scoped").explain()
    assert names(project.engine.assemble(plan="scoped_estimate", budget=21)) == ["abc", "ééé"]


def test_the_nearest_path_comes_first_within_a_kind(project: Project) -> None:
    project.note("file", "module", scope="path:src/auth/login.py")
    project.note("folder", "module", scope="path:src/auth")
    project.note("pattern", "module", scope="path:src/**/*.py")
    project.note("decision", "adr", scope="path:src")
    project.note("elsewhere", "module", scope="path:lib")
    context = project.engine.assemble(plan="scoped", paths=["src/auth/login.py"])
    assert names(context) == ["decision", "file", "folder", "pattern"]


def test_the_record_that_governs_a_path_leads_the_whole_project(project: Project) -> None:
    project.note("governs", metadata={"paths": ["/src/auth/"]})
    for number in range(5):
        project.note(f"newer{number}")
    context = project.engine.assemble(plan="scoped", paths=["src/auth/login.py"], budget=60)
    assert (names(context)[0], context.items[0].section) == ("governs", "global")


def test_relevance_stands_between_kind_and_recency(project: Project) -> None:
    project.engine.remember("Passwords are hashed with argon2.", kind="adr")
    project.engine.remember("Logs are kept for a month.", kind="adr")
    project.engine.remember("Hash passwords in the worker.", kind="pattern")
    ask = {"plan": "scoped", "budget": 500}
    assert names(project.engine.assemble(**ask)) == ["Logs", "Passwords", "Hash"]  # type: ignore[arg-type]  # As it is.
    for query, task in (("hash passwords", None), ("", "hash the passwords"), ("hash passwords", "T-1")):
        context = project.engine.assemble(query, task=task, **ask)  # type: ignore[arg-type]  # As it is.
        assert names(context) == ["Passwords", "Logs", "Hash"]
    exact = project.engine.assemble("hash passwords", plan="scoped_estimate")
    assert names(exact) == ["Logs", "Passwords", "Hash"]


def test_vectors_take_part_where_there_are_any() -> None:
    with germane.open(":memory:", embedder=HashEmbedder()) as engine:
        engine.remember("The signing keys are rotated weekly.", kind="adr")
        engine.remember("Backups are made every night.", kind="adr")
        context = engine.assemble("rotate signing keys", plan="scoped")
        assert names(context) == ["The", "Backups"]
        assert context.trace.entries[0].parts["semantic"] > 0


def test_what_was_changed_or_not_updated_for_long_ranks_lower_and_says_so(project: Project) -> None:
    project.note("stale", "module", scope="path:src/a.py")
    written = project.clock._next
    project.note("fresh", "module", scope="path:src/a.py", words=9)
    changed = {"src/a.py": written - timedelta(seconds=1), "lib/b.py": written + timedelta(days=9)}
    context = project.engine.assemble(plan="scoped", paths=["src/a.py"], changed=changed)
    stale = [entry.parts.get("stale", 0.0) for entry in context.trace.entries]
    assert stale == [0.0, -0.3]
    (note,) = [note for note in context.trace.notes if note.code == "stale"]
    assert "before src/a.py was changed" in note.text
    project.clock.advance(timedelta(days=360))
    context = project.engine.assemble(plan="scoped", paths=["src/a.py"])
    assert all(-0.11 < entry.parts["stale"] < -0.09 for entry in context.trace.entries)
    assert "not updated for 360 days" in context.explain()


def test_a_decision_that_governs_a_path_outlives_changes_there(project: Project) -> None:
    project.note("governs", metadata={"paths": ["/src/"]})
    changed = {"src/a.py": NOW + timedelta(days=1)}
    context = project.engine.assemble(plan="scoped", paths=["src/a.py"], changed=changed)
    assert "stale" not in context.trace.entries[0].parts


def test_profiles_go_over_each_other_from_board_to_type_of_task() -> None:
    how = ScopedPlan(
        priorities={"decision": 2},
        boards={"core": Profile(priorities={"decision": 0}, backfill=False)},
        columns={"review": Profile(shares={"global": 1.0})},
        task_types={"bugfix": Profile(shares={"global": 0.1, "path": 0.9}, priorities={"module": 0})},
    )
    chosen = how.of(board="core", column="review", task_type="bugfix")
    assert chosen.shares == {"global": 0.1, "path": 0.9}
    assert chosen.priorities == {"decision": 0, "module": 0}
    assert (chosen.backfill, chosen.roll_over) == (False, True)
    assert how.of(column="review").shares == {"global": 1.0}
    with pytest.raises(InvalidInput, match="known: bugfix"):
        how.of(task_type="feature")


def test_priorities_can_be_turned_and_scopes_can_be_ones_own(project: Project) -> None:
    project.note("adr")
    project.note("change", "changelog")
    project.note("ours", "note", scope="team:core")
    how = ScopedPlan(shares={"team": 0.5, "global": 0.5}, priorities={"changelog": 0})
    context = project.engine.assemble(plan=how, scopes=["team:core"])
    assert names(context) == ["ours", "change", "adr"]
    assert "## Team" in context.text
    with pytest.raises(InvalidInput, match="'task' has no share"):
        project.engine.assemble(plan=how, task="T-1")


def test_filters_hold_in_every_scope_and_pins_stand(project: Project) -> None:
    project.note("adr")
    project.note("pattern", "pattern")
    pinned = project.note("elsewhere", "note", scope="task:other")
    project.note("always", "note", pinned=True)
    project.note("theirs", "note", pinned=True, scope="task:other")
    context = project.engine.assemble(plan="scoped", kinds=["pattern"], pins=[pinned], budget=300)
    # What was remembered as pinned obeys the filter; what the call names by id stands.
    assert sorted(names(context)) == ["elsewhere", "pattern"]
    everything = project.engine.assemble(plan="scoped", budget=300)
    assert "always" in names(everything)
    assert "theirs" not in names(everything)


@pytest.mark.parametrize(
    "shares",
    [
        {"global": 0.5, "task": 0.3},
        {"global": 0.5, "task": 0.6},
        {"global": 1.5, "task": -0.5},
        {},
        {"global": float("nan")},
    ],
)
def test_shares_that_do_not_sum_to_one_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(InvalidPlan, match="all together 1"):
        ScopedPlan(shares=shares)
    with pytest.raises(InvalidPlan, match="bugfix"):
        ScopedPlan(task_types={"bugfix": Profile(shares=shares)})


def test_thirds_sum_to_one(project: Project) -> None:
    how = ScopedPlan(shares={"global": 1 / 3, "task": 1 / 3, "path": 1 / 3})
    context = project.engine.assemble(plan=how, budget=100)
    assert [share for share, _ in shares(context).values()] == [33, 33, 34]


def test_what_can_not_be_queried_is_refused(project: Project) -> None:
    engine = project.engine
    with pytest.raises(InvalidInput, match="budget=-1"):
        engine.assemble(plan="scoped", budget=-1)
    with pytest.raises(InvalidInput, match="outside the project"):
        engine.assemble(plan="scoped", paths=["../other/a.py"])
    with pytest.raises(InvalidInput, match="outside the project"):
        engine.assemble(plan="scoped", changed={"/etc/passwd": NOW})
    with pytest.raises(UnknownKind, match="'adrs'"):
        engine.assemble(plan=ScopedPlan(priorities={"adrs": 1}))
    with pytest.raises(InvalidInput, match="doesn't go by a task"):
        engine.assemble("x", task="T-1")
    with pytest.raises(InvalidInput, match="none of them is named"):
        engine.assemble(plan=ScopedPlan(shares={"path": 1.0}))


def test_a_scope_that_is_not_named_shows_nothing_of_any_scope(project: Project) -> None:
    project.note("theirs", scope="task:T-9")
    project.note("there", scope="path:lib")
    context = project.engine.assemble(plan="scoped")
    assert (context.text, context.trace.entries) == ("", ())
    assert Scope.parse("task:T-9").value == "T-9"


def test_large_artifacts_are_reported(project: Project) -> None:
    long = project.note("long", words=600)
    context = project.engine.assemble(plan="scoped", budget=400)
    (note,) = [note for note in context.trace.notes if note.code == "large"]
    assert long[-8:] in note.text
    assert "600 tokens" in note.text


def test_of_very_many_the_newest_of_each_kind_are_looked_at(project: Project) -> None:
    project.note("decision")
    project.engine.remember_many(
        [{"content": f"change {number}", "kind": "changelog"} for number in range(1100)]
    )
    context = project.engine.assemble("change 7", plan="scoped", budget=100)
    assert names(context)[0] == "decision"
    assert "gathered_in_part" in [note.code for note in context.trace.notes]
    assert "change 7" in context.text


def test_what_a_conversation_contains_already_is_left_out(project: Project) -> None:
    text = "All payments go through one provider, whatever the country or the currency is."
    project.engine.remember(text, kind="adr")
    project.note("other")
    context = project.engine.assemble("payments", plan="scoped", conversation=f"user: I know. {text}")
    assert names(context) == ["other"]
    assert [entry.reason for entry in context.trace.excluded] == [Reason.IN_CONVERSATION]


def test_of_very_many_under_a_path_its_section_is_named(project: Project) -> None:
    project.engine.remember_many(
        [{"content": f"change {number}", "kind": "adr", "scope": "path:src"} for number in range(1000)]
    )
    context = project.engine.assemble("change 7", plan="scoped", paths=["src/a.py"], budget=100)
    (note,) = [note for note in context.trace.notes if note.code == "gathered_in_part"]
    assert "in scope (path)" in note.text


def test_ids_end_the_items_of_scopes_and_of_commits_as_of_any_plan(project: Project) -> None:
    for kind in ("adr", "commit"):
        project.note(kind, kind)
    context = project.engine.assemble("word", plan="scoped", ids=True)
    assert len(context.items) == 2
    for item in context.items:
        assert item.memory.id[-8:] in item.text


def test_a_time_is_lifted_for_what_is_pinned_with_a_note(project: Project) -> None:
    project.note("pinned", pinned=True)
    context = project.engine.assemble(plan="scoped", since="2027-01-01")
    assert names(context) == ["pinned"]
    assert [note.code for note in context.trace.notes] == ["time_lifted"]


def test_without_a_gate_all_memories_are_ranked_by_the_question(project: Project) -> None:
    project.note("queue")
    project.note("cache")
    for gate, parts in ((None, 1), (False, 2)):
        entries = project.engine.assemble("queue", plan="scoped", gate=gate).trace.entries
        assert sum("lexical" in entry.parts for entry in entries) == parts


def test_a_request_takes_its_memory_from_the_scoped_plan(project: Project) -> None:
    project.note("one")
    request = project.engine.request([{"role": "user", "content": "one?"}], memory="scoped")
    assert request.memory is not None
    assert request.memory.trace.plan == "scoped"
