"""What programs and people read of evidence that was lost."""

from __future__ import annotations

from inline_snapshot import snapshot

from germane.evaluation import Loss, Losses, LossStage, Lost

LOST = Losses(
    configuration="germane",
    budget=1000,
    questions=(
        Loss(
            number=7,
            question="What did Ana <b>plant</b>?",
            where="coast",
            category=1,
            evidence=3,
            fitted=24,
            lost=(
                Lost(evidence="D1:9", stage=LossStage.NOT_STORED),
                Lost(
                    evidence="D1:2",
                    stage=LossStage.OUTRANKED,
                    label="Ana: roses, of course",
                    detail="12 tokens short",
                    ranks={"lexical": 41, "semantic": 230},
                    rank=57,
                    candidates=380,
                    score=0.75,
                    parts={"lexical": 0.25, "session": 0.5},
                    short_by=12,
                ),
            ),
        ),
    ),
)


def test_the_text_of_what_was_lost() -> None:
    assert LOST.to_text() == snapshot("""\
germane at 1000 tokens: 2 of 3 pieces of evidence lost (not_stored 1, outranked 1).

7. What did Ana <b>plant</b>?  (coast, category 1)
   1 of 3 pieces contained; the last that fitted has rank 24.
   D1:9: not_stored
      import it, or mend the evidence: no memory has that id or source.
   D1:2: outranked, rank 57 of 380; 12 tokens short
      Ana: roses, of course
      score 0.75 = lexical 0.25 + session 0.50
      by signal: lexical 41, semantic 230
      raise the budget, or see which part of its score is low.\
""")


def test_the_json_of_what_was_lost() -> None:
    value = LOST.as_dict()
    assert {name: each for name, each in value.items() if name != "questions"} == snapshot(
        {
            "configuration": "germane",
            "budget": 1000,
            "evidence": 3,
            "stages": {
                "not_stored": 1,
                "not_admitted": 0,
                "not_gathered": 0,
                "gated": 0,
                "outranked": 1,
                "cut": 0,
            },
        }
    )
    (question,) = value["questions"]
    assert {name: each for name, each in question.items() if name != "lost"} == snapshot(
        {
            "number": 7,
            "question": "What did Ana <b>plant</b>?",
            "where": "coast",
            "category": 1,
            "evidence": 3,
            "contained": 1,
            "last_rank_that_fitted": 24,
        }
    )
    assert question["lost"][1] == snapshot(
        {
            "evidence": "D1:2",
            "stage": "outranked",
            "label": "Ana: roses, of course",
            "detail": "12 tokens short",
            "ranks": {"lexical": 41, "semantic": 230},
            "rank": 57,
            "candidates": 380,
            "score": 0.75,
            "parts": {"lexical": 0.25, "session": 0.5},
            "short_by": 12,
            "remedy": "raise the budget, or see which part of its score is low",
        }
    )
    assert question["lost"][0]["rank"] is None
