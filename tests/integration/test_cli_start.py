"""What a process of the command line loads before it answers, and what it does around its commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import germane
from commandline import COMMANDS, fields, filled, run
from support.judges import EXACT_MODULE

LOADED = "import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
COMMAND = f"{LOADED}from germane.cli import main\nmain()"

WITH_THE_ENGINE = {"numpy", "regex", "sqlite3", "germane.engine", "germane.stores", "germane.model.memory"}
WITH_A_TERMINAL = {"rich"}
WITH_FEW_COMMANDS = {"asyncio", "yaml", "markdown_it", "httpx", "onnxruntime", "tiktoken"}
WITH_ONE_COMMAND = {f"germane.{module}" for module in ("aio", "demo", "evaluation", "importers", "testing")}
NEVER_AT_ONCE = WITH_A_TERMINAL | WITH_FEW_COMMANDS | WITH_ONE_COMMAND

TO_CONVERSE = {
    "germane.conversation.groups",
    "germane.model.conversation",
    "germane.stores.relational.conversations",
    "germane.operations.conversation",
    "germane.operations.request",
}
TO_HOLD = {
    "germane.ranking.strategies",
    "germane.stores.relational.working_sets",
    "germane.operations.working_set",
}
TO_SHARE = {
    "germane.engine.space",
    "germane.stores.relational.spaces",
    "germane.operations.spaces",
}
TO_ASK = {"germane.ranking.relevance", "germane.retrieval.dates", "germane.operations.search"}
TO_PACK = {"germane.packing.fit", "germane.pipeline", "germane.plans.layered", "germane.operations.assemble"}
TO_WRITE = {"germane.stores.relational.writes", "germane.operations.drafts"}
SELDOM = TO_CONVERSE | TO_HOLD | TO_SHARE

VERBS = {
    f"germane.operations.{name}"
    for line in (
        "conversation drafts feedback frame ledger lifecycle memories read refresh request search",
        "spaces working_set",
    )
    for name in line.split()
}
OF_COMMANDS = {
    f"germane.cli.{name}"
    for name in ["chat", "contexts", "evaluation", "imports", "ledger", "memories", "stores", "working_sets"]
}


def process(
    code: str, *arguments: str, text: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        input=text,
        check=False,
        env={**os.environ, **environment},
    )


def loaded(code: str, *arguments: str, ends: int = 0) -> set[str]:
    """The modules that are there when the process ends."""
    ran = process(code, *arguments)
    assert ran.returncode == ends, ran.stderr
    return set(ran.stderr.splitlines()[-1].split())


def test_importing_germane_loads_nothing_heavy() -> None:
    modules = loaded(f"{LOADED}import germane")

    assert modules & (WITH_THE_ENGINE | NEVER_AT_ONCE | {"typer", "dataclasses", "json"}) == set()


def test_opening_an_engine_loads_none_of_its_verbs() -> None:
    modules = loaded(f"{LOADED}import germane\ngermane.open(':memory:').close()")

    assert VERBS & modules == set()
    assert modules & (NEVER_AT_ONCE | SELDOM | TO_ASK | TO_PACK | {EXACT_MODULE}) == set()


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_verb_is_there_when_it_is_named(name: str) -> None:
    assert name in loaded(f"{LOADED}from germane import operations\n{name.removeprefix('germane.')}")


def test_what_is_no_verb_is_no_attribute() -> None:
    ran = process("from germane import operations\noperations.recal")

    assert "AttributeError: module 'germane.operations' has no attribute 'recal'" in ran.stderr


@pytest.mark.parametrize("name", sorted(SELDOM | TO_ASK | TO_PACK | TO_WRITE | VERBS | OF_COMMANDS))
def test_what_is_looked_for_exists(name: str) -> None:
    assert find_spec(name) is not None


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), (), ("-h",)])
def test_the_help_loads_no_command_and_no_engine(arguments: tuple[str, ...]) -> None:
    modules = loaded(COMMAND, *arguments)

    assert modules & (WITH_THE_ENGINE | NEVER_AT_ONCE) == set()
    assert OF_COMMANDS & modules == set()


@pytest.mark.parametrize(
    ("command", "module", "others"),
    [
        (("recall", "Postgres"), "memories", {EXACT_MODULE} | TO_PACK | TO_WRITE),
        (("assemble", "Postgres"), "contexts", TO_WRITE),
        (("context", "explain", "Postgres"), "contexts", TO_WRITE),
        (("db", "stats"), "memories", {EXACT_MODULE} | TO_ASK | TO_PACK | TO_WRITE),
        (("context", "learning"), "ledger", {EXACT_MODULE} | TO_PACK),
        (("remember", "A note."), "memories", TO_ASK | TO_PACK),
    ],
)
def test_a_command_loads_only_what_it_needs(
    tmp_path: Path, command: tuple[str, ...], module: str, others: set[str]
) -> None:
    modules = loaded(COMMAND, *command, "--db", str(filled(tmp_path)))

    assert modules & (NEVER_AT_ONCE | SELDOM | others) == set()
    assert OF_COMMANDS & modules == {f"germane.cli.{module}"}


def test_a_command_that_counts_has_its_counter_loaded_beside_it_and_counts_the_same(tmp_path: Path) -> None:
    db = filled(tmp_path)
    ran = process(COMMAND, "assemble", "Postgres", "--db", str(db), GERMANE_EMBEDDER="none")

    assert ran.stdout == run("assemble", "Postgres", db=db).out
    assert EXACT_MODULE in ran.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_in_the_help_is_the_first_of_its_own(name: str) -> None:
    *group, word = name.split()
    listed = re.search(rf"^  {word} +(.*(?:\n {{10,}}.*)*)", run(*group, "--help").out, re.MULTILINE)
    assert listed is not None
    own = run(*name.split(), "--help").out
    summary, first = (" ".join(text.split()) for text in (listed[1], own.split("\n\n")[1]))

    assert first == summary
    assert " ".join(own.split()).count(summary) == 1


def test_what_was_registered_for_the_end_of_the_process_runs_and_all_is_printed() -> None:
    code = (
        "import atexit, sys\natexit.register(print, 'the end')\n"
        "from germane.cli import main\nprint('the beginning')\nmain()"
    )

    ran = process(code, "--version")

    assert ran.stdout.splitlines()[0] == "the beginning"
    assert ran.stdout.splitlines()[-1] == "the end"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("rememebr", "remember"), ("asemble", "assemble"), ("stat", "db stats"), ("show", "memory show")],
)
def test_a_misspelt_command_is_answered_with_the_one_that_was_meant(typed: str, meant: str) -> None:
    ran = run(typed)

    assert ran.code == 2
    assert ran.err == (
        f"germane: No such command '{typed}'. Did you mean `germane {meant}`? See `germane --help`.\n"
    )


def test_a_word_like_no_command_is_answered_without_a_guess() -> None:
    assert run("zzzz").err == "germane: No such command 'zzzz'. See `germane --help`.\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("germane re", ["remember", "recall"]),
        ("germane memory re", ["revise", "restore", "review", "record-trigger", "retire"]),
        ("germane recall --li", ["--limit"]),
        ("germane assemble --bu", ["--budget"]),
        ("germane nothing ", []),
    ],
)
def test_bash_gets_what_may_follow(typed: str, offered: list[str]) -> None:
    ran = process(
        COMMAND.removeprefix(LOADED),
        _GERMANE_COMPLETE="complete_bash",
        COMP_WORDS=typed,
        COMP_CWORD=str(typed.count(" ")),
    )

    assert [line for line in ran.stdout.splitlines() if line in offered] == offered
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="Only where there is a bash.")
def test_the_script_that_is_shown_makes_bash_complete() -> None:
    script = Path(sys.executable).with_name("germane")
    shown = subprocess.run(
        ["/bin/bash", "-c", f"{script} --show-completion; true"], capture_output=True, text=True, check=True
    ).stdout
    completion = f"""{shown}
        COMP_WORDS=({script} ass); COMP_CWORD=1
        _germane_completion {script}
        echo "${{COMPREPLY[@]}}"
    """

    done = subprocess.run(["/bin/bash", "-c", completion], capture_output=True, text=True, check=True)

    assert "complete -o default -F _germane_completion germane" in shown
    assert done.stdout == "assemble\n"


def test_the_versions_are_those_of_all_that_germane_uses() -> None:
    known = run("--version", "--json").json()
    assert list(known) == ["germane", "python", "system", "sqlite", "packages"]
    assert known["germane"] == germane.__version__ == run("--version").out.split()[1]
    assert {"numpy", "regex", "typer", "fastapi"} <= known["packages"].keys()
    assert "germane" not in known["packages"]


def test_a_bug_report_has_figures_and_no_word_of_the_store(tmp_path: Path) -> None:
    db = tmp_path / "kumquat" / "kumquat.db"
    db.parent.mkdir()
    kinds = [germane.Kind(name="kumquat", section="facts")]
    with germane.open(db, agent="kumquat", kinds=kinds, embedder=None) as engine:
        for kind in ("fact", "kumquat", "note"):
            engine.remember(f"The kumquat is a {kind}.", kind=kind, tags=["kumquat"], subject="kumquat")
        engine.conversation("kumquat").append("user", "Where are the kumquats?")
    report = run("bug-report", "--agent", "kumquat", "--json", db=db)
    shown = report.json()
    assert list(shown) == fields("`germane bug-report`")
    assert shown["agent"] | {"tokens": 0} == {
        "by_kind": {"fact": 1, "note": 1},
        "other_kinds": 1,
        "of_other_kinds": 1,
        "by_status": {"active": 3},
        "tokens": 0,
        "vectors": 0,
        "pending": 0,
        "language": "english",
    }
    assert shown["store"]["memories"] == 3
    assert shown["error"] is None
    text = run("bug-report", "--agent", "kumquat", db=db).out
    assert "### Agent\n\n- by_kind: fact 1, note 1\n" in text
    assert "kumquat" not in report.out + text
    with db.open("r+b") as file:
        file.write(b"kumquat" * 100)
    assert run("bug-report", "--json", db=db).json()["error"] == "StoreUnavailable"
    assert run("bug-report", "--json", db=tmp_path / "none.db").json()["store"] is None
    assert not (tmp_path / "none.db").exists()
