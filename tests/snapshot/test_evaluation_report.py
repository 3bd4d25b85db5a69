"""What a report looks like to programs and to people."""

# ruff: noqa: E501 - A row of the table is one line.
from __future__ import annotations

import json
from dataclasses import replace

from inline_snapshot import snapshot

from germane.evaluation import EvaluationFigures, PairedDifference, Report, Result
from germane.importers import EvidenceReport

FIGURES = EvaluationFigures(
    questions=3,
    evidence=4,
    found=3,
    evidence_recall=5 / 6,
    all_evidence=2 / 3,
    shown_recall=5 / 6,
    interval=(0.5, 1.0),
    recall_at={5: 0.5, 10: 2 / 3, 20: 1.0},
    mrr=0.61111111,
)
NONE = EvaluationFigures(
    questions=0,
    evidence=0,
    found=0,
    evidence_recall=0.0,
    all_evidence=0.0,
    shown_recall=0.0,
    interval=(0.0, 0.0),
    recall_at={5: 0.0, 10: 0.0, 20: 0.0},
    mrr=0.0,
)
REPORT = Report(
    results=(
        Result(
            retriever="germane",
            budget=1000,
            overall=FIGURES,
            categories={1: FIGURES},
            halves=(FIGURES, NONE),
            tokens=987.66666,
            fill=0.98766666,
            over_budget=0,
            p50_ms=3.14159,
            p95_ms=9.5,
        ),
    ),
    conversations=("coast",),
    turns=1200,
    questions=3,
    without_evidence=1,
    adversarial=2,
    counter="o200k",
    seed=7,
    evidence=EvidenceReport(read=6, repaired=("coast: D1:2; D1:3",), unreadable=("coast: D",), missing=()),
    skipped={"chroma": "the package chromadb isn't installed."},
)


JSON = snapshot(
    {
        "results": [
            {
                "retriever": "germane",
                "budget": 1000,
                "evidence_recall": 0.8333,
                "all_evidence": 0.6667,
                "shown_recall": 0.8333,
                "answer_recall": None,
                "interval": [0.5, 1.0],
                "questions": 3,
                "evidence": 4,
                "found": 3,
                "recall@5": 0.5,
                "recall@10": 0.6667,
                "recall@20": 1.0,
                "mrr": 0.6111,
                "tokens": 987.7,
                "fill": 0.9877,
                "over_budget": 0,
                "word_recall": 0.0,
                "latency_ms": {"p50": 3.142, "p95": 9.5},
                "categories": {
                    "1": {
                        "evidence_recall": 0.8333,
                        "all_evidence": 0.6667,
                        "shown_recall": 0.8333,
                        "answer_recall": None,
                        "interval": [0.5, 1.0],
                        "questions": 3,
                        "evidence": 4,
                        "found": 3,
                        "recall@5": 0.5,
                        "word_recall": 0.0,
                        "recall@10": 0.6667,
                        "recall@20": 1.0,
                        "mrr": 0.6111,
                    }
                },
                "halves": [
                    {
                        "evidence_recall": 0.8333,
                        "all_evidence": 0.6667,
                        "shown_recall": 0.8333,
                        "answer_recall": None,
                        "interval": [0.5, 1.0],
                        "questions": 3,
                        "evidence": 4,
                        "found": 3,
                        "recall@5": 0.5,
                        "word_recall": 0.0,
                        "recall@10": 0.6667,
                        "recall@20": 1.0,
                        "mrr": 0.6111,
                    },
                    {
                        "evidence_recall": 0.0,
                        "all_evidence": 0.0,
                        "shown_recall": 0.0,
                        "answer_recall": None,
                        "interval": [0.0, 0.0],
                        "questions": 0,
                        "evidence": 0,
                        "found": 0,
                        "recall@5": 0.0,
                        "word_recall": 0.0,
                        "recall@10": 0.0,
                        "recall@20": 0.0,
                        "mrr": 0.0,
                    },
                ],
                "by_evidence": {},
            }
        ],
        "skipped": [{"retriever": "chroma", "reason": "the package chromadb isn't installed."}],
        "data": {
            "conversations": ["coast"],
            "turns": 1200,
            "questions": 3,
            "adversarial": 2,
            "without_evidence": 1,
            "left_out": [],
            "repeated": 0,
            "lengths": [],
            "evidence_ids": {
                "read": 6,
                "repaired": ["coast: D1:2; D1:3"],
                "unreadable": ["coast: D"],
                "missing": [],
            },
        },
        "counter": "o200k",
        "seed": 7,
        "comparisons": [],
        "ablation": [],
        "per_question": [],
        "notes": [
            "chroma was skipped: the package chromadb isn't installed.",
            "Evidence ids that were malformed and repaired: 1 (coast: D1:2; D1:3)",
            "Evidence ids that could not be read: 1 (coast: D)",
        ],
    }
)


def test_the_json_of_a_report() -> None:
    assert json.loads(REPORT.to_json()) == JSON


