"""The commands `eval …` and `demo`: measurements of contexts, and a first demonstration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import germane
from germane import InvalidInput, MissingExtra
from germane.cli.call import Call, command
from germane.cli.options import arg, numbers_of, opt, place_of
from germane.cli.output import columns_of_output, is_terminal, print_text
from germane.errors import UnreadableSource
from germane.model.text import harmless

if TYPE_CHECKING:
    from germane import Context

_NOBODY = "none"
_ITSELF = "germane"
_MISSED = 1
_BUDGETS = "500,1000,2000,4000"

_Budgets = Annotated[str, opt("--budgets N,N,...", "The budgets, in o200k tokens.")]
_Speaker = Annotated[
    str | None,
    opt("--speaker NAME", "Store only turns of this speaker or role, such as user; count evidence in them."),
]


class _Material(NamedTuple):
    """The options of both `eval` commands: the questions, and the memories that they are about."""

    file: Annotated[
        Path | None,
        arg("FILE", "Questions: LoCoMo's format, or JSON lines (.jsonl) of questions, messages or probes."),
    ] = None
    records: Annotated[
        str | None,
        opt(
            "--records SOURCE",
            "Import this source (see `germane import`); the questions are about it.",
            parser=place_of,
        ),
    ] = None
    demo: Annotated[bool, opt("--demo", "Use the demo's questions and memory; no FILE.")] = False
    embedder: Annotated[
        str | None,
        opt("--embedder NAME", "bundled, minilm or none. Default: the store's, else bundled."),
    ] = None
    limit_questions: Annotated[
        int | None, opt("--limit-questions N", "Use only N questions, drawn with a fixed seed.")
    ] = None
    speaker: _Speaker = None

    def arguments(self, call: Call) -> dict[str, Any]:
        """The arguments of `evaluate` and `losses` for these options. Raises InvalidInput."""
        from germane.embedders import embedder_named  # noqa: PLC0415 - Only these commands.
        from germane.evaluation import Records, Stored  # noqa: PLC0415 - Only these commands.

        path, records = self.file, None if self.records is None else Records(source=self.records)
        if self.demo and path is None and records is None:
            from germane import Trust, demo  # noqa: PLC0415 - Only the demo needs it.

            folder = Path(demo.__file__).parent
            path = folder / "questions.jsonl"
            records = Records(source=folder / "memory.jsonl", now=demo.DEMO_NOW, trust=Trust.AGENT)
        elif self.demo or path is None:
            raise InvalidInput(
                "Name either a FILE of questions, with --records where they need it, or --demo."
            )
        embedder = {} if self.embedder is None else {"embedder": embedder_named(self.embedder)}
        stored = Stored(database=call.database, agent=call.agent)
        limit = self.limit_questions
        return {
            "path": path,
            "records": records,
            "stored": stored,
            "questions_limit": limit,
            "speaker": self.speaker,
            **embedder,
        }


@command("eval run", user=None)
def _run(
    call: Call,
    material: _Material,
    *,
    budgets: _Budgets = _BUDGETS,
    baselines: Annotated[
        str | None,
        opt("--baselines NAMES", "Other retrievers, separated by commas, or none. Default: all installed."),
    ] = None,
    plans: Annotated[
        list[str], opt("--plan NAME", "Also measure this plan, paired with the default. Repeatable.")
    ] = [],  # noqa: B006 - typer reads the default and never changes it.
    compare: Annotated[
        tuple[str, str] | None,
        opt("--compare A B", "Compare two configurations, such as germane lexical; see `eval losses`."),
    ] = None,
    ablate: Annotated[bool, opt("--ablate", "Measure again without each part of the score.")] = False,
    plot: Annotated[
        Path | None, opt("--plot FILE", "Draw recall against budget into this file (SVG).")
    ] = None,
    html: Annotated[Path | None, opt("--html FILE", "Write the report to this file as a web page.")] = None,
    min_recall: Annotated[
        list[str],
        opt("--min-recall BUDGET=SHARE", "Require this evidence recall, such as 1000=0.84. Repeatable."),
    ] = [],  # noqa: B006 - As above.
    min_all: Annotated[
        list[str],
        opt("--min-all BUDGET=SHARE", "Require this share of fully answered questions. Repeatable."),
    ] = [],  # noqa: B006 - As above.
) -> int:
    """Reports the share of evidence in the text of the default `assemble` call and in other results. LoCoMo
    conversations, messages, probes and --records are loaded into memory; other questions are about the store
    of --db and --agent, which is only read. Exits with 1 if a requirement is missed.
    """
    from germane import evaluation  # noqa: PLC0415 - Only these commands need it.

    floors = [
        *(evaluation.Floor.parse(each, gauge="evidence_recall", name="--min-recall") for each in min_recall),
        *(evaluation.Floor.parse(each, gauge="all_evidence", name="--min-all") for each in min_all),
    ]
    arguments = material.arguments(call)
    numbers = numbers_of(budgets, name="--budgets")
    retrievers = _retrievers(baselines, compare, plans, alone=ablate)
    with call.progress("questions answered", tenths=True) as progress:
        report = evaluation.evaluate(
            budgets=numbers, retrievers=retrievers, ablate=ablate, progress=progress, **arguments
        )
    pairs = [] if compare is None else [compare]
    for first, second in dict.fromkeys([*pairs, *((_ITSELF, f"plan={plan}") for plan in plans)]):
        report = report.comparing(*(str(evaluation.Configuration.parse(each)) for each in (first, second)))
    gate = evaluation.check_floors(report, floors, retriever=report.results[0].retriever)
    if plot is not None:
        evaluation.plot(report, plot)
    if html is not None:
        evaluation.write_page(html, report, gate=gate)
    texts = (report.to_text().removesuffix("\n"), "\n".join(map(str, gate)))
    value = report.as_dict() | {"gate": [each.as_dict() for each in gate]}
    call.answer(value, "\n\n".join(filter(None, texts)))
    return _MISSED if any(not each.passed for each in gate) else 0


@command("eval kinds", user=None)
def _kinds(
    call: Call,
    folder: Annotated[
        Path, arg("FOLDER", "Data files: LoCoMo's format (.json), or messages and questions (.jsonl).")
    ],
    *,
    budgets: _Budgets = _BUDGETS,
    peers: Annotated[
        str | None,
        opt(
            "--peers NAMES",
            "bm25, minilm, lancedb-fts, lancedb-hybrid, by commas, or none. Default: all installed.",
        ),
    ] = None,
    embedder: Annotated[
        str, opt("--embedder NAME", "The default call's: bundled, minilm or none.")
    ] = "bundled",
    limit_questions: Annotated[
        int | None, opt("--limit-questions N", "Use only N questions of each file, drawn with a fixed seed.")
    ] = None,
    speaker: _Speaker = None,
) -> None:
    """Each question goes to the default `assemble` call and to all peers in turn. The tables show the
    evidence contained in full and by its words, the time, and paired differences from the best peer.
    """
    from germane.embedders import embedder_named  # noqa: PLC0415 - Only this command needs it.
    from germane.evaluation import compare_kinds  # noqa: PLC0415 - As above.

    named = None if peers is None else [name.strip() for name in peers.split(",") if name.strip()]
    with call.progress("questions answered", tenths=True) as progress:
        report = compare_kinds(
            folder,
            budgets=numbers_of(budgets, name="--budgets"),
            peers=None if named is None else [name for name in named if name != _NOBODY],
            questions_limit=limit_questions,
            speaker=speaker,
            embedder=embedder_named(embedder),
            progress=progress,
        )
    call.answer(report.as_dict(), report.to_text())


@command("eval losses", user=None)
def _losses(
    call: Call,
    material: _Material,
    *,
    budget: Annotated[int, opt("--budget TOKENS", "The budget, in o200k tokens.")] = 1000,
    configuration: Annotated[
        str,
        opt(
            "--configuration NAME", "germane, lexical, static, onnx, plan=NAME, without=PART, or joined by +."
        ),
    ] = _ITSELF,
    question: Annotated[
        str | None, opt("--question TEXT", "Only this question, by its number or a part of its text.")
    ] = None,
    worst: Annotated[
        int | None, opt("--worst N", "Show only the N questions that lost the most.", min=0)
    ] = None,
) -> None:
    """Shows at which stage each piece of evidence was lost, and totals of all questions."""
    from germane.evaluation import Configuration, losses  # noqa: PLC0415 - Only these commands need it.

    arguments, measured = material.arguments(call), Configuration.parse(configuration)
    with call.progress("questions answered", tenths=True) as progress:
        lost = losses(
            budget=budget, question=question, configuration=measured, progress=progress, **arguments
        )
    shown = lost if worst is None else lost.worst(worst)
    totals, *_ = lost.to_text().split("\n\n")
    value = lost.as_dict() | {"questions": [each.as_dict() for each in shown.questions]}
    call.answer(value, "\n\n".join([totals, *shown.to_text().split("\n\n")[1:]]))


def _retrievers(
    baselines: str | None, compare: tuple[str, str] | None, plans: Sequence[str], *, alone: bool
) -> list[str] | None:
    """The names of what is measured; None for every retriever that is installed."""
    configurations = [_ITSELF] if compare is None or plans else []
    configurations += [*(compare or ()), *(f"plan={plan}" for plan in plans)]
    configurations = list(dict.fromkeys(configurations))
    if baselines is None:
        return configurations if alone or compare is not None or plans else None
    named = [name.strip() for name in baselines.split(",") if name.strip() and name.strip() != _NOBODY]
    return list(dict.fromkeys([*configurations, *named]))


# demo: the bundled memory, and the project in the current folder.

_DEMO_BUDGETS = "8000,2000,500"
_LEAST_BUDGET = 500
"""A smaller one wouldn't hold what the demo's contexts always show, which is known after it is stored."""
_IN_MEMORY = ":memory:"
_RULE = 78
_PROJECT_AGENT = "project"
_PROJECT_QUESTION = "How are tokens counted?"
_PROJECT_BUDGET = 1500


_Store = Annotated[
    str, opt("--db STORE", "Keep the demo's memory in this store instead of in memory.", parser=place_of)
]


@command("demo", database=(_Store, _IN_MEMORY), user=None)
def _demo(
    call: Call,
    *,
    budgets: Annotated[
        str, opt("--budgets N,N,...", "The budgets, each of 500 tokens or more.")
    ] = _DEMO_BUDGETS,
    project: Annotated[
        Path | None,
        opt(
            "--project FOLDER", "Also use the docs/ and git history of this project; default: this folder's."
        ),
    ] = None,
    question: Annotated[str, opt("--question TEXT", "A question about the project.")] = _PROJECT_QUESTION,
) -> None:
    """Assembles a context for the question at three budgets. Then the docs/ and git history of a project are
    imported, and a question about it is answered from them. A second run changes nothing.
    """
    sizes = numbers_of(budgets, name="--budgets", least=_LEAST_BUDGET)
    if project is not None and not project.is_dir():
        raise InvalidInput(f"--project={str(project)!r} is no folder. Name the folder of a project.")
    shown = _demonstrate(call, sizes)
    folder = project or Path()
    sources = [str(folder / "docs")] if (folder / "docs").is_dir() else []
    sources += [f"git:{folder}"] if (folder / ".git").exists() else []
    shown["project"] = _ask_project(call, sources, question) if sources else None
    call.prints(shown)


def _demonstrate(call: Call, sizes: list[int]) -> dict[str, Any]:
    """Assemble a context for the demo's question at each budget; print it without `--json`."""
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


