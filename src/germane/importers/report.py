"""The progress and the report of an import, and the detection of secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from germane.errors import InvalidInput, MissingExtra
from germane.importers.reconciliation import ContinuedMemory, place_of
from germane.importers.sources import Skipped
from germane.model.memory import Draft, Memory, RememberResult, Trust
from germane.model.text import left_open
from germane.model.validation import checked_word
from germane.provenance import ORIGIN, quarantine_of
from germane.retrieval.suspicion import ALLOWED, secrets_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of an import: the drafts read, and of these the new, known, changed and skipped ones.

    `seen` counts the examined files of a folder or lines of an export, and `seen_of` is their total, None if
    unknown. `seen` runs ahead of `read`, which counts finished drafts only.
    """

    read: int
    created: int
    known: int
    skipped: int
    source: str | None = None
    revised: int = 0
    seen: int = 0
    seen_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A memory whose text is no longer in its source."""

    id: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A memory whose file is gone and whose text continues in another file, detected by similarity.

    `share` is the share of the old memory's unique text that the new text contains, from 0 to 1.
    """

    id: str
    before: str
    after: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A memory that an import wrote: a new one, or with `revised` the next version of a memory."""

    id: str
    source: str
    revised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The result of an import. Each draft is `created`, `known` (stored already), `revised`, or skipped.

    `revised` counts the drafts that became the next version of a memory. `gone` are the memories whose text
    is no longer in the imported files, and `pruned` is true if they were forgotten. `moved` are revised
    memories that were moved to another file and edited, detected by similarity. `usage_records` counts the
    new usage records of an export: uses, outcomes, lifecycle events, learning runs. `skipped` are parts that
    should have been read, with the reasons: unreadable files and parts that look like a secret.
    `passed_over` are parts skipped by rule: third-party folders and large files. `unchecked` is the reason
    why nothing was checked for secrets, or None. `written` has each written memory in order; comparisons of
    reports ignore it, since ids differ each time.
    """

    read: int
    created: int
    known: int
    revised: int = 0
    gone: tuple[Gone, ...] = ()
    pruned: bool = False
    moved: tuple[Moved, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    passed_over: tuple[Skipped, ...] = ()
    unchecked: str | None = None
    usage_records: int = 0
    written: tuple[Written, ...] = field(default=(), compare=False)


# One running import: its counts, its refusals and its progress.

_Item = TypeVar("_Item", Draft, Memory)
_Write: TypeAlias = Callable[[Sequence[_Item]], Sequence[RememberResult]]

ProgressCallback: TypeAlias = Callable[[Progress], None]
"""Receives the progress of an import."""

_NO_DETECTOR = "detect-secrets isn't installed; pip install 'germane[project]' to have secrets refused"
_ALLOWED = "secrets were allowed"


class Run:
    """The counts of one import."""

    def __init__(
        self,
        *,
        progress: ProgressCallback | None = None,
        allow_secrets: bool = False,
        trust: Trust | str | None = None,
    ) -> None:
        self._progress = progress
        self._trust = None if trust is None else checked_word(Trust, trust, name="trust")
        self._reported: dict[str, int] = {}
        self.unchecked = _ALLOWED if allow_secrets else None if can_find_secrets() else _NO_DETECTOR
        self.skipped: list[Skipped] = []
        self.passed_over: list[Skipped] = []
        self.gone: list[Gone] = []
        self.moved: list[Moved] = []
        self.written: list[Written] = []
        self.read = self.created = self.known = self.revised = self.usage_records = 0
        self.pruned = False
        self.seen = 0
        self.seen_of: int | None = None

    def trusted(self, item: _Item) -> _Item:
        """The item with the trust of the import, if the caller gave one and it is a text from outside."""
        given = self._trust if item.trust == Trust.EXTERNAL else None
        return item if given is None else replace(item, trust=given)

    def store(self, items: Sequence[_Item], write: _Write[_Item]) -> list[RememberResult | None]:
        """Write a batch. If the engine refuses it, write each item alone, so that only bad items are lost.

        Returns one result per item, None for a refused item.
        """
        applied: list[RememberResult | None]
        items = [self.trusted(item) for item in items]
        try:
            applied = [*write(items)]
        except InvalidInput:
            applied = []
            for item in items:
                try:
                    applied += write([item])
                except InvalidInput as error:
                    applied.append(None)
                    self.skipped.append(Skipped(source=item.source or item.content[:60], reason=str(error)))
        stored = [one for one in applied if one is not None]
        created = sum(one.created for one in stored)
        self.read += len(items)
        self.created += created
        self.known += len(stored) - created
        self.written.extend(_written(one.memory, revised=False) for one in stored if one.created)
        for item, one in zip(items, applied, strict=True):
            if one is not None and isinstance(item, Draft):
                self.note_open_fence(item)
            if one is not None and one.created and (rules := quarantine_of(one.memory)):
                reason = f"stored in quarantine ({', '.join(rules)}); `germane quarantine list` shows it"
                self.passed_over.append(Skipped(source=_name_of(one.memory), reason=reason))
        if items:
            self.show_progress(items[-1].source)
        return applied

    def revise(self, memory: Memory) -> None:
        """Count a memory that was written as the next version of another."""
        self.revised += 1
        self.written.append(_written(memory, revised=True))

    def note_open_fence(self, draft: Draft) -> None:
        """Report the part of a text that isn't stored because it follows an unclosed fence."""
        if left_out := left_open(draft.content):
            reason = (
                f"the last {left_out:,} characters aren't stored: they follow a <recalled-from-memory> that "
                "nothing closes. Close it, or write \\<recalled-from-memory> where it is only mentioned"
            )
            self.skipped.append(Skipped(source=draft.source or draft.content[:60], reason=reason))

    def note_moves(self, moves: Sequence[ContinuedMemory]) -> None:
        """Report the texts that were recognized although they moved to another file and were edited."""
        for one in moves:
            after = one.draft.metadata[ORIGIN]["key"]
            before, share = str(place_of(one.head)), round(one.share, 2)
            self.moved.append(Moved(id=one.head.id, before=before, after=after, share=share))

    @property
    def allows_secrets(self) -> bool:
        """Whether texts that look like a secret were allowed, so that they are stored like any other."""
        return self.unchecked == _ALLOWED

    def require_detector(self) -> None:
        """Raise MissingExtra if secrets can't be detected and weren't allowed."""
        if self.unchecked == _NO_DETECTOR:
            feature = "Importing a folder, whose secrets must not be stored,"
            raise MissingExtra(feature=feature, extra="project")

    def holds_secret(self, item: Draft | Memory, path: Path | None = None) -> bool:
        """Whether an item looks like a secret, which is reported; False if secrets are unchecked."""
        if self.unchecked is not None:
            return False
        named = {name: value for name, value in item.metadata.items() if name != ORIGIN}
        named |= {"subject": item.subject or "", "tags": list(item.tags)}
        secrets = (*find_secrets(item.content), *find_secrets_in_fields(named))
        for secret in secrets[:1]:
            rules = ", ".join(dict.fromkeys(each.rule for each in secrets))
            self.skipped.append(
                Skipped(
                    source=_place(item, secret, path),
                    reason=f"it looks like a secret ({rules}), so this part isn't stored. Take it out, or "
                    "write `pragma: allowlist secret` on a line that holds none",
                )
            )
        return bool(secrets)

    def show_progress(self, source: str | None) -> None:
        """Report the progress of the import if it has changed."""
        counts = {name: getattr(self, name) for name in ("read", "created", "known", "revised", "seen")}
        counts["skipped"] = len(self.skipped)
        if self._progress is not None and counts != self._reported:
            self._reported = counts
            self._progress(Progress(**counts, source=source, seen_of=self.seen_of))

    def report(self) -> ImportReport:
        """The report of the import."""
        values = {each.name: getattr(self, each.name) for each in fields(ImportReport)}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return ImportReport(**values | lists)


def _written(memory: Memory, *, revised: bool) -> Written:
    return Written(id=memory.id, source=_name_of(memory), revised=revised)


def _name_of(memory: Memory) -> str:
    return memory.source or memory.content[:60]


def _place(item: Draft | Memory, secret: Secret, path: Path | None) -> str:
    """The file and line of a secret; without a file, the item's source and the line of its text."""
    line = item.content.split("\n")[secret.line - 1].strip()
    name = item.source or "a memory"
    if path is None:
        return f"{name}, line {secret.line} of its text" if line else name
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(path)
    wanted = [line, line.partition(": ")[2]]  # The documentation of a module follows its name.
    lines = enumerate(text.splitlines(), 1)
    exact = (number for number, each in lines if any(part and part in each for part in wanted))
    alike = (secret_there.line for secret_there in find_secrets(text) if secret_there.rule == secret.rule)
    number = next(exact, None) or next(alike, None)
    return str(path) if number is None else f"{path}:{number}"


# Detection of secrets by the formats of `suspicion.toml`, by `detect-secrets`, and by its heuristics.
# It works offline: no service is called to verify a secret.

_LEFT_OUT = "IPPublicDetector"
"""The plugin that doesn't find secrets."""

_UNQUOTED = re.compile(
    r"(?i:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
    r"(?:s|_\w+)?(?!\w)"
    r"[\"'`]?\s*(?::=|[:=])\s*(?P<value>[^\s\"'`,;()<>{}$\[\]]{8,})"
)
_WORTH_A_LOOK = re.compile(
    r"(?i:key|pass|pwd|secret|token|auth|credential|contrase|begin|://)|[\w+/=.:-]{16}"
)
"""Lines without a match can't match any rule; most prose has none, and rules are slow."""

_PATH = re.compile(r"^[./~]|/.*\.\w{1,6}$|^\w+(?:\.\w+)+\(?$")
_FILTERS = (
    "is_sequential_string",
    "is_potential_uuid",
    "is_templated_secret",
    "is_prefixed_with_dollar_sign",
    "is_not_alphanumeric_string",
)
_DIGEST = re.compile(r"(?i:sha-?\d|\bmd5|digest|checksum|hash|integrity|commit|revision|fingerprint)")
_STANDS_FOR = re.compile(
    r"(?i:example|placeholder|change-?me|dummy|redacted|your[-_]|my[-_]?(?:secret|token|key|pass)|\.\.\.|xxx|\*\*\*)"
)
_NO_SECRETS = frozenset(
    {"pass", "passwd", "password", "pw", "pwd", "secret", "token", "key", "user", "none", "null"}
)
_LEAST_DISTINCT, _SHORT = 6, 12

_MOST_OF_A_LINE, _OVERLAP = 2_048, 256
"""Rules take quadratic time in the length of a line or worse, so longer lines are read in windows."""

_LONG_WORD, _END_OF_A_WORD = re.compile(r"\w{129,}"), 64
_SPACES = re.compile(r"\s{2,}")
_NEEDS = {"NpmDetector": ":_authToken="}
"""What a plugin's matches all contain, for those whose pattern takes quadratic time without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The place of a possible secret and the rule that matched, never the secret. `line` counts from 1."""

    rule: str
    line: int


def can_find_secrets() -> bool:
    """Whether the detector is installed."""
    return find_spec("detect_secrets") is not None


def find_secrets(text: str) -> tuple[Secret, ...]:
    """The lines of a text that look like a secret, each with the first rule that matches, in order.

    Lines with `pragma: allowlist secret` are skipped, and so are placeholders: templates, `EXAMPLE`,
    `changeme`, one repeated character. Raises MissingExtra.
    """
    _detector()
    return tuple(_in_lines(text.split("\n"), guess=True))


def find_secrets_in_fields(fields: Mapping[str, Any]) -> tuple[Secret, ...]:
    """The named values, at any depth, that look like a secret by their names and by known formats.

    High entropy isn't enough, since fields contain hashes and ids. `line` is always 1.
    """
    _detector()
    rules = dict.fromkeys(secret.rule for secret in _in_lines([*_as_lines(fields)], guess=False))
    return tuple(Secret(rule=rule, line=1) for rule in rules)


def _in_lines(lines: Sequence[str], *, guess: bool) -> Iterator[Secret]:
    for number, line in enumerate(lines, 1):
        if _WORTH_A_LOOK.search(line) and ALLOWED not in line:
            digest = _DIGEST.search(line) is not None
            rules = (rule for window in _windows(line) for rule in _rules(window, guess=guess, digest=digest))
            rule = next(rules, None)
            if rule is not None:
                yield Secret(rule=rule, line=number)


def _windows(line: str) -> Iterator[str]:
    """A line in overlapping windows, in each of which every rule takes bounded time.

    Runs of white space become one space, and the middle of a very long word is removed, since either makes a
    rule take cubic time.
    """
    line = _LONG_WORD.sub(lambda word: word[0][:_END_OF_A_WORD] + word[0][-_END_OF_A_WORD:], line)
    line = _SPACES.sub(" ", line)
    for start in range(0, max(1, len(line) - _OVERLAP), _MOST_OF_A_LINE - _OVERLAP):
        yield line[start : start + _MOST_OF_A_LINE]


def _rules(line: str, *, guess: bool, digest: bool) -> Iterator[str]:
    """The names of the rules that a line matches; `digest`: the line is about digests."""
    sure, guessing, heuristic = _detector()
    yield from _of_plugins(sure, line, heuristic)
    yield from secrets_in(line)
    if guess and not digest:
        yield from _of_plugins(guessing, line, heuristic)
    for match in _UNQUOTED.finditer(line):
        value = match["value"]
        random = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
        if random and not _PATH.search(value) and not _is_harmless(value, line, None, heuristic):
            yield "Secret Keyword"


def _of_plugins(plugins: Iterable[Any], line: str, heuristic: Any) -> Iterator[str]:
    for plugin in plugins:
        if _NEEDS.get(type(plugin).__name__, "") not in line:
            continue
        for secret in plugin.analyze_line(filename="text", line=line, line_number=1):
            if not _is_harmless(secret.secret_value or "", line, plugin, heuristic):
                yield secret.type


def _is_harmless(value: str, line: str, plugin: Any, heuristic: Any) -> bool:
    if plugin is not None and type(plugin).__name__ == "PrivateKeyDetector":
        return False
    if len(value) < _SHORT and (whole := re.search(re.escape(value) + r"[\w-]+", line)):
        value = whole[0]  # Some plugins return only the beginning of a token.
    if _stands_for_one(value) or any(getattr(heuristic, name)(value) for name in _FILTERS):
        return True
    if plugin is None or type(plugin).__name__ == "KeywordDetector":
        return bool(heuristic.is_indirect_reference(line))
    return bool(heuristic.is_likely_id_string(value, line, plugin))


def _stands_for_one(value: str) -> bool:
    if value.lower() in _NO_SECRETS or _STANDS_FOR.search(value):
        return True
    return len(value) >= _SHORT and len(set(value)) < _LEAST_DISTINCT


@cache
def _detector() -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
    """The plugins for formats and names, the plugins for entropy, and the heuristics.

    They don't come from the library's settings, which are global to the process.
    """
    try:
        heuristic = import_module("detect_secrets.filters.heuristic")
        types = import_module("detect_secrets.util.importlib").import_types_from_package(
            import_module("detect_secrets.plugins"),
            filter=lambda each: not isinstance(getattr(each, "secret_type", None), str),
        )
    except ImportError as error:
        raise MissingExtra(
            feature="Finding what looks like a secret before it is stored", extra="project"
        ) from error
    plugins = [each() for each in dict.fromkeys(types) if each.__name__ != _LEFT_OUT]
    guessing = tuple(each for each in plugins if type(each).__name__.endswith("HighEntropyString"))
    return tuple(each for each in plugins if each not in guessing), guessing, heuristic


def _as_lines(fields: Mapping[str, Any]) -> Iterator[str]:
    """Each text among named values, at any depth, as a line that begins with its name."""
    left: list[tuple[str, Any]] = [*fields.items()]
    while left:
        name, each = left.pop()
        if isinstance(each, Mapping):
            left.extend(each.items())
        elif isinstance(each, list | tuple):
            left.extend((name, item) for item in each)
        elif isinstance(each, str):
            yield from (f'{name} = "{line}"' for line in each.split("\n"))
