"""Contexts of the default call as they were read: of the demo, of real projects and a history, of dialogue.

To write them anew, set GERMANE_WRITE_CONTEXTS=1, and read the difference before it is committed.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import Engine
from germane.demo import DEMO_NOW, demo_questions, load_demo
from germane.importers import import_source
from integration.test_real_projects import unpacked

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HERE = Path(__file__).parent
CONTEXTS = HERE / "contexts"
DEMO_BUDGETS = (1500, 1000, 2000, 800, 1500, 1500, 1000, 900, 1000, 1200, 800, 1500)
OF_PROJECTS = (
    ("adr-viewer==1.4.0", "Why are superseded records shown in another colour?", 600),
    ("adr-viewer==1.4.0", "How is the tool called from the command line?", 1000),
    ("adr-viewer==1.4.0", "What was decided about accessibility?", 400),
    ("structlog==25.5.0", "How do I add context variables to every log entry?", 1000),
    ("structlog==25.5.0", "What changed in the newest releases?", 800),
    ("structlog==25.5.0", "Which dependencies does the project have?", 600),
    ("adr-kit==0.2.7", "What does the command line offer?", 800),
    ("adr-kit==0.2.7", "How are decision records validated?", 600),
)
OF_HISTORY = (
    ("What changed last week?", 800),
    ("When were commits given a kind of their own?", 300),
    ("Which commits by Ann changed the ranking?", 400),
    ("Which texts does the tutorial show?", 300),
)
NOTES = (
    "The tutorial builds a store of ten memories and shows the context of three questions.",
    "Packing fills all sections together: first breadth, then depth, then what is left.",
    "The ranking adds what words say to what meaning says, each from 0 to 1.",
    "Stores are files of SQLite, or tables of a PostgreSQL server.",
    "A release is made from main by a tag, once all tests pass.",
    "The reference pages are generated from docstrings.",
)
AUTHORS = ("Ann Peel", "Ben Oduya")
OF_DIALOGUES = (
    ("friends", "What happened to Felix's ankle?", 150),
    ("friends", "Where does Hanna work now?", 120),
    ("colleagues", "How was the rounding of the invoice export fixed?", 150),
    ("colleagues", "When is Tomasz back?", 100),
    ("assistant", "What caused the memory leak, and how was it fixed?", 400),
    ("assistant", "How should answers look?", 150),
    ("meeting", "Which case was chosen for the remote control, and why?", 200),
    ("meeting", "When does the trial with families start?", 150),
)


def check(name: str, engine: Engine, question: str, budget: int) -> None:
    """Compare the context of the default call with the one that was read."""
    context = engine.assemble(question, budget=budget)
    assert context.tokens <= budget
    page = f"# {question}\n# {context.tokens} of {budget} tokens\n\n{context.text}\n"
    file = CONTEXTS / f"{name}.txt"
    if os.environ.get("GERMANE_WRITE_CONTEXTS"):
        file.write_text(page, encoding="utf-8")
    assert page == file.read_text(encoding="utf-8")


def repository(folder: Path) -> Path:
    """A repository of fixed commits of this project, with files of one letter and two made-up authors."""
    stream = ""
    for number, one in enumerate(json.loads((HERE / "commits.json").read_text(encoding="utf-8"))):
        author = AUTHORS[number % len(AUTHORS)]
        who = f"{author} <{author.split()[0].lower()}@example.org> {one['at']} +0000"
        message = f"{one['subject']}\n\n{one['body']}".strip().encode()
        stream += f"commit refs/heads/main\nauthor {who}\ncommitter {who}\n"
        stream += f"data {len(message)}\n{message.decode()}\n"
        stream += "".join(f"M 100644 inline {name}\ndata 1\nx\n" for name in one["files"]) + "\n"
    git = ["git", "-C", str(folder)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True, env=own)
    subprocess.run([*git, "fast-import", "--quiet"], input=stream.encode(), check=True, env=own)
    return folder


@contextmanager
def dialogue(sample: str) -> Iterator[Engine]:
    with germane.open(":memory:", agent=sample, clock=lambda: NOW) as engine:
        import_source(engine, str(HERE / "conversations.json"))
        others = [
            memory for memory in engine.memories() if not (memory.source or "").startswith(f"{sample}/")
        ]
        for memory in others:
            engine.purge(memory.id, confirm=True)
        yield engine


@pytest.mark.parametrize("number", range(len(DEMO_BUDGETS)))
def test_of_the_demo(number: int) -> None:
    with germane.open(":memory:", agent="newton", clock=lambda: DEMO_NOW) as engine:
        load_demo(engine)
        check(f"demo_{number + 1:02}", engine, demo_questions()[number].question, DEMO_BUDGETS[number])


def test_of_the_demo_to_be_caught_up() -> None:
    with germane.open(":memory:", agent="newton", clock=lambda: DEMO_NOW) as engine:
        load_demo(engine)
        check("demo_13", engine, "What's new?", 1200)


def test_of_a_store_with_nothing_but_an_allergy() -> None:
    with germane.open(":memory:", clock=lambda: NOW) as engine:
        engine.remember("The user is allergic to peanuts.")
        engine.remember("The user lives in Ghent and works night shifts.")
        engine.remember("I am a cooking assistant.", kind="identity")
        check("allergy", engine, "What should I cook tonight?", 300)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("requirement", "question", "budget"), OF_PROJECTS)
def test_of_a_real_project(tmp_path: Path, requirement: str, question: str, budget: int) -> None:
    project = unpacked(requirement, tmp_path)
    with germane.open(":memory:", clock=lambda: NOW) as engine:
        import_source(engine, str(project), root=project)
        number = [one[:2] for one in OF_PROJECTS].index((requirement, question)) + 1
        check(f"project_{number}", engine, question, budget)


@pytest.mark.parametrize(("sample", "question", "budget"), OF_DIALOGUES)
def test_of_a_dialogue(sample: str, question: str, budget: int) -> None:
    with dialogue(sample) as engine:
        number = OF_DIALOGUES.index((sample, question, budget)) + 1
        check(f"dialogue_{number}", engine, question, budget)


@pytest.mark.parametrize(("question", "budget"), OF_HISTORY)
def test_of_a_history(tmp_path: Path, question: str, budget: int) -> None:
    with germane.open(":memory:", clock=lambda: NOW + timedelta(days=3)) as engine:
        import_source(engine, f"git:{repository(tmp_path)}")
        for text in NOTES:
            engine.remember(text, kind="note", subject="germane")
        check(f"history_{OF_HISTORY.index((question, budget)) + 1}", engine, question, budget)
