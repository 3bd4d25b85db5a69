"""Lines of a context, what they cost, and what is remembered of them between calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from germane.kinds import Kinds
from germane.model.memory import Level, Memory
from germane.model.plan import Section
from germane.packing.render import heading_of, headings_apart, item_label, item_lines
from germane.protocols import TokenCounter
from germane.renditions import SUMMARY_TOKENS, excerpt
from germane.renditions.passages import LONG_TOKENS, PassageScores
from germane.tokens import uncached
from germane.tokens.counters import ExactCounter, parts_apart

BETWEEN = "\n\n"
"""What separates two memories of a list."""


@dataclass(slots=True, kw_only=True)
class RenderedLine:
    """A memory's text at one level and what it adds to the context, line end included.

    `body` is the text without the day, the source and the id that may end it: two lines of one body say the
    same. `followed` are the tokens of a paragraph with the blank line after it, None until they are counted.
    """

    level: Level
    text: str
    tokens: int
    body: str
    followed: int | None = None


@dataclass(slots=True)
class LineCache:
    """What is known of one memory's lines: those that were made, and what each is sure not to stay below.

    `of_any_question` caches all but the summary, where that is made of passages that answer one question.
    """

    lines: dict[Level, RenderedLine] = field(default_factory=dict)
    least: dict[Level, int] = field(default_factory=dict)
    of_any_question: LineCache | None = None


class Heading(NamedTuple):
    """A heading, and its tokens with the blank line before it where one is written."""

    text: str
    tokens: int


# Lines made before, so that a memory that is shown often is fenced and counted once.
#
# It changes no result: a line depends on nothing but the memory, the level, its section, and the counter; a
# heading on the memory, the section's heading, the kinds and the counter. So each registry of kinds has its
# own cache, and each way of counting within it.

_MOST = 24_000_000
"""Characters cached at most for each way of counting, memories and lines together."""
_LONGEST = 20_000
"""Characters of a memory worth caching; a longer one would push out too many others."""
_OVERHEAD = 400

MemoryLines: TypeAlias = dict[str, tuple[Memory, LineCache]]
"""The lines of one section by the memory's id and version. An id can be used again after a purge, so an entry
holds only for the very same value of the memory.
"""


class RememberedLines:
    """A cache of lines by section, memory and level. Threads may share it: at worst a line is made twice."""

    __slots__ = ("_others", "_size", "headings", "sections")

    def __init__(self) -> None:
        # Sections that differ in any option have lines of their own.
        self.sections: dict[Section, MemoryLines] = defaultdict(dict)
        # By the memory's id and version, and the section's heading.
        self.headings: dict[tuple[str, str], tuple[Memory, Heading]] = {}
        self._others: dict[str, RememberedLines] = {}
        self._size = 0

    def of(self, way: str) -> RememberedLines:
        """The lines that are counted in this way; `clear` forgets them too."""
        return self._others.get(way) or self._others.setdefault(way, RememberedLines())

    def forget(self, refs: Collection[str]) -> None:
        """Drop the lines and headings of these memories, each named by its id and version."""
        for lines in self.sections.values():
            for ref in refs:
                lines.pop(ref, None)
        for key in [key for key in list(self.headings) if key[0] in refs]:
            self.headings.pop(key, None)
        for other in self._others.values():
            other.forget(refs)

    def clear(self) -> None:
        """Forget all of them."""
        for lines in self.sections.values():
            lines.clear()
        self.headings.clear()
        self._others.clear()
        self._size = 0

    def has_capacity(self, memory: Memory, text: str) -> bool:
        """Whether to cache a text of a memory, which counts from here on; a full cache is emptied for it."""
        if len(memory.content) > _LONGEST:
            return False
        self._size += len(memory.content) + len(text) + _OVERHEAD
        if self._size > _MOST:
            # Starting over is cheaper than keeping track of use.
            self.clear()
        return True


# What lines and headings look like, and what they add to a context by one counter.

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

    def __init__(
        self,
        counter: TokenCounter,
        kinds: Kinds,
        lines: RememberedLines,
        passages: PassageScores | None = None,
    ) -> None:
        self._counter = counter
        self._passages = passages
        self._answers: dict[tuple[str, str], LineCache] = {}
        self._counter_name = counter.name
        self._kinds = kinds
        self._lines = lines.of(f"{self.way} {counter.name}")
        self._headings: dict[tuple[str, str | None], Heading] = {}
        self._own: set[str] = set()
        self._of_sections: dict[str, MemoryLines] = {}

    def line_cache(self, section: Section, memory: Memory) -> LineCache:
        """The cached lines of this very memory in a section. What is added to it is known the next time.

        The best passages of a long memory that is here by relevance stand for it, and are those of one
        question.
        """
        lines, ref = self.cached(section), memory.ref
        known = lines.get(ref)
        if known is not None and known[0] is memory:
            cache = known[1]
        else:
            cache = LineCache()
            # Its lines are about as long as its text, at one level or another.
            if self._lines.has_capacity(memory, memory.content):
                lines[ref] = memory, cache
        if self._passages is None or section.order is not None:
            return cache
        if memory.renditions.full.tokens <= LONG_TOKENS:
            return cache
        if (section.name, ref) not in self._answers:
            own = LineCache(lines={**cache.lines}, of_any_question=cache)
            own.lines.pop(Level.SUMMARY, None)
            self._answers[section.name, ref] = own
        return self._answers[section.name, ref]

    def cached(self, section: Section) -> MemoryLines:
        """The cached lines of a section, looked up once: a plan's sections have different names."""
        lines = self._of_sections.get(section.name)
        if lines is None:
            lines = self._of_sections[section.name] = self._lines.sections[section]
        return lines

    def line(self, section: Section, memory: Memory, level: Level) -> RenderedLine:
        """A memory at a level, as its section shows it."""
        cache = self.line_cache(section, memory)
        line = cache.lines.get(level)
        if line is None:
            if cache.of_any_question is not None and level is Level.SUMMARY:
                line = self.excerpt(section, memory, SUMMARY_TOKENS)
            line = line or self._made(section, memory, level, item_lines(section, memory, level))
            cache.lines[level] = line
            if cache.of_any_question is not None and level is not Level.SUMMARY:
                cache.of_any_question.lines[level] = line
        return line

    def excerpt(self, section: Section, memory: Memory, free_tokens: int) -> RenderedLine | None:
        """The first sentences of a memory's full text in at most `free_tokens` tokens, or None where not one
        fits.

        That of a decision keeps its reason. An excerpt is made for one context, and isn't cached.
        """
        full, argued = memory.renditions.full.text, self._kinds.of(memory).lifecycle == "decision"
        limit = free_tokens - self._counter.count(item_label(section, memory)) - _SAVED_BY_A_LINE
        while limit >= _LEAST_EXCERPT:
            scores = self._passages if section.order is None else None
            text = excerpt(full, limit, self._counter, argued=argued, scores=scores)
            if not text:
                return None
            line = self._made(
                section, memory, Level.EXCERPT, item_lines(section, memory, Level.EXCERPT, text)
            )
            if line.tokens <= free_tokens:
                return line
            # Indents and escapes cost tokens that the bare text doesn't have.
            limit -= line.tokens - free_tokens
        return None

    def _made(self, section: Section, memory: Memory, level: Level, body: str) -> RenderedLine:
        text = body + item_label(section, memory) if body else ""
        return RenderedLine(level=level, text=text, tokens=self._tokens(memory, level, text), body=body)

    def _tokens(self, memory: Memory, level: Level, text: str) -> int:  # noqa: ARG002 - Others count these.
        return self._counter.count(text + "\n") if text else 0

    def at_least(self, memory: Memory, level: Level) -> int:
        """The stored count, if it is by this counter, less what a line's other beginning may save."""
        renditions = memory.renditions
        by_passages = level is Level.SUMMARY and self._passages is not None
        if renditions.counter != self._counter_name or (by_passages and renditions.full.tokens > LONG_TOKENS):
            return 0
        return renditions.at(level).tokens - _SAVED_BY_A_LINE

    def heading(self, section: Section, memory: Memory | None) -> Heading:
        """The section's heading, or with a memory its own there, or that of its session.

        One of its own that another memory has already says what tells the two apart.
        """
        key = (section.name, None if memory is None else memory.ref)
        if key in self._headings:
            return self._headings[key]
        own = memory if section.own_heading else None
        known = None if own is None else self._lines.headings.get((own.ref, section.heading))
        if known is not None and known[0] is own:
            heading = known[1]
        else:
            text = heading_of(section, memory, self._kinds)
            before = "" if memory is not None and own is None else "\n"
            heading = Heading(text, self._counter.count(f"{before}{text}\n"))
            if own is not None and self._lines.has_capacity(own, text):
                self._lines.headings[own.ref, section.heading] = own, heading
        if own is not None:
            if heading.text in self._own:
                several = headings_apart(heading.text, own)
                text = next((one for one in several if one not in self._own), heading.text)
                heading = Heading(text, self._counter.count(f"\n{text}\n"))
            self._own.add(heading.text)
        self._headings[key] = heading
        return heading

    def text(self, section: Section) -> int:
        """The tokens of a section's own text under its heading."""
        return self._counter.count(f"\n{section.heading}\n{section.text}\n")

    def whole(self, written: Sequence[str], lines: Iterable[RenderedLine]) -> int:
        """The tokens of the whole text that is written, in which these lines stand.

        An exact counter doesn't count again what it has counted of it: that would take as long as the fit.
        """
        if not isinstance(uncached(self._counter), ExactCounter):
            return self._counter.count("".join(written))
        known = {f"{line.text}\n": line.tokens for line in lines}
        parts = parts_apart(written)
        return sum([known[part] if part in known else self._counter.count(part) for part in parts])


