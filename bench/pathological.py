"""Seconds per megabyte of everything that reads text from outside, on text that is made to take long.

    python bench/pathological.py [--sizes 0.1 1] [--kinds 200] [--only importer] [--seconds 60] [--rows]

Each importer, verb and pattern reads a hostile piece that is repeated up to each size, in megabytes, in a
process of its own: CPU seconds are measured, and a text that takes longer than `--seconds` ends its process.
The pieces are those of KINDS, and with `--kinds` as many random ones besides, of at most 40 characters.
A consumer is linear if no piece takes more than twice as long per megabyte at one size as at the size before;
anything else is listed, and the exit status is 1. With `--rows` each measurement is printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import germane
from germane.errors import GermaneError
from germane.importers import find_secrets, import_source, read_markdown, read_scoped
from germane.tokens import COUNTERS, get_counter

__all__ = ["CONSUMERS", "KINDS", "read_hostile", "text_of_size"]

SAMPLES: Final = Path(__file__).parents[1] / "tests" / "imports"
_FOLDERS: Final = ("## ", "# #", "- ", "* ", "> ", ">", "1. ", "| a ", "|-", "    x\n", "```\n", "~~~\n")

KINDS: Final[Mapping[str, str]] = {
    each.replace("\n", "⏎")[:24]: each
    for each in (
        # Patterns with repetition inside repetition.
        "a", " ", "\n", "\t", "a ", "a-", "a.", "a_", "a:", "a'", "A", "Aa", "0", "0,", "0.", "0:", ". ",
        "x\n", "sk-", "eyJ-", "eyJaaaaaaaaaaa.", "://", "http://a:", "http://a:b@", "@", "a@a.", "key=",
        "password is ", "-----BEGIN A PRIVATE KEY-----", "a1B2c3D4e5", "41 ", "\\u0041", "%20", "&#105;",
        "&amp;",
        # Markdown, HTML and fences.
        *_FOLDERS, "`", "``` ", "```x```", "*a", "**", "_a_", "[", "](", "[a](b", "![a](http://x/?", "<",
        "<a ", "<img ", "<!--", "</", "<system>", "<|im_start", "<recalled-from-memory>", "\\<", "===\n",
        "---\n", "[[a", "#a ", "- [ ] ", "!", "$$", "{{", "- a\n  ", "\n\n", "\r", "\r\n", "<details>",
        # Data formats.
        "{", '{"a":', "[0,", '"', "\\", "'", "a: ", "- - ", "&a ", "*a, ", "key: [", "{a: ", "[a.b]\n",
        "import a\n", '"""', "/**", "//", "#[", "require (\n",
        # Conversations, learning and questions.
        "user: ", "user: a\n", "Human: ", "Ann: I like tea.\n", "I like tea and ", "my name is ", "I am a ",
        "is the ", "not ", "ignore all ", "you are now ", "new system instruction ", "tell me your ",
        "send the ", "do not tell ", "system: ", "### System: \n", '{"tool_calls"', "[INST", "no, ",
        "because ", "last ", "two days ", "between May and ", "since 2023-", "1 May ", "Dr. ", "e.g. ",
        "a (b) ", "“", "Ann's ", "(", "((a) or ", "a = 1 and ", "not (", "tag:", "a in [1, ", "a/", "../",
        "**/", "v1.", "@8f3a", "abcdef01",
        # Other scripts and characters without width.
        "é", "e\u0301", "ß", "İ", "日本", "ا", "\u0e01", "\U0001f600", "👩‍👩‍👧", "\u200b", "a\u200ba ",
        "\u202e", "\ufdfa", "\u1100", "\ufeff", "\x00", "\x1b[0m", "\u2028", "аa ",
    )
}  # fmt: skip
"""Pieces by name, each to be repeated."""

NESTED: Final = {
    "nested JSON arrays": ("[", "]"),
    "nested JSON objects": ('{"a":', "}"),
    "nested brackets": ("(", ")"),
    "nested links": ("[a", "](b)"),
    "nested tags": ("<a>", "</a>"),
    "nested quotes": ("> ", ""),
    "nested emphasis": ("*a _b ", "_*"),
}
"""Texts that open as often as they close."""

COUNTED: Final = {
    "words": "w{:x} ",
    "statements": "I like tea{} of Berlin.\n",
    "headings": "# Tea {}\n\nBlack.\n\n",
    "links": "[[Tea {0}]] [a](b{0}.md) ",
    "addresses": "https://tea{}.example/a ",
    "turns": "user: Tea {}?\nassistant: Yes.\n",
    "records": '{{"content": "Tea {}"}}\n',
    "names": "Ann Tea{0} met Bob Milk{0}. ",
}
"""Texts of parts that differ by a number."""

