"""How much of the answers to questions about decision records, manuals and changelogs a context shows.

    python bench/records.py [--half dev|final] [--folder FOLDER] [--embedder static|onnx|none]

The documents are those of eleven Python packages with permissive licences (MIT, BSD, Apache 2.0). pip fetches
their source distributions, each pinned by version and SHA-256, into the folder, and their Markdown and
reStructuredText files are copied from there: some 350 documents, of which nothing is part of this project.
`data/records.jsonl` has a hundred questions in the words of somebody who hasn't read the document, each with
the words that answer it and the document that holds them. For the default call and BM25 it prints, at each
budget, the share of answers shown in full and that of their pairs of words. Nothing may be fitted to them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from germane.embedders import embedder_named
from germane.evaluation import BUDGETS, Records, Report, evaluate
from germane.evaluation.result import holds_phrase

QUESTIONS = Path(__file__).parent / "data" / "records.jsonl"
PACKAGES: Mapping[str, str] = {
    "anyio-4.16.0": "59bb03251907983d1603d27c3087ddb1e93299ea2163adcdba37899a4fb12ffb",
    "attrs-26.1.0": "d03ceb89cb322a8fd706d4fb91940737b6642aa36998fe130a9bc96c985eff32",
    "click-8.5.1": "9bbfada76703fd1d784b83eea012e3e8c6a001a876543ef104fa56aaaeb072b4",
    "flask-3.1.3": "0ef0e52b8a9cd932855379197dd8f94047b359ca0a78695144304cb45f87c9eb",
    "jinja2-3.1.6": "0137fb05990d35f1275a587e9aee6d56da821fc83491a0fb838183be43f66d6d",
    "pluggy-1.7.0": "d1eaa46ebb595891b860ab086b4d09c8588af65ebd4361b8e8f4bb8920b90ba8",
    "structlog-26.1.0": "f63a716cbd1b1291cf7661de7794b455acfa4c43c5bcf1630e6ad5ddc1adb3b7",
    "trio-0.35.0": "7efb295c78a0ecd1235c5759e620b5da564ca80d2efcb0055423588547248b96",
    "tuf-7.0.1": "5ada1db78da3518fa851e28588f4b2249b8662a28ae528f54afa2a1de541fb31",
    "urllib3-2.8.0": "63bf2ead4c879426ebf22ef2a781eeb4aa3b4ae798a0435506f8687fd5bb9b63",
    "werkzeug-3.1.9": "55ca7c70a75689be937aa27f8ff4b018f06ff4838fc73045560bf0f5a1291060",
}
"""The source distributions by name and version, each with the SHA-256 of its archive."""

_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_SUFFIXES = (".md", ".rst")
_UNDERLINE = re.compile(r"([=\-~^\"'+#*`])\1{2,}")


def main() -> None:
    """Fetch what isn't there, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["dev", "final"], default="dev")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "germane-records")
    parser.add_argument("--embedder", default="static")
    given = parser.parse_args()
    documents = given.folder / "documents"
    for name, digest in PACKAGES.items():
        package = documents / name.rpartition("-")[0]
        if not package.is_dir():
            extract(_archive(name, digest, given.folder / "archives"), package)
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    astray = unanswered(questions, documents)
    if astray:
        sys.exit("The documents don't hold the answers to: " + ", ".join(astray))
    selected = [each for each in questions if each["half"] == given.half]
    report = measured(selected, documents, given.embedder, BUDGETS)
    print(f"{given.half} half: {report.data()}")
    print(table(report, BUDGETS))


def measured(
    questions: Sequence[Mapping[str, str]], documents: Path, embedder: str, budgets: Sequence[int]
) -> Report:
    """The report of the default call and BM25 on questions about a folder of documents."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "questions.jsonl"
        path.write_text("\n".join(map(json.dumps, questions)), encoding="utf-8")
        return evaluate(
            path,
            budgets=budgets,
            retrievers=["germane", "bm25"],
            records=Records(source=documents, now=_NOW),
            embedder=embedder_named(embedder),
        )


def table(report: Report, budgets: Sequence[int]) -> str:
    """The shares of answers in full and of their pairs of words, in per cent, with the paired difference."""
    head = [f"{budget:>9,}" for budget in budgets]
    lines = ["answers in full".ljust(24) + "".join(head) + "   pairs of words" + "".join(head)]
    for name in ("germane", "bm25"):
        overall = [report.result(name, budget).overall for budget in budgets]
        whole = "".join(f"{100 * (each.answer_recall or 0.0):9.1f}" for each in overall)
        words = "".join(f"{100 * each.word_recall:9.1f}" for each in overall)
        lines.append(f"{name:24}{whole}{'':17}{words}")
    for one in report.comparing("bm25", "germane").comparisons:
        low, high = (100 * end for end in one.words_interval)
        lines.append(
            f"germane - bm25 at {one.budget:,} tokens: {100 * one.word_recall:+.1f} points of pairs of words "
            f"(95 %: {low:+.1f} to {high:+.1f})"
        )
    return "\n".join(lines)


def unanswered(questions: Sequence[Mapping[str, str]], documents: Path) -> list[str]:
    """The ids of the questions whose document doesn't hold their answer."""
    return [
        each["id"]
        for each in questions
        if not holds_phrase((documents / each["document"]).read_text(encoding="utf-8"), each["answer"])
    ]


def _archive(name: str, digest: str, folder: Path) -> Path:
    """The source distribution of that name and version, which pip fetches unless it is there."""
    path = folder / f"{name}.tar.gz"
    if not path.exists():
        project, _, version = name.rpartition("-")
        options = ["--no-deps", "--no-binary", ":all:", "--dest", str(folder)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", *options, f"{project}=={version}"]
        subprocess.run(command, check=True)  # noqa: S603 - pip of this very interpreter.
    found = sha256(path.read_bytes()).hexdigest()
    if found != digest:
        sys.exit(f"{path} has the SHA-256 {found}, and {digest} was expected. Delete it and try again.")
    return path


def extract(archive: Path, package: Path) -> None:
    """Copy the documents of a source distribution into a folder, as Markdown."""
    with tarfile.open(archive) as opened:
        for member in opened:
            inside = Path(*Path(member.name).parts[1:])
            file = opened.extractfile(member) if member.isfile() and inside.suffix in _SUFFIXES else None
            if file is None or ".." in inside.parts or any("egg-info" in part for part in inside.parts):
                continue
            text = file.read().decode("utf-8", errors="replace")
            target = (package / inside).with_suffix(".md")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text if inside.suffix == ".md" else as_markdown(text), encoding="utf-8")


def as_markdown(text: str) -> str:
    """A text in reStructuredText with its headings as Markdown's; their levels are in order of appearance."""
    found: list[str] = []
    marks: list[str] = []
    for line in text.splitlines():
        title = found[-1].strip() if found else ""
        if _UNDERLINE.fullmatch(line.rstrip()) and title and len(line.rstrip()) >= len(title):
            if line[0] not in marks:
                marks.append(line[0])
            found[-1] = f"{'#' * (marks.index(line[0]) + 1)} {title}"
        else:
            found.append(line)
    return "\n".join(found) + "\n"


if __name__ == "__main__":
    main()
