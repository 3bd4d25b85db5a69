"""eval and demo: how much of what answers a question stands in its context; germane at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import germane
from germane import InvalidInput, MissingExtra, StoreUnavailable
from germane.cli.options import Call, arg, command, opt
from germane.cli.output import is_terminal, print_text
from germane.errors import UnreadableSource
from germane.model.text import harmless

if TYPE_CHECKING:
    from germane import Context
    from germane.evaluation import Floor, GateResult, Losses, Records, Report

_BUDGETS = "500,1000,2000,4000"
_NOBODY = "none"
_ITSELF = "germane"
_MISSED = 1
_EXPLAINED_AT = 1000


@command("eval")
def _eval(
    call: Call,
    file: QuestionFile = None,
    *,
    records: RecordsSource = None,
    demo: DemoData = False,
    budgets: Budgets = _BUDGETS,
    baselines: Baselines = None,
    embedder: EmbedderName = None,
    plans: Plans = [],  # noqa: B006 - typer reads the default and never changes it.
    compare: Compared = None,
    ablate: Ablate = False,
    limit: Limit = None,
    plot: Plot = None,
    html: HtmlFile = None,
    min_recall: MinRecall = [],  # noqa: B006 - typer reads the default and never changes it.
    min_all: MinAll = [],  # noqa: B006 - As above.
    why: Why = None,
    why_missing: WhyMissing = None,
) -> int:
    """For each question: the share of the turns that answer it which stand whole in the text of the default
    `assemble` call, beside other plans and retrievers. Conversations and probes are measured in stores of
    their own, in memory, and so are records with questions about them; other questions in JSON lines are
    about the store of --db and --agent, which is only read. Exits with 1 when a floor is missed.
    """
    from germane import evaluation  # noqa: PLC0415 - Only this command needs it.

    floors = _floors(min_recall, min_all)
    file, about = _about(file, records, demo=demo)
    asked = {**_shared_options(call, limit, embedder), "records": about}
    numbers = numbers_of(budgets, name="--budgets")
    names = _retrievers(baselines, compare, plans, alone=ablate)
    with call.progress("questions answered", tenths=True) as told:
        if why is not None or why_missing is not None:
            lost = _losses(file, numbers, compare, why=why, progress=told, **asked)
            return _tell_losses(call, lost, why_missing)
        report = evaluation.evaluate(
            file, budgets=numbers, retrievers=names, ablate=ablate, progress=told, **asked
        )
    pairs = [] if compare is None else [compare]
    for first, second in dict.fromkeys([*pairs, *((_ITSELF, f"plan={plan}") for plan in plans)]):
        report = report.comparing(*(str(evaluation.Configuration.parse(each)) for each in (first, second)))
    gate = evaluation.check_floors(report, floors, retriever=report.results[0].retriever)
    _write(report, gate, plot=plot, html=html)
    return _tell(call, report, gate)


def numbers_of(text: str, *, name: str) -> list[int]:
    """Whole numbers parted by commas. Raises InvalidInput."""
    try:
        return [int(part.replace("_", "")) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InvalidInput(f"{name}={text!r} is no list of numbers. Write 500,1000,2000.") from None


def _shared_options(call: Call, limit: int | None, embedder: str | None) -> dict[str, Any]:
    """What a measurement and a search for losses are told alike."""
    from germane.evaluation import Stored, embedder_named  # noqa: PLC0415 - Only this command needs it.

    said = {} if embedder is None else {"embedder": embedder_named(embedder)}
    return {"questions_limit": limit, "stored": Stored(database=call.database, agent=call.agent), **said}


def _about(file: Path | None, source: str | None, *, demo: bool) -> tuple[Path, Records | None]:
    """The file of questions, and what is imported to ask it about."""
    from germane.evaluation import Records  # noqa: PLC0415 - Only this command needs it.

    if demo and file is None and source is None:
        from germane import demo as data  # noqa: PLC0415 - Only the demo needs it.

        folder = Path(data.__file__).parent
        return folder / "questions.jsonl", Records(source=folder / "memory.jsonl", now=data.DEMO_NOW)
    if demo or file is None:
        raise InvalidInput("Name either a FILE of questions, with --records where they need it, or --demo.")
    return file, None if source is None else Records(source=source)


def _floors(recall: Sequence[str], whole: Sequence[str]) -> list[Floor]:
    from germane.evaluation import Floor  # noqa: PLC0415 - Only this command needs it.

    return [
        *(Floor.parse(each, gauge="evidence_recall", name="--min-recall") for each in recall),
        *(Floor.parse(each, gauge="all_evidence", name="--min-all") for each in whole),
    ]


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


def _losses(
    file: Path, budgets: Sequence[int], compare: tuple[str, str] | None, *, why: str | None, **asked: Any
) -> Losses:
    """What was lost at 1,000 tokens, or at the first budget if that isn't among them."""
    from germane.evaluation import Configuration, losses  # noqa: PLC0415 - Only this command needs it.

    if not budgets:
        raise InvalidInput("--budgets names no budget. Write 500,1000,2000.")
    return losses(
        file,
        budget=_EXPLAINED_AT if _EXPLAINED_AT in budgets else budgets[0],
        question=why,
        configuration=Configuration.parse(_ITSELF if compare is None else compare[0]),
        **asked,
    )


