"""A small data set in the layout of LoCoMo, written for these tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_LIGHTHOUSE = [
    ("Mira", "I started restoring the old lighthouse on Skerry Point."),
    ("Jonas", "That is a huge job! Who is paying for the lamp?"),
    ("Mira", "The harbour council covers the lamp, and I cover the paint."),
    ("Jonas", "My sister Ilse could help, she repairs clockwork."),
]
_BAKERY = [
    ("Jonas", "Ilse fixed the rotating mechanism in two days."),
    ("Mira", "We celebrated with a plum cake from the bakery on Weaver Street.\nIt was gone in minutes."),
    ("Jonas", "# Plum cake\n<b>deserves</b> its own heading."),
]
_GARDEN = [
    ("Tam", "The beekeeper moved four hives behind the greenhouse."),
    ("Odile", "I planted lavender so that the bees stay close."),
    ("Tam", "Nothing much happened today."),
]


def write(folder: Path) -> Path:
    """The data set as a file in a folder."""
    path = folder / "dialogues.json"
    path.write_text(json.dumps(DATA), encoding="utf-8")
    return path


def _session(number: int, turns: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [
        {"dia_id": f"D{number}:{place}", "speaker": speaker, "text": text}
        for place, (speaker, text) in enumerate(turns, 1)
    ]


def _question(text: str, evidence: list[str], category: int) -> dict[str, Any]:
    return {"question": text, "answer": "as said", "evidence": evidence, "category": category}


DATA: list[dict[str, Any]] = [
    {
        "sample_id": "coast",
        "conversation": {
            "session_1": _session(1, _LIGHTHOUSE),
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_2": _session(2, _BAKERY),
            "session_2_date_time": "9:10 am on 2 June, 2023",
        },
        "qa": [
            _question("Who pays for the lamp of the lighthouse?", ["D1:3"], 1),
            _question("Which cake was eaten, and who fixed the mechanism?", ["D2:2; D2:1"], 2),
            _question("What about the heading of the plum cake?", ["D2:03"], 2),
            _question("Who repairs clockwork?", ["D1:4", "D9:9", "nonsense"], 4),
            _question("What is the name of Mira's boat?", ["D1:1"], 5),
            _question("Which evidence is lost?", [], 3),
        ],
    },
    {
        "sample_id": "garden",
        "conversation": {
            "session_1": _session(1, _GARDEN),
            "session_1_date_time": "7:00 am on 1 July, 2023",
        },
        "qa": [_question("Where did the beekeeper move the hives?", ["D1:1"], 1)],
    },
]
"""Two conversations of ten turns and five questions that count; ids among them to repair and to report."""
