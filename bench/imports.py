"""The time that each importer takes, in seconds of processor time per megabyte of its source.

    python bench/imports.py [--formats tables mem0 …] [--megabytes 1 4 10] [--json]

Sources are made up for each format and imported into an empty store in memory, without an embedder and with
the search for secrets, as `germane import` does. A linear importer has the same figure at every size.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import germane
from germane.importers import import_source

_SIZES = (1.0, 4.0, 10.0)
_WORDS = [
    "tea",
    "train",
    "price",
    "order",
    "login",
    "cache",
    "report",
    "user",
    "retry",
    "queue",
    "index",
    "token",
    "paper",
    "garden",
    "office",
    "winter",
]
_DAY = "2026-03-01T09:30:00Z"


def main() -> None:
    """Import every format in every size and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formats", nargs="+", choices=_FORMATS, default=[*_FORMATS])
    parser.add_argument("--megabytes", nargs="+", type=float, default=list(_SIZES))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures = {}
    if not given.json:
        print("seconds of processor time per MB", *(f"{size:g} MB" for size in given.megabytes), sep=" | ")
    for name in given.formats:
        figures[name] = seconds_per_megabyte(name, given.megabytes)
        if not given.json:
            print(name, *(f"{value:.1f}" for value in figures[name].values()), sep=" | ", flush=True)
    if given.json:
        print(json.dumps(figures))


def seconds_per_megabyte(name: str, megabytes: list[float]) -> dict[str, float]:
    """The processor time of one import in each size, divided by the size of its source."""
    figures = {}
    for size in megabytes:
        with tempfile.TemporaryDirectory() as folder, germane.open(":memory:", embedder=None) as engine:
            source = _FORMATS[name](Path(folder), int(size * 1_000_000))
            made = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
            start = time.process_time()
            report = import_source(engine, str(source))
            figures[f"{size:g}"] = round((time.process_time() - start) / made * 1_000_000, 2)
        assert report.created, f"{name} gave no memory: {report}"
    return figures


# The sources, each about as large as it is wanted.


def _sentences(seed: str = "") -> Iterator[str]:
    random = Random(seed)
    number = 0
    while True:
        number += 1
        yield f"{' '.join(random.choices(_WORDS, k=12)).capitalize()} {number}."


def _several(size: int, make: Callable[[str, int], Any]) -> list[Any]:
    """As many of what `make` gives of a sentence and a number as have about this size as JSON."""
    made: list[Any] = []
    left = size
    for number, text in enumerate(_sentences()):
        if left <= 0:
            break
        made.append(make(text, number))
        left -= len(json.dumps(made[-1])) + 2
    return made


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _text(size: int, section: Callable[[Iterator[str], int], str]) -> str:
    """Sections of Markdown until the text has the size."""
    words, parts, left = _sentences(), list[str](), size
    while left > 0:
        parts.append(section(words, len(parts)))
        left -= len(parts[-1])
    return "".join(parts)


def _prose(words: Iterator[str], number: int) -> str:
    return f"## Section {number}\n\n" + "\n".join(next(words) for _ in range(8)) + "\n\n"


def _tables(words: Iterator[str], number: int) -> str:
    rows = "".join(f"| {number} | {next(words)} | `x{row}` |\n" for row in range(20))
    return f"## Section {number}\n\n| n | text | name |\n|---|---|---|\n{rows}\n"


def _one_table(folder: Path, size: int) -> Path:
    head = "# Table\n\n| n | text | name |\n|---|---|---|\n"
    return _file(
        folder, "a.md", head + _text(int(size * 0.99), lambda words, n: f"| {n} | {next(words)} | `x` |\n")
    )


def _lists(words: Iterator[str], number: int) -> str:
    items = "".join(f"- {next(words)}\n  - {next(words)}\n" for _ in range(10))
    return f"## Section {number}\n\n{items}\n```python\n{next(words)}\n```\n\n"


def _markdown(section: Callable[[Iterator[str], int], str]) -> Callable[[Path, int], Path]:
    return lambda folder, size: _file(folder, "a.md", f"# Title\n\n{_text(size, section)}")


def _instructions(folder: Path, size: int) -> Path:
    _file(folder, "docs/a.md", "One.\n")
    text = _text(size, lambda words, number: f"{_prose(words, number)}See @docs/a.md and @gone.md\n\n")
    return _file(folder, "CLAUDE.md", text)


