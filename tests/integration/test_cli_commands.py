"""What each command does to a store, and what people read of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commandline import filled, id_of, run


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return filled(tmp_path)


def test_remember_makes_the_store_and_says_what_it_stored(tmp_path: Path) -> None:
    db = tmp_path / "new.db"

    ran = run("remember", "Redis was measured.", "--kind", "fact", db=db)

    assert ran.code == 0
    assert ran.out.startswith("Remembered: ")
    assert "fact  Redis was measured." in ran.out
    assert db.exists()


def test_the_same_memory_remembered_again_is_counted(db: Path) -> None:
    ran = run("remember", "Postgres runs on port 5433.", "--kind", "fact", db=db)

    assert ran.out.startswith("Known already, seen 2 times: ")
    assert run("db", "stats", "--json", db=db).json()["memories"] == 3


def test_remember_reads_the_standard_input_for_a_dash(tmp_path: Path) -> None:
    db = tmp_path / "a.db"

    run("remember", "-", stdin="Zwei Zeilen,\nund Grüße.\n", db=db)

    assert run("recall", "Grüße", "--json", db=db).json()["results"][0]["memory"]["content"] == (
        "Zwei Zeilen,\nund Grüße."
    )


def test_metadata_is_json_where_it_is_json_and_text_elsewhere(tmp_path: Path) -> None:
    db = tmp_path / "a.db"

    ran = run(*("remember", "Metadata", "--meta", "steps=[1, 2]", "--meta", "reason=a=b, c"), "--json", db=db)

    assert ran.json()["memory"]["metadata"] == {"steps": [1, 2], "reason": "a=b, c"}


def test_recall_shows_scores_and_short_ids_and_no_markup_is_read(db: Path) -> None:
    ran = run("recall", "検索", db=db)

    assert "[bold]works[/bold]" in ran.out
    assert id_of(db, "検索")[-8:] in ran.out
    assert ran.err == ""


def test_filters_reach_the_engine(db: Path) -> None:
    def found(*options: str) -> list[str]:
        results = run("recall", "Postgres", *options, "--json", db=db).json()["results"]
        return sorted(result["memory"]["kind"] for result in results)

    assert found() == ["decision", "fact"]
    assert found("--kind", "fact") == ["fact"]
    assert found("--tag", "storage") == ["decision"]
    assert found("--since", "2020-01-15") == ["fact"]
    assert found("--until", "2020-01-15T00:00Z") == ["decision"]
    assert found("--min-importance", "5") == ["decision"]
    assert found("--subject", "storage") == ["decision"]
    assert found("--limit", "1") != found()
    assert found("--scope", "task:T-1") == []


def test_an_empty_answer_says_why_on_the_error_stream(db: Path) -> None:
    ran = run("recall", "zeppelin", db=db)

    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "Nothing is shown: no memory that passes the filters has to do with the question.\n"


def test_assemble_prints_the_text_alone(db: Path) -> None:
    command = ("assemble", "Which database?", "--budget", "1000", "--frame", "decision")
    ran = run(*command, db=db)
    whole = run(*command, "--json", db=db).json()

    assert ran.out == whole["text"] + "\n"
    assert whole["tokens"] <= 1000
    assert "## Current Approach: Decision" in ran.out
    assert f"{whole['tokens']:,} of 1,000 tokens (o200k)" in ran.err


def test_assemble_replays_at_a_given_moment(db: Path) -> None:
    arguments = ("assemble", "What happened last month?", "--now", "2020-03-15", "--json")

    first, second = run(*arguments, db=db), run(*arguments, db=db)

    assert first.out == second.out
    trace = first.json()["trace"]
    assert trace["now"] == "2020-03-15T00:00:00+00:00"
    assert trace["question"]["when"]["since"] == "2020-02-01T00:00:00+00:00"


def test_a_pinned_memory_stands_in_the_context(db: Path) -> None:
    pinned = id_of(db, "検索")

    without = run("assemble", "Postgres", "--gate", "--json", db=db).json()
    ran = run("assemble", "Postgres", "--gate", "--pin", pinned[-8:], "--json", db=db).json()

    assert pinned not in [item["id"] for item in without["items"]]
    assert pinned in [item["id"] for item in ran["items"]]


def test_what_a_context_would_be_without_a_memory(db: Path) -> None:
    left = id_of(db, "Chose Postgres")
    question = ("Which database did we choose?", "--budget", "300")

    context = run("assemble", *question, "--without", left[-8:], "--record", "--json", db=db).json()
    explained = run("context", "explain", *question, "--without", left, db=db)

    assert "Chose Postgres" in run("assemble", *question, db=db).out
    assert "Chose Postgres" not in context["text"] + explained.out
    assert left not in json.dumps(context)
    replayed = run("ledger", "replay", context["ref"], "--without", left, db=db)
    assert (replayed.code, replayed.out[:30]) == (0, "The same bytes, by their hash.")
    assert run("ledger", "replay", context["ref"], db=db).code == 1


def test_a_memory_cannot_be_pinned_and_left_out(db: Path) -> None:
    one = id_of(db, "Chose Postgres")

    ran = run("assemble", "x", "--pin", one, "--without", one[-8:], db=db)

    assert ran.code != 0
    assert f"pins and without both name {one}" in ran.err


def test_plan_and_counter_can_be_chosen(db: Path) -> None:
    trace = run(
        *("context", "explain", "Postgres", "--plan", "relevance", "--counter", "gpt-4", "--json"), db=db
    ).json()["trace"]

    assert (trace["plan"], trace["counter"]) == ("relevance", "cl100k")


def test_explain_prints_the_table(db: Path) -> None:
    ran = run("context", "explain", "Which database did we choose?", "--budget", "300", db=db)

    assert ran.out.startswith("Context  ")
    assert "SECTION" in ran.out
    assert "Chose Postgres over ChromaDB" in ran.out


def test_show_prints_fields_texts_and_versions(db: Path) -> None:
    first = id_of(db, "ChromaDB")
    run("memory", "revise", first, "Chose Postgres over Chroma for good", db=db)
    second = id_of(db, "for good")

    ran = run("memory", "show", second[-8:], db=db)

    assert "kind           decision" in ran.out
    assert "micro (" in ran.out
    assert "by o200k): the text above" not in ran.out.split("full (")[0]
    assert second == first
    versions = [line.split()[:2] for line in ran.out.splitlines()[-2:]]
    assert versions == [["1", f"{first[-8:]}@1"], ["2", f"{first[-8:]}@2"]]
    assert "Chose Postgres over ChromaDB" in run("memory", "show", f"{first[-8:]}@1", db=db).out


def test_a_memory_is_named_by_any_version(db: Path) -> None:
    first = id_of(db, "ChromaDB")
    run("memory", "revise", first, "Chose Postgres over Chroma for good", db=db)
    run("memory", "forget", f"{first[-8:]}@1", db=db)
    assert "Chroma" not in run("memory", "list", db=db).out
    assert run("memory", "restore", f"{first}@2", "--json", db=db).json()["memory"]["id"] == first
    assert "2" in run("memory", "revise", f"{first}@1", "--tag", "final", "--json", db=db).out
    assert run("memory", "purge", f"{first}@1", "--yes", "--json", db=db).json()["purged"] == 3


def test_remember_says_what_a_known_text_brought(db: Path) -> None:
    def remembered(*more: str) -> str:
        return run("remember", "Move the cache to Valkey.", "--kind", "decision", *more, db=db).out

    assert remembered("--outcome", "success").startswith("Remembered: ")
    assert remembered("--outcome", "failure", "--tag", "cache").startswith(
        "Known already, seen 2 times, updated: tags, outcome: "
    )
    assert remembered().startswith("Known already, seen 3 times: ")


def test_history_tells_versions_in_order(db: Path) -> None:
    first = id_of(db, "ChromaDB")
    run("memory", "revise", first, "Chose Postgres for good", "--tag", "final", db=db)

    versions = run("memory", "history", first, "--json", db=db).json()["versions"]

    assert [version["status"] for version in versions] == ["superseded", "active"]
    assert versions[1]["tags"] == ["final"]
    assert "superseded" in run("memory", "history", first, db=db).out


def test_a_forgotten_memory_is_found_again_once_restored(db: Path) -> None:
    memory_id = id_of(db, "ChromaDB")

    assert run("memory", "forget", memory_id, db=db).out.startswith("Forgotten: ")
    assert run("recall", "ChromaDB", "--json", db=db).json()["results"] == []
    assert run("memory", "restore", memory_id[:18], db=db).out.startswith("Restored: ")
    assert id_of(db, "ChromaDB") == memory_id


def test_purge_needs_yes_and_leaves_no_byte(db: Path) -> None:
    memory_id = id_of(db, "ChromaDB")

    refused = run("memory", "purge", memory_id, db=db)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert (
        run("memory", "purge", memory_id, "--yes", db=db).out == f"Purged {memory_id[-8:]}: 1 version gone.\n"
    )
    assert run("memory", "show", memory_id, db=db).code == 2
    left = b"".join(path.read_bytes() for path in db.parent.iterdir())
    assert b"ChromaDB" not in left
    assert b"5433" in left


def test_an_id_may_be_given_by_its_beginning_or_end_if_only_one_has_it(db: Path) -> None:
    memory_id = id_of(db, "ChromaDB")

    assert run("memory", "show", memory_id[-6:].upper(), "--json", db=db).json()["memory"]["id"] == memory_id
    ambiguous = run("memory", "show", memory_id[:4], db=db)
    assert ambiguous.code == 2
    assert "names 3 memories" in ambiguous.err
    assert "too short" in run("memory", "show", memory_id[-3:], db=db).err
    assert run("memory", "show", "not-an-id", "--json", db=db).json()["error"]["type"] == "NotFound"
    assert run("memory", "show", "0000000f", "--json", db=db).json()["error"]["type"] == "NotFound"


def test_import_reports_what_was_left_out_and_ends_with_1(db: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "good.md").write_text("# Caching\n\nWe cache nothing.\n", encoding="utf-8")
    (folder / "bad.md").write_bytes(b"\xff\xfe\x00")

    ran = run("import", str(folder), db=db)

    assert ran.code == 1
    assert "1 new" in ran.out
    assert "bad.md" in ran.err
    assert "cache nothing" in run("recall", "cache", db=db).out


def test_a_missing_source_does_not_stop_the_others(db: Path, tmp_path: Path) -> None:
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"content": "Imported from lines."}\n', encoding="utf-8")

    ran = run("import", str(tmp_path / "none.md"), str(lines), db=db)

    assert ran.code == 1
    assert "there is no such file" in ran.err
    assert run("import", str(lines), db=db).out.endswith("1 memory read, 0 new, 1 known, 0 left out.\n")


def test_an_export_comes_back_byte_for_byte(db: Path, tmp_path: Path) -> None:
    run("memory", "revise", id_of(db, "ChromaDB"), "Chose Postgres for good", db=db)
    run("memory", "forget", id_of(db, "検索"), db=db)
    out, other = tmp_path / "all.jsonl", tmp_path / "other.db"

    assert run("export", "--out", str(out), db=db).err == f"4 memories written to {out}.\n"
    assert run("import", str(out), db=other).code == 0

    assert run("export", db=other).out.encode() == out.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []


def test_what_was_learned_is_exported_unless_memories_alone_are_requested(db: Path, tmp_path: Path) -> None:
    context = tmp_path / "context.json"
    context.write_text(run("assemble", "Postgres", "--plan", "relevance", "--json", db=db).out, "utf-8")
    used = id_of(db, "ChromaDB")
    run("context", "learning", "on", db=db)
    assert run("context", "feedback", "--context", str(context), "--used", used, db=db).code == 0
    assert run("context", "outcome", "success", "--context", str(context), db=db).code == 0

    alone, all_of_it = tmp_path / "alone.jsonl", tmp_path / "all.jsonl"
    run("export", "--memories-only", "--out", str(alone), db=db)
    run("export", "--out", str(all_of_it), db=db)
    assert all_of_it.read_text("utf-8").startswith(alone.read_text("utf-8"))
    added = all_of_it.read_text("utf-8").splitlines()[len(alone.read_text("utf-8").splitlines()) :]
    assert {json.loads(line)["record"] for line in added} == {"learning", "showing", "outcome"}

    other = tmp_path / "other.db"
    assert run("import", str(alone), db=other).out.endswith("3 new, 0 known, 0 left out.\n")
    output = run("import", str(all_of_it), db=other).out
    assert output.endswith(f"0 new, 3 known, 0 left out. Of its use, {len(added) - 1} records are new.\n")
    again = run("import", str(all_of_it), "--json", db=other).json()["sources"][0]
    assert (again["created"], again["usage_records"]) == (0, 0)
    assert run("export", db=other).out.encode() == all_of_it.read_bytes()


def test_stats_draws_a_bar_for_each_kind(db: Path) -> None:
    ran = run("db", "stats", db=db)

    assert "Memories  3 (3 active)" in ran.out
    assert "decision  1  █" in ran.out


def test_doctor_finds_nothing_wrong_with_a_good_store(db: Path) -> None:
    ran = run("db", "doctor", db=db)

    assert ran.code == 0
    assert "nothing wrong" in ran.out


def test_agents_are_isolated(db: Path) -> None:
    run("remember", "A zeppelin landed.", "--agent", "other", db=db)

    assert run("recall", "zeppelin", "--json", db=db).json()["results"] == []
    assert len(run("recall", "zeppelin", "--agent", "other", "--json", db=db).json()["results"]) == 1


def test_eval_prints_the_figures_and_draws_the_curve(tmp_path: Path) -> None:
    file, plot = tmp_path / "dialogue.json", tmp_path / "curve.svg"
    file.write_text(json.dumps(_dialogue()), encoding="utf-8")
    arguments = (
        "eval",
        "run",
        str(file),
        "--budgets",
        "100,200",
        "--baselines",
        "recency",
        "--plot",
        str(plot),
    )

    report = run(*arguments, "--json").json()
    ran = run(*arguments, "--limit-questions", "1")

    assert [(one["retriever"], one["budget"]) for one in report["results"]] == [
        ("germane", 100),
        ("germane", 200),
        ("recency", 100),
        ("recency", 200),
    ]
    assert report["results"][0]["evidence_recall"] == 1.0
    assert "<svg" in plot.read_text(encoding="utf-8")
    assert "germane" in ran.out
    assert "recency" in ran.out
    assert "answered" in ran.err


def test_eval_compares_and_ablates_and_writes_a_page(tmp_path: Path) -> None:
    file, html = tmp_path / "dialogue.json", tmp_path / "report.html"
    file.write_text(json.dumps(_dialogue()), encoding="utf-8")
    arguments = ("eval", "run", str(file), "--budgets", "100", "--html", str(html))

    ran = run(*arguments, "--compare", "germane", "without=window", "--ablate", "--embedder", "none")

    assert ran.code == 0
    assert "Compared in pairs" in ran.out
    assert "Without each part" in ran.out
    assert "recency" not in ran.out
    assert "Compared in pairs" in html.read_text(encoding="utf-8")


def test_eval_exits_with_1_when_a_floor_is_missed(tmp_path: Path) -> None:
    file = tmp_path / "dialogue.json"
    file.write_text(json.dumps(_dialogue()), encoding="utf-8")
    arguments = ("eval", "run", str(file), "--budgets", "5,100", "--baselines", "none")

    passed = run(*arguments, "--min-recall", "100=1", "--min-all", "100=0.9")
    missed = run(*arguments, "--min-recall", "100=1", "--min-recall", "5=0.5", "--json")
    unread = run(*arguments, "--min-recall", "all")

    assert (passed.code, missed.code) == (0, 1)
    assert passed.out.count("passed: ") == 2
    assert [each["passed"] for each in missed.json()["gate"]] == [True, False]
    assert unread.code == 2
    assert "--min-recall" in unread.err


def test_eval_says_where_evidence_was_lost(tmp_path: Path) -> None:
    file = tmp_path / "dialogue.json"
    file.write_text(json.dumps(_dialogue()), encoding="utf-8")

    ran = run("eval", "losses", str(file), "--budget", "5", "--worst", "1")

    assert ran.code == 0
    assert "2 of 2 pieces of evidence lost (outranked 2)" in ran.out
    assert "by signal: " in ran.out


def test_eval_asks_the_store_that_is_named(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    command = {"question": "Which port does Postgres run on?", "evidence": [id_of(db, "Postgres port")]}
    file.write_text(json.dumps(command), encoding="utf-8")

    ran = run("eval", "run", str(file), "--budgets", "100", "--baselines", "bm25", "--json", db=db)

    assert [one["evidence_recall"] for one in ran.json()["results"]] == [1.0, 1.0]


def test_eval_measures_plans_beside_the_default(tmp_path: Path) -> None:
    file = tmp_path / "dialogue.json"
    file.write_text(json.dumps(_dialogue()), encoding="utf-8")

    ran = run(
        "eval",
        "run",
        str(file),
        "--budgets",
        "100",
        "--plan",
        "relevance",
        "--plan",
        "layered_strict",
        "--json",
    )

    assert [one["retriever"] for one in ran.json()["results"]] == [
        "germane",
        "plan=relevance",
        "plan=layered_strict",
    ]
    assert [(one["first"], one["second"]) for one in ran.json()["comparisons"]] == [
        ("germane", "plan=relevance"),
        ("germane", "plan=layered_strict"),
    ]


def test_eval_asks_about_records_and_about_the_demo(tmp_path: Path) -> None:
    file, records = tmp_path / "questions.jsonl", tmp_path / "harbour.md"
    records.write_text("# Harbour\n\nThe ferry leaves at six.\n", encoding="utf-8")
    file.write_text(json.dumps({"question": "When does the ferry leave?", "answer": "leaves at six"}))

    about = run(
        "eval",
        "run",
        str(file),
        "--records",
        str(records),
        "--budgets",
        "200",
        "--baselines",
        "none",
        "--json",
    )
    demo = run("eval", "run", "--demo", "--budgets", "2000", "--baselines", "bm25", "--json")
    neither = run("eval", "run")

    assert [one["answer_recall"] for one in about.json()["results"]] == [1.0]
    assert demo.json()["data"]["questions"] == 12
    assert demo.json()["data"]["evidence_ids"]["missing"] == []
    assert demo.json()["results"][0]["evidence_recall"] > 0.9
    assert (neither.code, "--demo" in neither.err) == (2, True)


def _dialogue() -> list[object]:
    turns = [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a beagle named Biscuit."},
        {"speaker": "Tom", "dia_id": "D1:2", "text": "Lovely! I have started to learn the cello."},
    ]
    questions = [
        {"question": "Which dog did Ana adopt?", "answer": "a beagle", "evidence": ["D1:1"], "category": 1},
        {"question": "What does Tom learn?", "answer": "the cello", "evidence": ["D1:2"], "category": 4},
    ]
    conversation = {
        "speaker_a": "Ana",
        "speaker_b": "Tom",
        "session_1": turns,
        "session_1_date_time": "1:56 pm on 8 May, 2023",
    }
    return [{"sample_id": "one", "qa": questions, "conversation": conversation}]
