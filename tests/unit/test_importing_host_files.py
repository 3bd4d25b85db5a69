"""Memory files of Claude Code and Codex: imports, rules, instructions of folders, and folders of memories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import germane
from commandline import run
from germane import Engine, Filter, Memory, Scope
from germane.importers import ImportReport, import_source, read


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="bea", embedder=None) as opened:
        yield opened


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a CLAUDE.md."""
    return written(tmp_path / "shop", {".git/HEAD": "", "CLAUDE.md": "# Shop\n\nUse tabs.\n"})


def sources(engine: Engine) -> dict[str | None, Memory]:
    return {memory.source: memory for memory in engine.memories()}


def reasons(report: ImportReport) -> list[str]:
    return [each.reason.removeprefix("not taken over: ") for each in report.passed_over]


def counts(report: ImportReport) -> tuple[int, int, int]:
    return report.created, report.revised, report.known


# Imports of a CLAUDE.md.


def test_imported_files_are_read_beside_the_one_that_names_them(engine: Engine, shop: Path) -> None:
    written(
        shop,
        {
            "CLAUDE.md": "# Shop\n\nSee @docs/git.md, @notes.txt and @README for more.\n\n- @package.json\n",
            "docs/git.md": "Rebase before merging. See @deeper/style.md\n",
            "docs/deeper/style.md": "Lines of 100 columns.\n",
            "notes.txt": "The shop opens at nine.\n",
            "README": "A shop.\n",
            "package.json": '{"name": "shop", "dependencies": {"react": "19"}}',
            "docs/unnamed.md": "Nobody imports this.\n",
        },
    )
    report = import_source(engine, str(shop / "CLAUDE.md"))
    assert set(sources(engine)) == {
        "CLAUDE.md",
        "docs/git.md",
        "docs/deeper/style.md",
        "notes.txt",
        "README",
        "package.json",
    }
    assert reasons(report) == []
    assert counts(import_source(engine, str(shop / "CLAUDE.md"))) == (0, 0, 6)
    drafts = {draft.source for draft in read(str(shop / "CLAUDE.md"))}
    assert drafts == set(sources(engine))


def test_an_edited_import_is_the_next_version_and_a_lost_one_is_reported(engine: Engine, shop: Path) -> None:
    written(shop, {"CLAUDE.md": "See @docs/git.md.\n", "docs/git.md": "Rebase before merging.\n"})
    import_source(engine, str(shop / "CLAUDE.md"))
    (shop / "docs/git.md").write_text("Merge, never rebase.\n")
    assert counts(import_source(engine, str(shop / "CLAUDE.md"))) == (0, 1, 1)
    whole = import_source(engine, str(shop))
    assert counts(whole) == (0, 0, 2)
    (shop / "docs/git.md").unlink()
    report = import_source(engine, str(shop), prune=True)
    assert [gone.source for gone in report.gone] == ["docs/git.md"]
    assert reasons(report) == ["it imports @docs/git.md, and there is no such file"]


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("See @gone.md.", ["it imports @gone.md, and there is no such file"]),
        ("See @docs/ for more.", ["it imports @docs/, and there is no such file"]),
        (
            "See @../secret.md",
            ["it imports @../secret.md, and it is outside the project; import it by its own path"],
        ),
        (
            "See @~/secret.md",
            ["it imports @~/secret.md, and it is outside the project; import it by its own path"],
        ),
        ("See @link.md", ["it imports @link.md, and it is outside the project; import it by its own path"]),
        (
            "See @.env",
            ["it imports @.env, and it isn't Markdown, a manifest, or source code with documentation"],
        ),
        (
            "See @data.sql",
            ["it imports @data.sql, and it isn't Markdown, a manifest, or source code with documentation"],
        ),
        (
            "See @large.md",
            ["it imports @large.md, and the file has 1,000,001 bytes, and at most 1,000,000 are read"],
        ),
        ("Ask @ann, write to a@b.md, and mark it `@gone.md`.", []),
        ("```\n@gone.md\n```\n\n    @gone.md\n\n<!-- @gone.md -->\nx", []),
        (f"See @{'a' * 5_000}.md", [f"it imports @{'a' * 5_000}.md, and there is no such file"]),
    ],
)
def test_imports_that_are_not_followed_are_named(
    engine: Engine,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    left_out: list[str],
) -> None:
    monkeypatch.setattr(Path, "home", lambda: shop.parent)
    written(shop, {"CLAUDE.md": text, ".env": "A=1", "data.sql": "SELECT 1", "docs/a.png": ""})
    (shop / "large.md").write_text("x" * 1_000_001)
    (shop.parent / "secret.md").write_text("A secret.\n")
    (shop / "link.md").symlink_to(shop.parent / "secret.md")
    report = import_source(engine, str(shop / "CLAUDE.md"))
    assert reasons(report) == left_out
    assert set(sources(engine)) == {"CLAUDE.md"}


