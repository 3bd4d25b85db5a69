"""Conditions for `Filter(where=...)`: values that a program can build, read, write and evaluate.

    team = "core" and score >= 3 and not (due < 2026-03-01 or owner in ("ann", "bob"))

`read_condition` reads this text form and a JSON form, as a Filter does. A store without SQL filters by
`Condition.admits`.
"""

from germane.model.condition_texts import MAX_LENGTH, read_condition
from germane.model.conditions import (
    MAX_COMPARISONS,
    MAX_DEPTH,
    MAX_PARTS,
    MAX_VALUES,
    OWN_FIELDS,
    And,
    Comparison,
    Condition,
    Not,
    Operator,
    Or,
    Value,
)

__all__ = [
    "MAX_COMPARISONS",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "MAX_PARTS",
    "MAX_VALUES",
    "OWN_FIELDS",
    "And",
    "Comparison",
    "Condition",
    "Not",
    "Operator",
    "Or",
    "Value",
    "read_condition",
]
