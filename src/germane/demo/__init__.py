"""A realistic agent's memory, to try germane on: `memory.jsonl`, and `questions.jsonl` to ask of it.

Level: demo (as high as the integrations; imports the public door).

The memory is invented. It belongs to newton, a software engineering agent at a small company that
builds a memory service, and covers January to November 2026: 315 records of every built-in kind, in
the order of their times. Each line holds the arguments of one `remember`. Each line of the questions
holds a question, what it is about, and in `expect` the lines of the memory, counted from 1, that
answer it; they are meant to be asked as of 20 November 2026.
"""

from __future__ import annotations

from germane.demo.loading import (
    DEMO_FRAME,
    DEMO_NOW,
    DEMO_QUESTION,
    DemoQuestion,
    demo_drafts,
    demo_questions,
    load_demo,
)

__all__ = [
    "DEMO_FRAME",
    "DEMO_NOW",
    "DEMO_QUESTION",
    "DemoQuestion",
    "demo_drafts",
    "demo_questions",
    "load_demo",
]
