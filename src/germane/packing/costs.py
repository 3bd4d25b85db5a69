"""What lines and headings look like, and what they add to a context by one counter.

Level: packing (imports kinds, protocols, model and errors). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from germane.kinds import Kinds
from germane.model.memory import Level, Memory
from germane.model.plan import Section
from germane.packing.lines import Ladder, Line
from germane.packing.remembered import RememberedLines
from germane.packing.render import heading_of, headings_apart, item_label, item_lines
from germane.protocols import TokenCounter
from germane.renditions import excerpt
from germane.tokens import uncached
from germane.tokens_exact import ExactCounter, parts_apart

__all__ = ["ContentCosts", "Costs", "RenditionCosts"]

_LEAST_EXCERPT = 16
"""Tokens; fewer say too little of a text that is longer than its summary."""
_SAVED_BY_A_LINE = 4
"""Tokens; a bullet before a text and a line end after it may join what the text alone counts apart."""


class Costs:
    """The lines and headings of one assembly, each written and counted once.

    `lines` are those that were made before. They save work and change no result.
    """

    way = "whole"
    """What is counted; lines are remembered for each way and counter apart."""

    def __init__(self, counter: TokenCounter, kinds: Kinds, lines: RememberedLines) -> None:
        self._counter = counter
        self._counter_name = counter.name
        self._kinds = kinds
        self._lines = lines.of(f"{self.way} {counter.name}")
        self._headings: dict[tuple[str, str | None], tuple[str, int]] = {}
        self._own: set[str] = set()

    def ladder(self, section: Section, memory: Memory) -> Ladder:
        """What is known of a memory's lines in a section."""
        return self._lines.ladder(memory, look=section.look)

    def line(self, section: Section, memory: Memory, level: Level) -> Line:
        """A memory at a level, as its section shows it."""
        known = self._lines.get(memory, level, look=section.look)
        if known is not None:
            return known
        line = self._made(section, memory, level, item_lines(section, memory, level))
        self._lines.keep(memory, line, look=section.look)
        return line

    def excerpt(self, section: Section, memory: Memory, room: int) -> Line | None:
        """The first sentences of a memory's full text in at most `room` tokens, or None where not one fits.

        An excerpt is made for one context, and isn't cached.
        """
        full = memory.renditions.full.text
        limit = room - self._counter.count(item_label(section, memory)) - _SAVED_BY_A_LINE
        while limit >= _LEAST_EXCERPT:
            text = excerpt(full, limit, self._counter)
            if not text:
                return None
            line = self._made(
                section, memory, Level.EXCERPT, item_lines(section, memory, Level.EXCERPT, text)
            )
            if line.tokens <= room:
                return line
            # Indents and escapes cost tokens that the bare text doesn't have.
            limit -= line.tokens - room
        return None

    def _made(self, section: Section, memory: Memory, level: Level, body: str) -> Line:
        text = body + item_label(section, memory) if body else ""
        return Line(level=level, text=text, tokens=self._tokens(memory, level, text), body=body)

    def _tokens(self, memory: Memory, level: Level, text: str) -> int:  # noqa: ARG002 - Others count these.
        return self._counter.count(text + "\n") if text else 0

    def at_least(self, memory: Memory, level: Level) -> int:
        """The stored count, if it is by this counter, less what a line's other beginning may save."""
        renditions = memory.renditions
        if renditions.counter != self._counter_name:
            return 0
        return renditions.at(level).tokens - _SAVED_BY_A_LINE

    def heading(self, section: Section, memory: Memory | None) -> int:
        """The tokens of `heading_text`, with the blank line before it where one is written."""
        return self._heading(section, memory)[1]

    def heading_text(self, section: Section, memory: Memory | None) -> str:
        """The section's heading, or with a memory its own there, or that of its session."""
        return self._heading(section, memory)[0]

    def text(self, section: Section) -> int:
        """The tokens of a section's own text under its heading."""
        return self._counter.count(f"\n{section.heading}\n{section.text}\n")

    def whole(self, written: Sequence[str], lines: Iterable[Line]) -> int:
        """The tokens of the whole text that is written, in which these lines stand.

        An exact counter isn't asked again for what it has counted of it: that would take as long as the fit.
        """
        if not isinstance(uncached(self._counter), ExactCounter):
            return self._counter.count("".join(written))
        known = {f"{line.text}\n": line.tokens for line in lines}
        parts = parts_apart(written)
        return sum([known[part] if part in known else self._counter.count(part) for part in parts])

    def _heading(self, section: Section, memory: Memory | None) -> tuple[str, int]:
        key = (section.name, None if memory is None else memory.ref)
        known = self._headings.get(key)
        if known is None:
            own = memory if section.own_heading else None
            known = None if own is None else self._lines.heading(own, section.heading)
            if known is None:
                text = heading_of(section, memory, self._kinds)
                before = "" if memory is not None and own is None else "\n"
                known = text, self._counter.count(f"{before}{text}\n")
                if own is not None:
                    self._lines.keep_heading(own, section.heading, *known)
            self._headings[key] = known = known if own is None else self._apart(own, *known)
        return known

    def _apart(self, memory: Memory, text: str, tokens: int) -> tuple[str, int]:
        """A memory's own heading; one that another has already says what tells the two apart."""
        if text in self._own:
            headings = headings_apart(text, memory)
            text = next((one for one in headings if one not in self._own), text)
            tokens = self._counter.count(f"\n{text}\n")
        self._own.add(text)
        return text, tokens


class ContentCosts(Costs):
    """Costs where a memory's content is all that counts: no bullet, no heading, whatever the level."""

    way = "content"

    def whole(self, written: Sequence[str], lines: Iterable[Line]) -> int:  # noqa: ARG002 - As of all costs.
        """The text counts as it stands, whatever its lines were thought to take."""
        return self._counter.count("".join(written))

    def _tokens(self, memory: Memory, level: Level, text: str) -> int:  # noqa: ARG002 - As of all costs.
        return self._counter.count(memory.content)

    def at_least(self, memory: Memory, level: Level) -> int:  # noqa: ARG002 - As of all costs.
        """Nothing is known without counting."""
        return 0

    def heading(self, section: Section, memory: Memory | None) -> int:  # noqa: ARG002 - As of all costs.
        """Headings are free."""
        return 0

    def text(self, section: Section) -> int:  # noqa: ARG002 - As of all costs.
        """So is what a section says itself."""
        return 0


class RenditionCosts(Costs):
    """Costs where a memory's rendition at its level is all that counts, and headings are free.

    What a section says itself counts as its text does.
    """

    way = "renditions"

    def whole(self, written: Sequence[str], lines: Iterable[Line]) -> int:  # noqa: ARG002 - As of all costs.
        """The text counts as it stands, whatever its lines were thought to take."""
        return self._counter.count("".join(written))

    def _tokens(self, memory: Memory, level: Level, text: str) -> int:  # noqa: ARG002 - As of all costs.
        rendition, counted = memory.renditions.at(level), memory.renditions.counter
        return rendition.tokens if counted == self._counter_name else self._counter.count(rendition.text)

    def at_least(self, memory: Memory, level: Level) -> int:
        """The stored count, if it is by this counter."""
        renditions = memory.renditions
        return renditions.at(level).tokens if renditions.counter == self._counter_name else 0

    def heading(self, section: Section, memory: Memory | None) -> int:  # noqa: ARG002 - As of all costs.
        """Headings are free."""
        return 0

    def text(self, section: Section) -> int:
        """The tokens of a section's own text."""
        return self._counter.count(section.text)
