"""Conversations in several processes: nothing acknowledged is lost, and nothing purged is left."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

import germane
from germane.testing.fakes import make_message

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("conversation_child.py")


def start(task: str, path: Path, argument: str, output: Path | None = None) -> subprocess.Popen[str]:
    with output.open("wb") if output else nullcontext(subprocess.PIPE) as stdout:
        return subprocess.Popen(
            [sys.executable, str(CHILD), task, str(path), argument],
            stdout=stdout,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )


@pytest.mark.timeout(300)
def test_killing_two_speakers_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    germane.open(path, embedder=None).close()
    chance = random.Random(5)  # noqa: S311 - a test has to repeat.
    acknowledged: set[str] = set()
    hidden: set[str] = set()
    for number in range(3):
        outputs = [tmp_path / f"{number}{part}.txt" for part in "ab"]
        children = [
            start("say", path, f"{number}{part}", output) for part, output in zip("ab", outputs, strict=True)
        ]
        while not all(output.exists() and output.stat().st_size for output in outputs):
            assert all(child.poll() is None for child in children)
            time.sleep(0.01)
        time.sleep(chance.uniform(0.05, 0.3))
        for child in children:
            child.send_signal(signal.SIGKILL)
            child.communicate()
        for output in outputs:
            # The last line may have been cut; only whole ones were acknowledged.
            lines = output.read_text(encoding="utf-8").splitlines(keepends=True)
            whole = [line.strip() for line in lines if line.endswith("\n")]
            acknowledged.update(line for line in whole if not line.startswith("hidden "))
            hidden.update(line.removeprefix("hidden ") for line in whole if line.startswith("hidden "))
    with germane.open(path, agent="tester", embedder=None) as engine:
        chat = engine.conversation("shared")
        messages = chat.messages(hidden=True)
        assert engine.doctor() == ()
        assert acknowledged <= {message.id for message in messages}
        assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
        assert hidden.isdisjoint({message.group for message in chat.messages()})
        # What was appended together is there together: an answer and what came with it.
        texts = {message.text for message in messages}
        assert {text.replace("answer", "more") for text in texts if "answer" in text} == {
            text for text in texts if "more" in text
        }
    assert len(acknowledged) >= 20
    assert hidden


@pytest.mark.timeout(300)
@pytest.mark.parametrize("driver", ["sqlite3", "pysqlite3"])
def test_a_purged_conversation_leaves_no_byte(tmp_path: Path, driver: str) -> None:
    if importlib.util.find_spec(driver) is None:
        pytest.skip("needs pysqlite3-binary, a SQLite that doesn't delete securely unless it is told to")
    child = start("purge", tmp_path / "agent.db", driver)
    out, _ = child.communicate()
    assert child.returncode == 0
    lines = out.splitlines()
    assert len(lines) == 12
    # The file holds all remaining texts, which shows that a trace would have been seen.
    for line in lines:
        assert line.endswith("traces of []")
        if line.startswith("agent.db keeps"):
            _, _, present, _, current, *_ = line.split()
            assert present == current


def test_an_open_engine_hears_what_another_wrote_and_did(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with (
        germane.open(path, agent="ada", embedder=None) as one,
        germane.open(path, agent="ada", embedder=None) as two,
    ):
        mine, theirs = one.conversation("chat"), two.conversation("chat")
        first = mine.append("user", "redis cache")
        assert theirs.messages() == (first,)
        assert theirs.ranked(query="redis").scores == {}
        second = theirs.append("user", "redis timeout")
        assert [each.id for each in mine.messages()] == [first.id, second.id]
        assert set(mine.ranked(query="redis").scores) == {first.id}
        theirs.hide(first.id)
        assert mine.messages() == (second,)
        assert mine.ranked(query="redis cache").scores == {}
        theirs.unhide(first.id)
        theirs.remove(second.id)
        assert mine.messages() == (first,)
        theirs.purge(confirm=True)
        assert mine.messages(hidden=True) == ()
        again = theirs.append("user", "anew")
        assert mine.messages() == (again,)
        assert again.seq == 1


def test_a_store_that_is_only_read_shows_its_conversations(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, agent="ada", embedder=None) as engine:
        engine.remember("Redis is the cache.")
        engine.conversation("chat").append(make_message("hello"))
    with germane.open(path, agent="ada", embedder=None, read_only=True) as engine:
        assert [each.text for each in engine.conversation("chat").messages()] == ["hello"]
        assert engine.conversation("chat").ranked(query="hello").groups != ()
        with pytest.raises(germane.StoreUnavailable):
            engine.conversation("chat").append("user", "no")