def _tell_losses(call: Call, lost: Losses, worst: int | None) -> int:
    shown = lost if worst is None else lost.worst(worst)
    totals, *_ = lost.to_text().split("\n\n")
    value = lost.as_dict() | {"questions": [each.as_dict() for each in shown.questions]}
    call.answer(value, "\n\n".join([totals, *shown.to_text().split("\n\n")[1:]]))
    return 0


def _write(report: Report, gate: Sequence[GateResult], *, plot: Path | None, html: Path | None) -> None:
    from germane import evaluation  # noqa: PLC0415 - Only this command needs it.

    if plot is not None:
        with _writable(plot, "--plot"):
            evaluation.plot(report, plot)
    if html is not None:
        with _writable(html, "--html"):
            evaluation.write_page(html, report, gate=gate)


def _tell(call: Call, report: Report, gate: Sequence[GateResult]) -> int:
    """Print the report and what became of the floors; 1 when one was missed."""
    parts = [report.to_text().removesuffix("\n"), "\n".join(map(str, gate))]
    value = report.as_dict() | {"gate": [each.as_dict() for each in gate]}
    call.answer(value, "\n\n".join(part for part in parts if part))
    return _MISSED if any(not each.passed for each in gate) else 0


@contextmanager
def _writable(file: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"Can't write {file}: {error.strerror or error}. Name a file that can be written with {option}."
        ) from error


# The options of `germane eval`, each with its one help text.

QuestionFile = Annotated[
    Path | None,
    arg(
        "FILE",
        "Conversations and questions in LoCoMo's layout; or JSON lines (.jsonl): questions about what"
        " --records imports, questions about the store of --db, or probes that bring their memories.",
    ),
]
RecordsSource = Annotated[
    str | None,
    opt(
        "--records SOURCE",
        "Import this folder or file into a store in memory, as germane import does, and ask about it.",
    ),
]
DemoData = Annotated[bool, opt("--demo", "Ask the demo's questions about the demo's memory; leave out FILE.")]
Budgets = Annotated[str, opt("--budgets N,N,...", "The budgets to measure at, in o200k tokens.")]
Baselines = Annotated[
    str | None,
    opt(
        "--baselines NAMES",
        "What to compare with: names parted by commas, or none; all that are installed if not said, "
        "and none beside --plan, --compare or --ablate.",
    ),
]
EmbedderName = Annotated[
    str | None,
    opt(
        "--embedder NAME",
        "static, onnx or none: what germane and the peers that need vectors embed with; static if not"
        " said, and for a store the one that it has.",
    ),
]
Plans = Annotated[
    list[str],
    opt("--plan NAME", "Measure this plan too, compared in pairs with the default call; repeatable."),
]
Compared = Annotated[
    tuple[str, str] | None,
    opt(
        "--compare A B",
        "Two configurations to compare in pairs: germane, lexical, static, onnx, plan=NAME, "
        "without=PART, or several joined by +.",
    ),
]
Ablate = Annotated[bool, opt("--ablate", "Measure again without each part of the score, compared in pairs.")]
Limit = Annotated[int | None, opt("--limit-questions N", "Ask only N of the questions, drawn by a seed.")]
Plot = Annotated[Path | None, opt("--plot SVG", "Draw recall against budget into this file.")]
HtmlFile = Annotated[Path | None, opt("--html HTML", "Write the report into this file as one page.")]
MinRecall = Annotated[
    list[str],
    opt(
        "--min-recall BUDGET=SHARE",
        "Exit with 1 when the evidence recall at a budget is lower, such as 1000=0.84; repeatable.",
    ),
]
MinAll = Annotated[
    list[str],
    opt("--min-all BUDGET=SHARE", "As --min-recall, for the share of questions with all of their evidence."),
]
Why = Annotated[
    str | None,
    opt(
        "--why QUESTION",
        "Say of one question, by its number or a part of its text, where its evidence was lost; "
        "nothing else is measured.",
    ),
]
WhyMissing = Annotated[
    int | None,
    opt(
        "--why-missing N",
        "Say where evidence was lost: totals, and the N questions that lost the most; nothing else is"
        " measured.",
    ),
]


# demo: germane at work, on the memory that travels with it and on the project it is run in.

_DEMO_BUDGETS = "8000,2000,500"
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
    budgets: Annotated[
        str, opt("--budget N,N,...", "The budgets to assemble at, in tokens.")
    ] = _DEMO_BUDGETS,
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
    from germane.importers.transfer import import_source  # noqa: PLC0415 - Only this command needs it.

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