def test_the_text_of_a_report() -> None:
    assert REPORT.to_text() == snapshot("""\
1 conversation, 1,200 turns, 3 questions; 2 adversarial and 1 without evidence left out. Tokens by o200k; seed 7.

Overall
Share of the evidence that the context contains in full; of the pairs of neighbouring content words of the answer, or else of the evidence, that it contains; of questions with all of their evidence; and of the evidence in the context at any length. In per cent.

retriever  budget  evidence        95 %  words   all  shown   R@5  R@10   R@20   MRR  tokens  fill  over  p50 ms  p95 ms
germane     1,000      83.3  50.0–100.0    0.0  66.7   83.3  50.0  66.7  100.0  61.1     988   99%     0     3.1     9.5

By category
Evidence recall in per cent.

retriever  budget  1 (3)
germane     1,000   83.3

By half of the data
Evidence recall in per cent. A difference that only one half shows is likely chance.

retriever  budget  half 1 (3)
germane     1,000        83.3

chroma was skipped: the package chromadb isn't installed.
Evidence ids that were malformed and repaired: 1 (coast: D1:2; D1:3)
Evidence ids that could not be read: 1 (coast: D)
""")


DIFFERENCE = PairedDifference(
    first="germane",
    second="without=window",
    budget=1000,
    questions=3,
    evidence_recall=-1 / 6,
    all_evidence=-1 / 3,
    interval=(-0.25, -0.05),
    interval_over_conversations=None,
    halves=(-0.25, None),
    wins=0,
    losses=1,
)
LARGER = replace(
    REPORT,
    results=(replace(REPORT.results[0], by_evidence={"1": FIGURES, "3+": NONE}),),
    comparisons=(
        replace(
            DIFFERENCE, second="lexical", interval=(-0.25, 0.05), interval_over_conversations=(-0.3, 0.1)
        ),
    ),
    ablation=(DIFFERENCE,),
)


def test_the_text_of_what_was_compared_and_left_out() -> None:
    assert LARGER.to_text() == snapshot("""\
1 conversation, 1,200 turns, 3 questions; 2 adversarial and 1 without evidence left out. Tokens by o200k; seed 7.

Overall
Share of the evidence that the context contains in full; of the pairs of neighbouring content words of the answer, or else of the evidence, that it contains; of questions with all of their evidence; and of the evidence in the context at any length. In per cent.

retriever  budget  evidence        95 %  words   all  shown   R@5  R@10   R@20   MRR  tokens  fill  over  p50 ms  p95 ms
germane     1,000      83.3  50.0–100.0    0.0  66.7   83.3  50.0  66.7  100.0  61.1     988   99%     0     3.1     9.5

By category
Evidence recall in per cent.

retriever  budget  1 (3)
germane     1,000   83.3

By half of the data
Evidence recall in per cent. A difference that only one half shows is likely chance.

retriever  budget  half 1 (3)
germane     1,000        83.3

By number of evidence turns
Evidence recall, and the share of questions with all of their evidence, in per cent.

retriever  budget  1 (3)  3+ (0)  all of 1  all of 3+
germane     1,000   83.3     0.0      66.7        0.0

Compared in pairs
Points of evidence recall, the second minus the first, question by question. The interval is the bootstrap's 95 % over questions, and over whole conversations beside it; ~ marks a difference that may be chance.

second     first  budget   points          95 %  over conversations  half 1  half 2    all  words       95 %  won  lost
lexical  germane   1,000  -16.7 ~  -25.0 … +5.0       -30.0 … +10.0   -25.0       -  -33.3    0.0  0.0 … 0.0    0     1

Without each part
Points of evidence recall, the second minus the first, question by question. The interval is the bootstrap's 95 % over questions, and over whole conversations beside it; ~ marks a difference that may be chance.

second            first  budget  points          95 %  over conversations  half 1  half 2    all  words       95 %  won  lost
without=window  germane   1,000   -16.7  -25.0 … -5.0                   -   -25.0       -  -33.3    0.0  0.0 … 0.0    0     1

chroma was skipped: the package chromadb isn't installed.
Evidence ids that were malformed and repaired: 1 (coast: D1:2; D1:3)
Evidence ids that could not be read: 1 (coast: D)
""")


def test_the_json_of_what_was_compared_and_left_out() -> None:
    value = json.loads(LARGER.to_json())
    assert list(value["results"][0]["by_evidence"]) == ["1", "3+"]
    assert value["ablation"] == snapshot(
        [
            {
                "first": "germane",
                "second": "without=window",
                "budget": 1000,
                "questions": 3,
                "evidence_recall": -0.1667,
                "all_evidence": -0.3333,
                "interval": [-0.25, -0.05],
                "interval_over_conversations": None,
                "halves": [-0.25, None],
                "wins": 0,
                "losses": 1,
                "word_recall": 0.0,
                "words_interval": [0.0, 0.0],
            }
        ]
    )
    assert value["comparisons"][0]["interval_over_conversations"] == [-0.3, 0.1]
