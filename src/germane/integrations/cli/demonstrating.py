"""demo: germane at work, on the memory that travels with it and on the project it is run in.

Level: integrations.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import germane
from germane import InvalidInput, MissingExtra, UnreadableSource
from germane.integrations.cli.command import Call, command
from germane.integrations.cli.evaluating import numbers_of
from germane.integrations.cli.options import opt
from germane.integrations.cli.output import is_terminal, print_text
from germane.model.columns import harmless

if TYPE_CHECKING:
    from germane import Context

_BUDGETS = "8000,2000,500"
_IN_MEMORY = ":memory:"
_RULE = 78
_PROJECT_AGENT = "project"
_PROJECT_QUESTION = "How are tokens counted?"
_PROJECT_BUDGET = 1500


_Store = Annotated[str, opt("--db STORE", "Keep the demo's memory in this store; in memory if not said.")]


@command("demo", database=(_Store, _IN_MEMORY))
def _demo(
    call: Call,
    *,
    budgets: Annotated[str, opt("--budget N,N,...", "The budgets to assemble at, in tokens.")] = _BUDGETS,
    project: Annotated[
        Path | None,
        opt(
            "--project FOLDER",
            "The project whose docs/ and git history are asked as well; this folder if it has any.",
        ),
    ] = None,
    question: Annotated[str, opt("--question TEXT", "What to ask about the project.")] = _PROJECT_QUESTION,
) -> None:
    """The question is put at three budgets. Then the docs/ and the git history of a project are
    imported, and a question about it is answered from them. Running it again changes nothing.
    """
    sizes = numbers_of(budgets, name="--budget")
    if project is not None and not project.is_dir():
        raise InvalidInput(f"--project={str(project)!r} is no folder. Name the folder of a project.")
    shown = _demonstrate(call, sizes)
    sources = _sources(project or Path())
    shown["project"] = _ask_project(call, sources, question) if sources else None
    call.prints(shown)


def _demonstrate(call: Call, sizes: list[int]) -> dict[str, Any]:
    """Assemble the demo's question at each budget, and show it unless JSON was asked for."""
    from germane import demo  # noqa: PLC0415 - Only this command needs it.

    with germane.open(call.database, agent=call.agent, clock=lambda: demo.DEMO_NOW) as engine:
        new = demo.load_demo(engine)
        memories = engine.stats().memories
        contexts = [engine.assemble(demo.DEMO_QUESTION, budget=size, frame=demo.DEMO_FRAME) for size in sizes]
    if not call.as_json:
        print_text(f"{memories} memories of an agent named newton ({new} of them new to this store).")
        print_text(f'The question, put at {demo.DEMO_NOW:%Y-%m-%d %H:%M} UTC: "{demo.DEMO_QUESTION}"')
        for context in contexts:
            _show(f"{context.trace.budget:,} tokens: the context", context)
    return {"loaded": new, "memories": memories, "question": demo.DEMO_QUESTION, "contexts": contexts}


def _sources(folder: Path) -> list[str]:
    """What of a project can be imported: its docs, and its history."""
    found = []
    if (folder / "docs").is_dir():
        found.append(str(folder / "docs"))
    if (folder / ".git").exists():
        found.append(f"git:{folder}")
    return found


def _ask_project(call: Call, sources: list[str], question: str) -> dict[str, Any]:
    """Import the sources as another agent's memory, and answer the question from them."""
    from germane.exchange.importing import import_source  # noqa: PLC0415 - Only this command needs it.

    imported: list[dict[str, Any]] = []
    with germane.open(call.database, agent=_PROJECT_AGENT) as engine:
        for source in sources:
            try:
                report = import_source(engine, source)
            except (UnreadableSource, MissingExtra) as error:
                imported.append({"source": source, "read": 0, "created": 0, "error": str(error)})
            else:
                done = {"source": source, "read": report.read, "created": report.created, "error": None}
                imported.append(done)
        context = engine.assemble(question, budget=_PROJECT_BUDGET, plan="relevance")
    if not call.as_json:
        _heading("This project, from its docs and its history")
        for one in imported:
            print_text(one["error"] or f"{one['source']}: {one['read']} read, {one['created']} new")
        print_text(f'The question: "{question}"')
        _show(f"{_PROJECT_BUDGET:,} tokens: the context", context)
    return {"imported": imported, "question": question, "context": context}


def _show(title: str, context: Context) -> None:
    _heading(title)
    _print_lit(context.text)
    _heading(f"{context.trace.budget:,} tokens: the explanation")
    _print_lit(context.explain().removesuffix("\n"))


def _heading(title: str) -> None:
    if not is_terminal():
        print_text(f"\n{f' {title} ':─^{_RULE}}\n")
        return
    from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
    from rich.rule import Rule  # noqa: PLC0415 - As above.

    console = Console()
    console.print()
    console.print(Rule(title, style="cyan"))
    console.print()


def _print_lit(text: str) -> None:
    """The text as it is; on a terminal with its headings in bold and its bars in colour."""
    if not is_terminal():
        print_text(text)
        return
    from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
    from rich.text import Text  # noqa: PLC0415 - As above.

    shown = Text(harmless(text))
    shown.highlight_regex(r"(?m)^(?:## .*|SECTION .*|IN  .*|OUT: .*)$", "bold")
    shown.highlight_regex("█+", "green")
    shown.highlight_regex("░+", "bright_black")
    shown.highlight_regex(r"(?m)^Note  ", "yellow")
    Console().print(shown, soft_wrap=True)