def _ask_project(call: Call, sources: list[str], question: str) -> dict[str, Any]:
    """Import the sources for another agent, and assemble a context for the question from them."""
    from germane.importers.transfer import import_source  # noqa: PLC0415 - Only this command needs it.

    imported: list[dict[str, Any]] = []
    with germane.open(call.database, agent=_PROJECT_AGENT) as engine:
        for source in sources:
            done = {"source": source, "read": 0, "created": 0, "error": None}
            try:
                report = import_source(engine, source)
                done |= {"read": report.read, "created": report.created}
            except (UnreadableSource, MissingExtra) as error:
                done["error"] = str(error)
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
    _print_coloured(context.text)
    _heading(f"{context.trace.budget:,} tokens: the explanation")
    _print_coloured(context.explain(columns=columns_of_output()).removesuffix("\n"))


def _heading(title: str) -> None:
    if not is_terminal():
        print_text(f"\n{f' {title} ':─^{_RULE}}\n")
        return
    from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
    from rich.rule import Rule  # noqa: PLC0415 - As above.

    # The highlighter would colour the digits of "8,000" as two numbers.
    console = Console(highlight=False)
    console.print()
    console.print(Rule(title, style="cyan"))
    console.print()


def _print_coloured(text: str) -> None:
    """Print a text, on a terminal with bold headings and coloured bars."""
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
