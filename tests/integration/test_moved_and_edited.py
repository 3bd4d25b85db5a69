"""A text whose file moved and that was edited at once is known again, where there is no doubt about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import germane
from commandline import run
from germane import Engine
from germane.importers import import_source

TEMPLATE = "## Status\n\nAccepted by the team on the day of writing, until something newer replaces it.\n\n"
QUEUE = (
    "Work that may wait goes through the queue in Redis, one list for each kind of work. A worker takes the "
    "oldest item, and puts it back when it fails three times in a row within an hour.\n"
)
CACHE = (
    "Answers that are slow to make are kept beside the service for ten minutes. Whoever writes a record "
    "removes what was kept of it, before the transaction is over.\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    for name, text in (("queue", QUEUE), ("cache", CACHE)):
        write(root / "docs" / f"{name}.md", f"# How the {name} works\n\n{TEMPLATE}{text}")
    return root


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return germane.open(tmp_path / "a.db", embedder=None)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def moved(project: Path, text: str, *, to: str = "handbook/work.md") -> None:
    (project / "docs" / "queue.md").unlink()
    write(project / to, text)


def test_it_is_the_next_version_and_the_report_says_why(project: Path, engine: Engine) -> None:
    import_source(engine, str(project))
    text = QUEUE.replace("three times", "five times")
    moved(project, f"# Queues\n\n{TEMPLATE}{text}")
    report = import_source(engine, str(project), prune=True)
    assert (report.created, report.revised, report.gone) == (0, 1, ())
    (one,) = report.moved
    assert (one.before, one.after) == ("shop/docs/queue.md", "shop/handbook/work.md")
    assert 0.6 <= one.share < 1
    (head,) = (memory for memory in engine.memories() if "five times" in memory.content)
    assert [version.version for version in engine.history(head.id)] == [1, 2]
    assert import_source(engine, str(project)).moved == ()


def test_what_only_shares_a_template_is_new(project: Path, engine: Engine) -> None:
    import_source(engine, str(project))
    moved(project, f"# How the mail works\n\n{TEMPLATE}Letters are sent at night by a machine of its own.\n")
    report = import_source(engine, str(project), prune=True)
    assert (report.created, report.revised, len(report.gone), report.moved) == (1, 0, 1, ())


def test_a_copy_of_what_is_still_there_is_new(project: Path, engine: Engine) -> None:
    import_source(engine, str(project))
    write(project / "handbook" / "work.md", f"# Queues\n\n{TEMPLATE}{QUEUE}And a word more.\n")
    report = import_source(engine, str(project), prune=True)
    assert (report.created, report.revised, report.gone, report.moved) == (1, 0, (), ())


def test_of_two_that_continue_it_alike_neither_does(project: Path, engine: Engine) -> None:
    import_source(engine, str(project))
    moved(project, f"# Queues\n\n{QUEUE}One.\n")
    write(project / "handbook" / "other.md", f"# Queues\n\n{QUEUE}Two.\n")
    report = import_source(engine, str(project), prune=True)
    assert (report.created, len(report.gone), report.moved) == (2, 1, ())


def test_what_a_person_forgot_is_not_brought_back(project: Path, engine: Engine) -> None:
    import_source(engine, str(project))
    (queue,) = (memory for memory in engine.memories() if "Redis" in memory.content)
    engine.forget(queue.id)
    moved(project, f"# Queues\n\n{TEMPLATE}{QUEUE.replace('three', 'five')}")
    assert import_source(engine, str(project)).moved == ()


def test_the_command_tells_it(project: Path, tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    run("import", str(project), db=db)
    moved(project, f"# Queues\n\n{TEMPLATE}{QUEUE.replace('three', 'five')}")
    ran = run("import", str(project), "--json", db=db)
    (source,) = json.loads(ran.out)["sources"]
    assert [(each["before"], each["after"]) for each in source["moved"]] == [
        ("shop/docs/queue.md", "shop/handbook/work.md")
    ]
    moved_back = project / "docs" / "queue.md"
    write(moved_back, (project / "handbook" / "work.md").read_text().replace("oldest", "youngest"))
    (project / "handbook" / "work.md").unlink()
    output = run("import", str(project), db=db).err
    assert "moved: shop/docs/queue.md is the next version of shop/handbook/work.md, which is gone: " in output
