"""What looks like a secret in a text: by `detect-secrets`, its heuristics, and formats that it lacks.

Works offline: no service is called to verify a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from germane.errors import MissingExtra

ALLOWED = "pragma: allowlist secret"
"""A line with this comment holds no secret, whatever it looks like; `detect-secrets` has the same rule."""

_LEFT_OUT = "IPPublicDetector"
"""The plugin whose findings are no secrets."""

_FORMATS: Mapping[str, str] = {
    "Anthropic API Key": r"\bsk-ant-[a-z0-9]+-[\w-]{20,}",
    "Bearer Token": r"(?i:authorization)\W{1,4}(?i:bearer|basic|token)\s+(?P<value>[\w.~+/=-]{20,})",
    "Databricks Token": r"\bdapi[0-9a-f]{32}\b",
    "DigitalOcean Token": r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    "Encryption Key of age": r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,}",
    "GitHub Fine-grained Token": r"\bgithub_pat_\w{40,}",
    "Google API Key": r"\bAIza[\w-]{35}",
    "Google OAuth Secret": r"\bGOCSPX-[\w-]{20,}",
    "Groq API Key": r"\bgsk_[A-Za-z0-9]{40,}",
    "HashiCorp Vault Token": r"\bhv[bs]\.[\w-]{24,}",
    "Hugging Face Token": r"\bhf_[A-Za-z0-9]{30,}",
    "Linear API Key": r"\blin_api_[A-Za-z0-9]{32,}",
    "Replicate Token": r"\br8_[A-Za-z0-9]{32,}",
    "Secret Key": r"\bsk-(?:[a-z]+-)*[A-Za-z0-9_]{32,}",
    "Shopify Token": r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
    "Supabase Token": r"\bsbp_[0-9a-f]{40}\b",
    "xAI API Key": r"\bxai-[A-Za-z0-9]{60,}",
}
"""Formats that their issuers publish and `detect-secrets` 1.5 doesn't know."""

_UNQUOTED = re.compile(
    r"(?i:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
    r"(?:s|_\w+)?(?!\w)"
    r"[\"'`]?\s*(?::=|[:=])\s*(?P<value>[^\s\"'`,;()<>{}$\[\]]{8,})"
)
_WORTH_A_LOOK = re.compile(
    r"(?i:key|pass|pwd|secret|token|auth|credential|contrase|begin|://)|[\w+/=.:-]{16}"
)
"""Without one of these no rule finds anything; most lines of prose have none, and a look costs."""

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
"""Rules take time in the square of a line's length or worse, so that longer lines are read in windows."""

_LONG_WORD, _END_OF_A_WORD = re.compile(r"\w{129,}"), 64
_SPACES = re.compile(r"\s{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Where something looks like a secret, and by which rule; never what it is. `line` counts from 1."""

    rule: str
    line: int


def can_find_secrets() -> bool:
    """Whether the detector is installed."""
    return find_spec("detect_secrets") is not None


def find_secrets(text: str) -> tuple[Secret, ...]:
    """What looks like a secret in a text, a line's first rule for each line, in order.

    A line with `pragma: allowlist secret` is skipped, and so are values that plainly stand
    for a secret: templates, `EXAMPLE`, `changeme`, one sign many times. Raises MissingExtra.
    """
    _detector()
    return tuple(_in_lines(text.split("\n"), guess=True))


def find_secrets_in_fields(fields: Mapping[str, Any]) -> tuple[Secret, ...]:
    """What looks like a secret among named values, at any depth, by the names and by known formats.

    Values are not judged by their entropy alone: fields hold hashes and ids. `line` is 1 for all.
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

    Runs of white space become one space, and of a very long word the middle is left out, since either
    alone makes a rule take time in the cube of its length.
    """
    line = _LONG_WORD.sub(lambda word: word[0][:_END_OF_A_WORD] + word[0][-_END_OF_A_WORD:], line)
    line = _SPACES.sub(" ", line)
    for start in range(0, max(1, len(line) - _OVERLAP), _MOST_OF_A_LINE - _OVERLAP):
        yield line[start : start + _MOST_OF_A_LINE]


def _rules(line: str, *, guess: bool, digest: bool) -> Iterator[str]:
    """The names of the rules by which a line holds a secret; `digest`: the line is about digests."""
    for rule, pattern in _FORMATS.items():
        for match in re.finditer(pattern, line):
            if not _stands_for_one(match.groupdict().get("value") or match[0]):
                yield rule
    sure, guessing, heuristic = _detector()
    for plugin in (*sure, *(guessing if guess else ())):
        for secret in plugin.analyze_line(filename="text", line=line, line_number=1):
            value = secret.secret_value or ""
            if not _is_harmless(value, line, plugin, heuristic) and not (plugin in guessing and digest):
                yield secret.type
    for match in _UNQUOTED.finditer(line):
        value = match["value"]
        random = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
        if random and not _PATH.search(value) and not _is_harmless(value, line, None, heuristic):
            yield "Secret Keyword"


def _is_harmless(value: str, line: str, plugin: Any, heuristic: Any) -> bool:
    if plugin is not None and type(plugin).__name__ == "PrivateKeyDetector":
        return False
    if len(value) < _SHORT and (whole := re.search(re.escape(value) + r"[\w-]+", line)):
        value = whole[0]  # Some plugins name only how a token begins.
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
    """The plugins that know a format or a name, those that judge by entropy, and the heuristics.

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