class ListCosts(Costs):
    """Costs of paragraphs, each counted as the last of its list; one before another takes a blank line."""

    way = "list"

    def followed(self, line: RenderedLine) -> int:
        """The tokens of a paragraph with the blank line after it."""
        if line.followed is None:
            line.followed = self._counter.count(line.text + BETWEEN)
        return line.followed

    def _tokens(self, memory: Memory, level: Level, text: str) -> int:
        stored = memory.renditions.at(level)
        known = text == stored.text and memory.renditions.counter == self._counter_name
        return stored.tokens if known else self._counter.count(text)


class ContentCosts(Costs):
    """Costs where a memory's content is all that counts: no bullet, no heading, whatever the level."""

    way = "content"

    def whole(self, written: Sequence[str], lines: Iterable[RenderedLine]) -> int:  # noqa: ARG002 - As of all costs.
        """The text counts as it stands, whatever its lines were thought to take."""
        return self._counter.count("".join(written))

    def _tokens(self, memory: Memory, level: Level, text: str) -> int:  # noqa: ARG002 - As of all costs.
        return self._counter.count(memory.content)

    def at_least(self, memory: Memory, level: Level) -> int:  # noqa: ARG002 - As of all costs.
        """Nothing is known without counting."""
        return 0

    def heading(self, section: Section, memory: Memory | None) -> Heading:
        """The heading, which is free."""
        return super().heading(section, memory)._replace(tokens=0)

    def text(self, section: Section) -> int:  # noqa: ARG002 - As of all costs.
        """So is what a section says itself."""
        return 0


class RenditionCosts(ContentCosts):
    """Costs where a memory's rendition at its level is all that counts, and headings are free.

    What a section says itself counts as its text does.
    """

    way = "renditions"

    def _tokens(self, memory: Memory, level: Level, text: str) -> int:  # noqa: ARG002 - As of all costs.
        rendition, counted = memory.renditions.at(level), memory.renditions.counter
        return rendition.tokens if counted == self._counter_name else self._counter.count(rendition.text)

    def at_least(self, memory: Memory, level: Level) -> int:
        """The stored count, if it is by this counter."""
        renditions = memory.renditions
        return renditions.at(level).tokens if renditions.counter == self._counter_name else 0

    def text(self, section: Section) -> int:
        """The tokens of a section's own text."""
        return self._counter.count(section.text)