def _vault(folder: Path, size: int) -> Path:
    _file(folder, ".obsidian/app.json", "{}")
    for number in range(size // 4_000):
        note = "".join(
            f"{text} [[Note {number + 1}]] #tea\n\n"
            for text, _ in zip(_sentences(str(number)), range(38), strict=False)
        )
        _file(folder, f"n{number}.md", note)
    return folder


def _lines(make: Callable[[str, int], Any], name: str = "a.jsonl") -> Callable[[Path, int], Path]:
    return lambda folder, size: _file(folder, name, "\n".join(map(json.dumps, _several(size, make))) + "\n")


def _json(
    name: str, whole: Callable[[list[Any]], Any], make: Callable[[str, int], Any]
) -> Callable[[Path, int], Path]:
    return lambda folder, size: _file(folder, name, json.dumps(whole(_several(size, make))))


def _export(folder: Path, size: int) -> Path:
    from germane.importers import export_jsonl  # noqa: PLC0415 - Only this format needs it.

    with germane.open(":memory:", embedder=None) as engine:
        texts = _several(size // 6, lambda text, _: text)
        engine.remember_many([germane.Draft(content=text) for text in texts])
        with (folder / "a.jsonl").open("w", encoding="utf-8", newline="\n") as out:
            export_jsonl(reversed([*engine.memories(limit=len(texts))]), out)
    return folder / "a.jsonl"


def _dialogue(folder: Path, size: int) -> Path:
    speakers = ("user", "assistant")
    return _file(
        folder, "a.txt", _text(size, lambda words, number: f"{speakers[number % 2]}: {next(words)}\n")
    )


def _locomo(turns: list[Any]) -> Any:
    talk: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Ben"}
    for number in range(0, len(turns), 20):
        session = f"session_{number // 20 + 1}"
        talk |= {f"{session}_date_time": "9:30 am on 1 March, 2026", session: turns[number : number + 20]}
    return [{"sample_id": "a", "conversation": talk, "qa": []}]


def _langgraph(folder: Path, size: int) -> Path:
    names = ("prefix", "key", "value", "created_at", "updated_at", "expires_at", "ttl_minutes")
    columns = ", ".join(names)
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection, connection:
        connection.execute(f"CREATE TABLE store ({columns})")
        rows = _several(
            int(size / 1.4),
            lambda text, number: (f"ann.{number % 9}", f"k{number}", json.dumps({"text": text})),
        )
        connection.executemany(
            "INSERT INTO store VALUES (?, ?, ?, '2026-03-01', '2026-03-01', NULL, NULL)", rows
        )
    return folder / "a.sqlite"


def _of_chatgpt(messages: list[Any]) -> Any:
    nodes = {"n0": {"id": "n0", "message": None, "parent": None}}
    for number, message in enumerate(messages, 1):
        nodes[f"n{number}"] = {"id": f"n{number}", "message": message, "parent": f"n{number - 1}"}
    return [
        {"id": "c", "title": "t", "mapping": nodes, "current_node": f"n{len(messages)}", "create_time": 1.0}
    ]


def _message(text: str, number: int) -> Any:
    role = ("user", "assistant")[number % 2]
    return {
        "author": {"role": role},
        "content": {"content_type": "text", "parts": [text]},
        "create_time": 1.0 + number,
    }


def _of_claude(text: str, number: int) -> Any:
    sender = ("human", "assistant")[number % 2]
    return {"sender": sender, "content": [{"type": "text", "text": text}], "text": text, "created_at": _DAY}


_FORMATS: dict[str, Callable[[Path, int], Path]] = {
    "prose": _markdown(_prose),
    "tables": _markdown(_tables),
    "one table": _one_table,
    "lists and code": _markdown(_lists),
    "CLAUDE.md": _instructions,
    "Obsidian": _vault,
    "memories": _lines(lambda text, n: {"content": text, "kind": "fact", "subject": f"s{n}"}),
    "export": _export,
    "transcript": _lines(lambda text, n: {"role": ("user", "assistant")[n % 2], "content": text}),
    "dialogue": _dialogue,
    "LoCoMo": _json("a.json", _locomo, lambda text, n: {"speaker": "Ann", "dia_id": f"D1:{n}", "text": text}),
    "mem0": _json(
        "a.json",
        lambda all_: {"results": all_},
        lambda text, n: {"id": f"m{n}", "memory": text, "user_id": "ann"},
    ),
    "LangGraph": _langgraph,
    "Letta": _json(
        "a.af",
        lambda all_: {"agents": [{"name": "a", "messages": all_}], "blocks": []},
        lambda text, n: {
            "id": f"m{n}",
            "role": "user",
            "content": [{"type": "text", "text": text}],
            "created_at": _DAY,
        },
    ),
    "Graphiti": _json(
        "a.json",
        lambda all_: {"edges": all_},
        lambda text, n: {"uuid": f"e{n}", "fact": text, "created_at": _DAY},
    ),
    "MCP memory": _lines(
        lambda text, n: {"type": "entity", "name": f"E{n}", "entityType": "t", "observations": [text]}
    ),
    "ChatGPT": _json("conversations.json", _of_chatgpt, _message),
    "Claude": _json(
        "conversations.json",
        lambda all_: [{"uuid": "c", "name": "n", "chat_messages": all_, "created_at": _DAY}],
        _of_claude,
    ),
}


if __name__ == "__main__":
    main()