def test_a_file_outside_is_imported_by_its_own_path_or_from_a_higher_root(
    engine: Engine, tmp_path: Path
) -> None:
    home = written(tmp_path, {".claude/CLAUDE.md": "See @~/AGENTS.md\n", "AGENTS.md": "Use tabs.\n"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "home", lambda: home)
        report = import_source(engine, str(home / ".claude/CLAUDE.md"))
        assert len(reasons(report)) == 1
        again = import_source(engine, str(home / ".claude/CLAUDE.md"), root=home, project="mine")
    assert reasons(again) == []
    assert {memory.content for memory in engine.memories()} == {"See @~/AGENTS.md", "Use tabs."}


def test_imports_are_followed_for_four_hops_and_in_circles_once(engine: Engine, shop: Path) -> None:
    chain = {f"{number}.md": f"Part {number}, then @{number + 1}.md\n" for number in range(1, 7)}
    written(
        shop, {"CLAUDE.md": "First @1.md\n", **chain, "2.md": "Part 2, then @3.md and @CLAUDE.md and @1.md\n"}
    )
    report = import_source(engine, str(shop / "CLAUDE.md"))
    assert set(sources(engine)) == {"CLAUDE.md", "1.md", "2.md", "3.md", "4.md"}
    assert reasons(report) == ["it imports @5.md, and it is more than 4 imports away"]


def test_what_germane_wrote_into_the_file_imports_nothing(engine: Engine, shop: Path) -> None:
    (shop / "CLAUDE.md").write_text("Use tabs.\n\n<!-- germane:begin -->\n@gone.md\n<!-- germane:end -->\n")
    assert reasons(import_source(engine, str(shop / "CLAUDE.md"))) == []


def test_imports_that_are_not_followed_are_printed(shop: Path, tmp_path: Path) -> None:
    (shop / "CLAUDE.md").write_text("See @gone.md.\n")
    result = run("import", str(shop / "CLAUDE.md"), "--dry-run", db=tmp_path / "a.db")
    assert (result.code, result.out.splitlines()[0]) == (
        0,
        f"{shop / 'CLAUDE.md'}: 1 memory read, 1 new, 0 known, 0 left out.",
    )
    assert "not taken over: it imports @gone.md, and there is no such file" in result.err
    assert not (tmp_path / "a.db").exists()


# Rules, and instructions of folders.


def test_instructions_have_the_folder_that_they_are_for_as_scope(engine: Engine, shop: Path) -> None:
    written(
        shop,
        {
            "AGENTS.md": "Use tabs.\n",
            "web/CLAUDE.md": "Use React.\n",
            "web/AGENTS.md": "Use Vite.\n",
            "web/api/AGENTS.override.md": "Use REST.\n",
            "web/.claude/CLAUDE.md": "Use CSS modules.\n",
            ".claude/CLAUDE.md": "Answer in French.\n",
            ".claude/agent-memory/reviewer/MEMORY.md": "The reviewer found races.\n",
            ".claude/commands/fix.md": "Fix it.\n",
            ".github/workflows/a.md": "Never read.\n",
        },
    )
    report = import_source(engine, str(shop))
    scopes = {source: str(memory.scope) for source, memory in sources(engine).items()}
    assert scopes == {
        "CLAUDE.md": "global",
        "AGENTS.md": "global",
        ".claude/CLAUDE.md": "global",
        ".claude/agent-memory/reviewer/MEMORY.md": "global",
        "web/CLAUDE.md": "path:web",
        "web/AGENTS.md": "path:web",
        "web/.claude/CLAUDE.md": "path:web",
        "web/api/AGENTS.override.md": "path:web/api",
    }
    assert [each.source for each in report.passed_over] == [str(shop / ".claude/commands")]
    for_api = engine.memories(Filter(applies_to=(Scope.parse("path:web/api/users.ts"),)))
    assert "Use REST." in {memory.content for memory in for_api}
    for_docs = engine.memories(Filter(applies_to=(Scope.parse("path:docs/a.md"),)))
    assert "Use React." not in {memory.content for memory in for_docs}


@pytest.mark.parametrize(
    ("stated", "patterns"),
    [
        ('["src/api/**/*.ts"]', ["/src/api/**/*.ts"]),
        ("src/**/*.{ts,tsx}, lib/*.py", ["/src/**/*.ts", "/src/**/*.tsx", "/lib/*.py"]),
        (
            '["*.md", "./docs/{a,b}/{c,d}.md"]',
            ["/*.md", "/docs/a/c.md", "/docs/a/d.md", "/docs/b/c.md", "/docs/b/d.md"],
        ),
    ],
)
def test_rules_keep_the_paths_that_they_are_for(
    engine: Engine, shop: Path, stated: str, patterns: list[str]
) -> None:
    rule = f"---\npaths: {stated}\n---\n\nValidate every input.\n"
    written(shop, {".claude/rules/api/input.md": rule, ".claude/rules/always.md": "Run the tests.\n"})
    assert counts(import_source(engine, str(shop))) == (3, 0, 0)
    stored = sources(engine)
    assert stored[".claude/rules/api/input.md"].metadata["paths"] == patterns
    assert "paths" not in stored[".claude/rules/always.md"].metadata
    assert counts(import_source(engine, str(shop))) == (0, 0, 3)
    assert counts(import_source(engine, str(shop / ".claude/rules"))) == (0, 0, 2)


def test_rules_of_a_folder_are_for_paths_in_it(engine: Engine, shop: Path) -> None:
    written(shop, {"web/.claude/rules/a.md": '---\npaths: ["*.ts"]\n---\n\nUse strict.\n'})
    written(shop, {"web/.claude/rules/b.md": "Use React.\n"})
    import_source(engine, str(shop))
    stored = sources(engine)
    assert stored["web/.claude/rules/a.md"].metadata["paths"] == ["/web/*.ts"]
    assert str(stored["web/.claude/rules/b.md"].scope) == "path:web"


def test_a_rule_with_too_many_patterns_is_refused(engine: Engine, shop: Path) -> None:
    written(shop, {".claude/rules/a.md": f"---\npaths: '{'{a,b}' * 11}'\n---\n\nx\n"})
    report = import_source(engine, str(shop))
    assert (report.created, len(report.skipped)) == (1, 1)
    assert "more than 1,000 patterns" in report.skipped[0].reason


# Folders of memories.


def test_the_folder_of_claude_gives_its_memories_alone(engine: Engine, tmp_path: Path) -> None:
    note = "---\nname: Prefers tea\ndescription: Tea\nmetadata:\n  type: user\n---\n\nAnn prefers tea.\n"
    home = written(
        tmp_path / ".claude",
        {
            "CLAUDE.md": "Answer briefly.\n",
            "rules/style.md": "Use tabs.\n",
            "projects/-srv-shop/memory/MEMORY.md": "- [Tea](tea.md): what she drinks\n",
            "projects/-srv-shop/memory/tea.md": note,
            "projects/-srv-shop/notes/other.md": "No memory.\n",
            "plugins/a/README.md": "A plugin.\n",
            "commands/fix.md": "Fix it.\n",
        },
    )
    report = import_source(engine, str(home))
    stored = sources(engine)
    assert set(stored) == {
        ".claude/CLAUDE.md",
        ".claude/rules/style.md",
        ".claude/projects/-srv-shop/memory/MEMORY.md",
        ".claude/projects/-srv-shop/memory/tea.md",
    }
    assert {str(memory.scope) for memory in stored.values()} == {"global"}
    tea = stored[".claude/projects/-srv-shop/memory/tea.md"]
    assert (tea.subject, tea.metadata["metadata"]) == ("Prefers tea", {"type": "user"})
    assert sorted(Path(each.source).name for each in report.passed_over) == ["commands", "notes", "plugins"]


@pytest.fixture
def codex(tmp_path: Path) -> Path:
    """The home folder of Codex, in the layout that its memory pipeline writes."""
    summary = (
        "thread_id: 0199-aa\nupdated_at: 2026-03-01T09:30:00+00:00\nrollout_path: /sessions/a.jsonl\n"
        "cwd: /srv/shop\n\n# Tests ran twice\n\nThe flaky test was the clock.\n"
    )
    return written(
        tmp_path / ".codex",
        {
            "AGENTS.md": "Answer briefly.\n",
            "config.toml": "model = 'x'\n",
            "skills/deploy/SKILL.md": "---\nname: deploy\ndescription: d\n---\n\nA skill, no memory.\n",
            "memories/.git/HEAD": "",
            "memories/MEMORY.md": "# Task Group: shop\n\n## Reusable knowledge\n\n- Use pytest.\n",
            "memories/memory_summary.md": "v1\n\nAnn works on the shop.\n",
            "memories/raw_memories.md": "# Raw Memories\n\n## Thread `0199-aa`\n\nUse pytest.\n",
            "memories/phase2_workspace_diff.md": "diff --git\n",
            "memories/rollout_summaries/0199-aa.md": summary,
            "memories/skills/release/SKILL.md": "---\nname: release\ndescription: d\n---\n\nTag, push.\n",
            "memories/extensions/ad_hoc/instructions.md": "Read the notes.\n",
        },
    )


@pytest.mark.parametrize("start", ["", "memories"])
def test_the_memories_of_codex_have_their_kinds_and_times(engine: Engine, codex: Path, start: str) -> None:
    report = import_source(engine, str(codex / start))
    stored = sources(engine)
    expected = {
        ".codex/memories/MEMORY.md": ("note", "Task Group: shop"),
        ".codex/memories/memory_summary.md": ("note", "memory_summary"),
        ".codex/memories/rollout_summaries/0199-aa.md": ("episode", "Tests ran twice"),
        ".codex/memories/skills/release/SKILL.md": ("procedure", "release"),
    }
    if not start:
        expected[".codex/AGENTS.md"] = ("note", "AGENTS")
    assert {source: (memory.kind, memory.subject) for source, memory in stored.items()} == expected
    session = stored[".codex/memories/rollout_summaries/0199-aa.md"]
    assert session.created_at == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    assert (session.metadata["thread_id"], session.metadata["cwd"]) == ("0199-aa", "/srv/shop")
    assert session.content == "# Tests ran twice\n\nThe flaky test was the clock."
    assert stored[".codex/memories/memory_summary.md"].content == "Ann works on the shop."
    assert {"drafts of Codex, which its MEMORY.md contains (1)", "working files of Codex (2)"} <= set(
        reasons(report)
    )
    assert counts(import_source(engine, str(codex / start))) == (0, 0, len(expected))


def test_the_drafts_of_codex_are_read_while_nothing_replaces_them(engine: Engine, codex: Path) -> None:
    (codex / "memories/MEMORY.md").unlink()
    import_source(engine, str(codex))
    assert ".codex/memories/raw_memories.md" in sources(engine)


def test_a_changed_rule_is_seen_by_a_watch(engine: Engine, shop: Path) -> None:
    written(shop, {".claude/rules/a.md": "Use tabs.\n"})
    reports = germane.importers.watch(engine, shop, settled=0.05)
    assert next(reports).created == 2
    (shop / ".claude/rules/a.md").write_text("Use spaces.\n")
    assert next(reports).revised == 1
    assert json.dumps([memory.content for memory in engine.memories()]).count("spaces") == 1
