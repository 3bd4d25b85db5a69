"""The documentation as tests see it: pages, their blocks, and what running a page prints.

A page's ```python blocks share one namespace, and they and its ```console blocks one folder of their
own. Each database that a page names as `postgresql://localhost/…` stands for an empty one on a server that
is started for the page, and `http://localhost:11434/v1` for a stand-in of a model's server. What a block
prints is compared with the ```text output block after it, or, in a ```console output block, with the lines
under each command. Ids and moments differ from run to run and are compared as such. A block marked
`illustration` is not run, for what needs a server, a library or files that aren't there; its code is compiled
all the same, and its commands have to exist.

`python tests/docs/pages.py` runs every page and example and writes what they printed into them.
"""

from __future__ import annotations

import gc
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import Any

__all__ = [
    "EXAMPLES",
    "ILLUSTRATION",
    "ROOT",
    "Block",
    "Shown",
    "blocks_of",
    "commands_of",
    "masked",
    "needs_server",
    "pages",
    "run_example",
    "run_page",
    "run_with_model",
]

ROOT = Path(__file__).parents[2]
EXAMPLES = tuple(sorted(each for each in (ROOT / "examples").glob("*.py") if each.stem != "model"))
"""All programs; the module `model` is part of several."""
OUTPUT = "output"
ILLUSTRATION = "illustration"

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DATABASE = re.compile(r"postgresql://localhost/\w+")
_MODEL = "http://localhost:11434/v1"
_PROMPT = "$ "
_WINDOW = re.compile(r"^WINDOW, RESERVE = (\d+)", re.MULTILINE)
"""In an example that calls a model, whose window a stand-in for the model's server enforces."""
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
_CHANGING = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "<short>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: UTC|Z|\+00:00)?)?"), "<time>"),
    (re.compile(r"(?<=<id>, )\d{1,2} [A-Z][a-z]+ \d{4}\b"), "<day>"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: its language, the words after it, its text, and where the text stands."""

    language: str
    words: tuple[str, ...]
    text: str
    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a page says that a block prints, and what it does print."""

    block: Block
    actual: str


def pages() -> tuple[Path, ...]:
    """Every page whose examples are promised to work; decision records tell of their time."""
    docs = [page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts]
    return (ROOT / "README.md", *sorted(docs), ROOT / "CONTRIBUTING.md")


def blocks_of(text: str) -> tuple[Block, ...]:
    """The fenced blocks of a page that name a language, in order."""
    return tuple(
        Block(
            language=found[1],
            words=tuple(found[2].split()),
            text=found[3],
            start=found.start(3),
            end=found.end(3),
            line=text.count("\n", 0, found.start(3)) + 1,
        )
        for found in _FENCE.finditer(text)
    )


def commands_of(block: Block) -> Iterator[list[str]]:
    """The words of each command of a console block."""
    joined = block.text.replace("\\\n", " ")
    for line in joined.splitlines():
        if line.startswith(_PROMPT):
            yield shlex.split(line.removeprefix(_PROMPT), comments=True)


def masked(text: str) -> str:
    """The text with ids and moments replaced, and without spaces at the ends of its lines."""
    for changing, name in _CHANGING:
        text = changing.sub(name, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def needs_server(page: Path) -> bool:
    """Whether a page's examples need a PostgreSQL server."""
    return bool(_DATABASE.search(page.read_text(encoding="utf-8")))


def run_page(page: Path, folder: Path) -> list[Shown]:
    """Run a page's blocks in `folder`, and return what each block prints whose output the page shows."""
    named: dict[str, str] = {}
    with ExitStack() as servers:
        if needs_server(page):
            named |= servers.enter_context(_databases(page))
        if _MODEL in page.read_text(encoding="utf-8"):
            from support.model_server import model_server  # noqa: PLC0415 - Few pages need one.

            named[_MODEL] = servers.enter_context(model_server(10_000)) + "/v1"
        return _run_in(folder, page, named)


def _run_in(folder: Path, page: Path, named: Mapping[str, str]) -> list[Shown]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    # Only what the page makes is collected: looking through the heap of a whole test run takes seconds.
    gc.freeze()
    with chdir(folder), warnings.catch_warnings():
        # A page shows one thing at a time, and not each time how an engine is closed.
        warnings.simplefilter("ignore", ResourceWarning)
        shown = list(_run(page, namespace, named))
        namespace.clear()
        gc.collect()
    gc.unfreeze()
    return [replace(each, actual=_as_named(each.actual, named)) for each in shown]


@contextmanager
def _databases(page: Path) -> Iterator[Mapping[str, str]]:
    """A database for each that the page names; the addresses by those names."""
    from support.postgres_server import Server  # noqa: PLC0415 - Few pages need one.

    server = Server()
    try:
        server.create()
        server.start()
        found = dict.fromkeys(_DATABASE.findall(page.read_text(encoding="utf-8")))
        yield {each: server.url(server.fresh()) for each in found}
    finally:
        server.stop()


def _as_named(text: str, named: Mapping[str, str]) -> str:
    """What a page prints, with the addresses in it that the page names."""
    from germane.stores import location_of  # noqa: PLC0415 - As above.

    for name, address in named.items():
        text = text.replace(address, name)
        if name != _MODEL:
            text = text.replace(location_of(address), location_of(name))
    return text


def _with_addresses(block: Block, named: Mapping[str, str]) -> Block:
    text = block.text.replace(_MODEL, named.get(_MODEL, _MODEL))
    return replace(block, text=_DATABASE.sub(lambda name: named.get(name[0], name[0]), text))


def _run(page: Path, namespace: dict[str, Any], named: Mapping[str, str]) -> Iterator[Shown]:
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    for block, after in zip_longest(blocks, blocks[1:]):
        if block.language == "python":
            printed = _run_python(_with_addresses(block, named), page, namespace)
            if after is not None and after.language == "text" and OUTPUT in after.words:
                yield Shown(block=after, actual=printed)
        elif block.language == "console" and ILLUSTRATION not in block.words:
            printed = _run_console(block, named)
            if OUTPUT in block.words:
                yield Shown(block=block, actual=printed)


def run_example(example: Path) -> str:
    """What an example prints when it is run as its readers run it, beside a server if it needs a model."""
    window = _WINDOW.search(example.read_text(encoding="utf-8"))
    if window is None:
        return _run_program(example)
    return run_with_model(example, window=int(window[1]))


def run_with_model(example: Path, *arguments: str, window: int = 10_000) -> str:
    """What an example prints whose model is a stand-in behind a server."""
    from support.model_server import model_server  # noqa: PLC0415 - Few examples need one.

    with model_server(window) as address:
        base = address + ("" if "anthropic" in example.name else "/v1")
        return _run_program(example, "--base-url", base, *arguments)


def _run_program(example: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **dict.fromkeys(_KEYS, "none")},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{example.name} ended with {done.returncode}:\n{done.stderr}"
    assert done.stderr == ""
    return done.stdout


def _run_python(block: Block, page: Path, namespace: dict[str, Any]) -> str:
    # Empty lines before the block let a traceback name the line of the page.
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True)
    out = StringIO()
    if ILLUSTRATION not in block.words:
        with redirect_stdout(out):
            exec(code, namespace)  # noqa: S102 - Running the documentation's own examples is the point.
    return out.getvalue()


def _run_console(block: Block, named: Mapping[str, str]) -> str:
    """What the block's `germane` commands print, each after the lines of its command."""
    printed: list[str] = []
    for part in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE):
        if part.startswith(_PROMPT):
            typed = re.match(r"(?:.*\\\n)*.*\n?", part)
            assert typed is not None
            printed.append(typed[0])
            words = next(commands_of(_with_addresses(replace(block, text=part), named)))
            if words[0] == "germane":
                printed.append(_run_germane(words[1:]))
    return "".join(printed)


def _run_germane(arguments: list[str]) -> str:
    from commandline import run_here  # noqa: PLC0415 - Pages without commands don't need it.

    code, out, err = run_here(arguments)
    assert code == 0, f"germane {shlex.join(arguments)} ended with {code}:\n{err}"
    return out


def _rewrite(page: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        shown = run_page(page, Path(folder))
    text = page.read_text(encoding="utf-8")
    for one in reversed(shown):
        if masked(one.block.text) != masked(one.actual):
            lines = "".join(f"{line.rstrip()}\n" for line in one.actual.strip("\n").splitlines())
            text = text[: one.block.start] + lines + text[one.block.end :]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    # The other modules of the tests are found beside this one's folder.
    sys.path.insert(0, str(ROOT / "tests"))
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    for each in chosen or pages():
        if each.suffix == ".md":
            _rewrite(each)
    for each in chosen or EXAMPLES:
        if each.suffix == ".py":
            each.with_suffix(".txt").write_text(run_example(each), encoding="utf-8")
