"""eval: how much of what answers a question stands in its context, measured without a judge.

Level: integrations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from germane import InvalidInput, StoreUnavailable
from germane.integrations.cli import evaluating_options as options
from germane.integrations.cli.command import Call, command

if TYPE_CHECKING:
    from germane.evaluation import Floor, Judged, Losses, Records, Report

_BUDGETS = "500,1000,2000,4000"
_NOBODY = "none"
_ITSELF = "germane"
_MISSED = 1
_EXPLAINED_AT = 1000


@command("eval")
def _eval(
    call: Call,
    file: options.QuestionFile = None,
    *,
    records: options.RecordsSource = None,
    demo: options.DemoData = False,
    budgets: options.Budgets = _BUDGETS,
    baselines: options.Baselines = None,
    embedder: options.EmbedderName = None,
    plans: options.Plans = [],  # noqa: B006 - typer reads the default and never changes it.
    compare: options.Compared = None,
    ablate: options.Ablate = False,
    limit: options.Limit = None,
    plot: options.Plot = None,
    html: options.HtmlFile = None,
    min_recall: options.MinRecall = [],  # noqa: B006 - typer reads the default and never changes it.
    min_all: options.MinAll = [],  # noqa: B006 - As above.
    why: options.Why = None,
    why_missing: options.WhyMissing = None,
) -> int:
    """For each question: the share of the turns that answer it which stand whole in the text of the default
    `assemble` call, beside other plans and retrievers. Conversations and probes are measured in stores of
    their own, in memory, and so are records with questions about them; other questions in JSON lines are
    about the store of --db and --agent, which is only read. Exits with 1 when a floor is missed.
    """
    from germane import evaluation  # noqa: PLC0415 - Only this command needs it.

    floors = _floors(min_recall, min_all)
    file, about = _about(file, records, demo=demo)
    asked = {**_asked(call, limit, embedder), "records": about}
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
    gate = evaluation.judged(report, floors, retriever=report.results[0].retriever)
    _write(report, gate, plot=plot, html=html)
    return _tell(call, report, gate)


def numbers_of(text: str, *, name: str) -> list[int]:
    """Whole numbers parted by commas. Raises InvalidInput."""
    try:
        return [int(part.replace("_", "")) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InvalidInput(f"{name}={text!r} is no list of numbers. Write 500,1000,2000.") from None


def _asked(call: Call, limit: int | None, embedder: str | None) -> dict[str, Any]:
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


def _write(report: Report, gate: Sequence[Judged], *, plot: Path | None, html: Path | None) -> None:
    from germane import evaluation  # noqa: PLC0415 - Only this command needs it.

    if plot is not None:
        with _writable(plot, "--plot"):
            evaluation.plot(report, plot)
    if html is not None:
        with _writable(html, "--html"):
            evaluation.write_page(html, report, gate=gate)


def _tell(call: Call, report: Report, gate: Sequence[Judged]) -> int:
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