Consumer = Callable[[str], object]


def text_of_size(kind: str, size: int) -> str:
    """Hostile text of at most `size` characters: a piece of KINDS, NESTED or COUNTED, or `random SEED`."""
    if kind in NESTED:
        opens, closes = NESTED[kind]
        times = size // (len(opens) + len(closes))
        return opens * times + closes * times
    if kind in COUNTED:
        form = COUNTED[kind]
        return "".join(form.format(number) for number in range(size // len(form.format(99_999))))
    unit = _random_unit(int(kind.removeprefix("random "))) if kind.startswith("random ") else KINDS[kind]
    return unit * (size // len(unit))


def kinds_of_text(count: int) -> list[str]:
    """The names of all kinds of text, with `count` random ones."""
    return [*KINDS, *NESTED, *COUNTED, *(f"random {seed}" for seed in range(count))]


def _random_unit(seed: int) -> str:
    chance = random.Random(seed)
    parts = [*KINDS.values(), *"aA1 \n-_./:@#*`<>[](){}\"'|&!?,;=+~\\$%^"]
    return "".join(chance.choice(parts) for _ in range(chance.randrange(2, 9)))[:40]


# What reads text.


def _engine() -> germane.Engine:
    return germane.open(":memory:", embedder=None)


def _imported(name: str, made: Callable[[str], str], text: str) -> object:
    """The report of an import of one file of this name."""
    with tempfile.TemporaryDirectory() as folder, _engine() as engine:
        path = Path(folder, name)
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(made(text), encoding="utf-8", errors="replace")
        return import_source(engine, str(path))


def _imported_folder(name: str, text: str) -> object:
    with tempfile.TemporaryDirectory() as folder, _engine() as engine:
        Path(folder, name).parent.mkdir(exist_ok=True, parents=True)
        Path(folder, name).write_text(text, encoding="utf-8", errors="replace")
        return import_source(engine, folder)


def _in_sample(sample: str, replaced: str, text: str) -> str:
    """A file of another product in which one text is the hostile one."""
    whole = (SAMPLES / sample).read_text(encoding="utf-8")
    assert replaced in whole
    return whole.replace(json.dumps(replaced)[1:-1], json.dumps(text)[1:-1])


def _in_git(text: str) -> object:
    """The report of an import of a commit with the text as its message."""
    with tempfile.TemporaryDirectory() as folder, _engine() as engine:
        git = (
            "git",
            "-C",
            folder,
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.c",
            "-c",
            "commit.gpgsign=false",
        )
        subprocess.run([*git, "init", "-q"], check=True)  # noqa: S603 - It is git itself.
        subprocess.run(  # noqa: S603 - As above.
            [*git, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "-"],
            input=text.replace("\0", "0").encode(errors="replace"),
            check=True,
        )
        return import_source(engine, f"git:{folder}")


def _remembered(text: str) -> object:
    with _engine() as engine:
        memory = engine.remember(text, trust="external", source="web")
        return engine.expand(memory.id), engine.assemble("tea", budget=500).text


def _with_memories(call: Callable[[germane.Engine, str], object], text: str) -> object:
    with _engine() as engine:
        engine.remember_many(f"Service {number} uses redis, May {number} 2023." for number in range(1, 25))
        return call(engine, text)


def _requested(engine: germane.Engine, text: str) -> object:
    talk = engine.conversation("talk")
    talk.append("user", "What about redis?")
    talk.append("assistant", text)
    talk.append("user", text)
    request = engine.request(talk, memory="layered", window=30_000, reserve=1000)
    return request, talk.summary(), engine.compaction(talk, budget=500)


def _learned(engine: germane.Engine, text: str) -> object:
    talk = engine.conversation("talk")
    talk.append("user", text)
    return engine.learn_from(talk), engine.about(text[:150])


def _observed(engine: germane.Engine, text: str) -> object:
    context = engine.assemble("redis", budget=500)
    return engine.observe(context, text), engine.refresh(context, text, budget=500)


def _with_kinds(text: str) -> object:
    """A store whose plan has a kind for each 40 characters."""
    names = [f"kind {number} {text[number : number + 20]}" for number in range(0, len(text), 40)]
    with germane.open(":memory:", embedder=None, kinds=[germane.Kind(name=name) for name in names]) as engine:
        return engine.kinds()


def _scoped(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "plan.toml")
        path.write_text(text, encoding="utf-8", errors="replace")
        return read_scoped(path)


def _gitignored(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder, _engine() as engine:
        Path(folder, ".gitignore").write_text(text, encoding="utf-8", errors="replace")
        Path(folder, "a" * 200 + ".md").write_text("# Tea", encoding="utf-8")
        return import_source(engine, folder)


def _markdown(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "notes.md")
        path.write_text(text, encoding="utf-8", errors="replace")
        return list(read_markdown(path))


CONSUMERS: Final[Mapping[str, Consumer]] = {
    "remember and assemble": _remembered,
    "recall": partial(_with_memories, lambda engine, text: engine.recall(text)),
    "assemble": partial(_with_memories, lambda engine, text: engine.assemble(text, budget=500)),
    "scoped task": partial(
        _with_memories,
        lambda engine, text: engine.assemble(text, plan="scoped", task=text, paths=[text[:200]]),
    ),
    "filter": partial(_with_memories, lambda engine, text: engine.count(germane.Filter(where=text))),
    "time": partial(_with_memories, lambda engine, text: engine.memories(as_of=text)),
    "id": partial(_with_memories, lambda engine, text: engine.get(text)),
    "request": partial(_with_memories, _requested),
    "learn": partial(_with_memories, _learned),
    "observe": partial(_with_memories, _observed),
    "kinds": _with_kinds,
    "secrets": find_secrets,
    **{f"counter {name}": get_counter(name).count for name in COUNTERS},
    "importer markdown, read": _markdown,
    "importer markdown": partial(_imported, "notes.md", str),
    "importer front matter": partial(_imported, "notes.md", lambda text: f"---\na: {text}\n---\n# Tea\n"),
    "importer decision": partial(_imported, "adr/0001-tea.md", lambda text: f"# Tea\n\n## Decision\n{text}"),
    "importer table": partial(
        _imported, "t.md", lambda text: "| a | b |\n|---|---|\n| " + text.replace("\n", " ") + " |\n"
    ),
    "importer instructions": partial(_imported, "CLAUDE.md", str),
    "importer folder": partial(_imported_folder, "README.md"),
    "importer gitignore": _gitignored,
    "importer git": _in_git,
    "importer python": partial(_imported_folder, "a/tea.py"),
    "importer docstring": partial(
        _imported, "tea.py", lambda text: '"""' + text.replace('"""', "") + '"""\n'
    ),
    "importer javascript": partial(_imported_folder, "tea.js"),
    "importer go": partial(_imported_folder, "tea.go"),
    "importer rust": partial(_imported_folder, "tea.rs"),
    "importer pyproject": partial(_imported_folder, "pyproject.toml"),
    "importer package.json": partial(_imported_folder, "package.json"),
    "importer go.mod": partial(_imported_folder, "go.mod"),
    "importer obsidian": partial(_imported_folder, ".obsidian/../Tea.md"),
    "importer canvas": partial(_imported_folder, "Board.canvas"),
    "importer memories": partial(_imported, "m.jsonl", lambda text: json.dumps({"content": text})),
    "importer json lines": partial(_imported, "m.jsonl", str),
    "importer json": partial(_imported, "m.json", str),
    "importer text": partial(_imported, "m.txt", str),
    "importer chat lines": partial(_imported, "m.txt", lambda text: f"user: {text}\nassistant: {text}\n"),
    "importer messages": partial(
        _imported, "m.json", lambda text: json.dumps([{"role": "user", "content": text}])
    ),
    "importer chatgpt": partial(
        _imported,
        "conversations.json",
        partial(_in_sample, "chatgpt/conversations.json", "Ann is an engineer in Bern."),
    ),
    "importer claude": partial(
        _imported,
        "conversations.json",
        partial(_in_sample, "claude/conversations.json", "A cake without nuts?"),
    ),
    "importer mem0": partial(
        _imported, "m.json", partial(_in_sample, "mem0/get_all.json", "Ann is allergic to nuts.")
    ),
    "importer mcp memory": partial(
        _imported, "m.jsonl", partial(_in_sample, "mcp_memory.jsonl", "Can't eat nuts")
    ),
    "importer graphiti": partial(
        _imported, "m.json", partial(_in_sample, "graphiti.json", "Ann works at Acme.")
    ),
    "importer letta": partial(_imported, "m.af", partial(_in_sample, "waiter.af", "You are a waiter.")),
}
"""What reads text from outside, by name."""


def read_hostile(consumer: str, kind: str, size: int) -> str | None:
    """Let a consumer read hostile text of `size` characters; the class of the error, if it refuses it."""
    try:
        CONSUMERS[consumer](text_of_size(kind, size))
    except GermaneError as error:
        return type(error).__name__
    return None


# Measuring.


@dataclass(frozen=True)
class Measured:
    """CPU seconds of one consumer on a text, or None where it took too long."""

    consumer: str
    kind: str
    size: int
    seconds: float | None
    refused: str | None


class Child:
    """A process that measures, which is replaced when a text takes too long."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._start()

    def measure(self, consumer: str, kind: str, size: int) -> Measured:
        if consumer not in self._used:  # What the first use loads isn't measured.
            self._used.add(consumer)
            self._here.send((consumer, "a ", 500, 0))
            self._here.recv()
        self._here.send((consumer, kind, size, self._patience))
        try:
            seconds, refused = self._here.recv()
        except EOFError:
            self.stop()
            self._start()
            return Measured(consumer, kind, size, None, None)
        return Measured(consumer, kind, size, seconds, refused)

    def stop(self) -> None:
        self._process.kill()
        self._process.join()

    def _start(self) -> None:
        self._used = set[str]()
        self._here, there = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(there,), daemon=True
        )
        self._process.start()
        there.close()


def _serve(here: Connection) -> None:
    while True:
        consumer, kind, size, patience = here.recv()
        signal.setitimer(
            signal.ITIMER_PROF, patience
        )  # Its signal ends the process, also inside of a pattern.
        began = time.process_time()
        try:
            refused = read_hostile(consumer, kind, size)
        except Exception as error:  # noqa: BLE001 - What is looked for.
            refused = f"! {type(error).__name__}: {str(error)[:200]}"
        here.send((time.process_time() - began, refused))


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=float, nargs="+", default=[0.1, 1.0], help="megabytes")
    parser.add_argument("--kinds", type=int, default=0, help="random pieces besides the named ones")
    parser.add_argument("--only", default="", help="consumers whose name contains this")
    parser.add_argument("--kind", default=None, help="this kind of text alone")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="the most CPU time that one text may take"
    )
    parser.add_argument("--rows", action="store_true")
    given = parser.parse_args()
    child, findings, began = Child(given.seconds), list[str](), time.monotonic()
    kinds = [given.kind] if given.kind else kinds_of_text(given.kinds)
    print(
        f"{'consumer':<26}{'kinds':>6}" + "".join(f"{f's/MB at {size:g}':>14}" for size in given.sizes),
        "slowest",
    )
    for consumer in CONSUMERS:
        if given.only in consumer:
            rows = [
                [child.measure(consumer, kind, int(size * 1e6)) for size in given.sizes] for kind in kinds
            ]
            if given.rows:
                print(*(each for row in rows for each in row), sep="\n")
            findings += [finding for row in rows for finding in _findings(row)]
            print(_line(consumer, rows), flush=True)
    child.stop()
    print(f"\n{len(findings)} findings in {time.monotonic() - began:.0f} s", *findings, sep="\n")
    return 1 if findings else 0


def _per_megabyte(each: Measured) -> float:
    return float("inf") if each.seconds is None else each.seconds / each.size * 1e6


def _line(consumer: str, rows: Sequence[Sequence[Measured]]) -> str:
    by_size = list(zip(*rows, strict=True))
    slowest = max(by_size[-1], key=_per_megabyte)
    figures = "".join(f"{max(map(_per_megabyte, each)):>14.2f}" for each in by_size)
    return f"{consumer:<26}{len(rows):>6}{figures} {slowest.kind!r}"


def _findings(row: Sequence[Measured]) -> Iterator[str]:
    """What isn't linear, or is an error that isn't one of germane's own."""
    for each in row:
        if each.refused and each.refused.startswith("!"):
            yield f"{each.consumer}: {each.kind!r} at {each.size:,}: {each.refused}"
        if each.seconds is None:
            yield f"{each.consumer}: {each.kind!r} at {each.size:,}: took too long"
    for before, after in pairwise(row):
        grown = _per_megabyte(after) > 2 * _per_megabyte(before)
        if after.seconds is not None and after.seconds > 0.2 and grown and before.seconds is not None:
            yield (
                f"{after.consumer}: {after.kind!r}: {_per_megabyte(before):.2f} s/MB at {before.size:,}, "
                f"{_per_megabyte(after):.2f} at {after.size:,}"
            )


if __name__ == "__main__":
    sys.exit(_main())
