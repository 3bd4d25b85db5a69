"""Writes the parts of the reference that the code itself knows: every public name, kind, section and frame.

    python tools/api_reference.py            writes the pages anew
    python tools/api_reference.py --check    ends with 1 if a page isn't up to date

A page keeps its own words; what stands between its `generated` marks is replaced.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import germane
from germane import aio
from germane.kinds import BUILT_IN, Kind, Template
from germane.plans.frames import FRAMES, frame_named
from germane.plans.layered import layered, layered_strict, relevance

__all__ = ["GROUPS", "ROOMS", "outdated"]

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

GROUPS: dict[str, tuple[str, ...]] = {
    "Opening a memory": ("open", "Engine", "reembed"),
    "Whole stores": (
        "copy_store", "CopyReport", "AgentCopy", "store_status", "DatabaseStatus", "VectorIndex",
        "store_agents", "AgentFigures",
        "migrate_store", "reindex_store", "vacuum_store", "erase_purged", "Erasure", "index_vectors",
        "distribute_store", "remove_agent", "Removal",
    ),
    "What you hand in": (
        "Draft", "Scope", "GLOBAL", "Filter", "TimeRange", "Order", "Outcome", "Trust", "Impressions",
    ),
    "What you get back": (
        "Memory", "Renditions", "Rendition", "Level", "Status", "RememberResult", "RecallResult", "Ranked",
        "Context",
        "Item", "Feedback", "LearningReport", "Weights", "StoreStats", "EmbeddingIdentity", "Finding",
        "LargeMemory", "OutcomeResult", "diff",
    ),
    "How memories live": (
        "Stage", "LifecycleState", "LifecycleSignal", "Cause", "LifecycleEvent", "Upkeep", "UpkeepStep",
        "UpkeepTask", "Reconcile",
        "QualityFlag", "DecisionCalibration",
    ),
    "The account of an assembly": (
        "Trace", "Question", "Entry", "Reason", "EmptyReason", "SectionUsage", "TraceNote",
    ),
    "Working sets": (
        "WorkingSet", "WorkingSetItem", "AddResult", "Eviction", "Evicted", "Decay", "AgeBasis",
        "WorkingSetEvent", "WorkingSetEventKind",
    ),
    "The ledger and figures": (
        "Ledger", "Assembly", "LedgerEntry", "AssemblyDiff", "ValueChange", "Replay", "MemoryChange",
        "MemoryChangeKind",
        "ObserveResult", "Metrics", "Day",
    ),
    "Conversations": (
        "Conversation", "Message", "MessageRole", "Group", "TextPart", "ToolCall", "ToolResult", "OpaquePart",
        "Provider", "Payload", "Selection", "LeftOut", "Anchored", "DerivedQuery", "RecallLimits", "Tiers",
        "ConversationInfo", "Request", "PartUsage", "RequestShares", "TokenCalibration", "Compaction",
    ),
    "Spaces": ("Space", "SpaceInfo", "Member", "Right", "Role", "SpaceEvent", "SpaceEventKind"),
    "Plans, frames and kinds": (
        "Plan", "Section", "Share", "Style", "Overflow", "RollOver", "Frame", "FrameChoice", "RefreshResult",
        "RefreshReason", "Kind", "TemplatePart",
        "ScopedPlan", "Profile", "KindPriority", "TaskContext",
    ),
    "Doors for parts of your own": (
        "Store", "LearningStatus", "Example", "OutcomeRecord", "OutcomeHistory", "UsageHistory",
        "Embedder", "Summarizer", "TokenCounter", "Scorer", "FrameSelector", "Clock", "Candidate", "Query",
    ),
    "Rankings of your own": ("fuse_ranks", "fuse_scores", "Fused"),
    "Token counters": ("get_counter", "register_counter"),
    "Errors": tuple(
        name for name in germane.__all__
        if isinstance(value := getattr(germane, name), type) and issubclass(value, germane.GermaneError)
    ),
    "Version": ("__version__",),
}  # fmt: skip
ROOMS = (
    "germane.importers",
    "germane.embedders",
    "germane.summarizers",
    "germane.evaluation",
    "germane.testing.fakes",
)
"""What is imported by name, and belongs to users too."""
_CONSTANTS = {
    "GLOBAL": "The scope of what applies everywhere: `Scope(name='global')`.",
    "__version__": "The version of the package, a text such as `0.1.0`.",
}
_LINE = 100


def outdated(*, write: bool) -> list[str]:
    """The pages that don't say what the code says; with `write`, they are brought up to date."""
    found = []
    for page, mark, make in _PARTS:
        path = REFERENCE / page
        text = path.read_text(encoding="utf-8")
        begin, end = f"<!-- generated: {mark} -->\n", "<!-- end of generated -->"
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        renewed = f"{head}{begin}\n{make().strip()}\n\n{end}{tail}"
        if renewed != text:
            found.append(page)
            if write:
                path.write_text(renewed, encoding="utf-8")
    return found


def _api() -> str:
    parts = []
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        for name in sorted(names) if group == "Errors" else names:
            parts.extend(_public(name))
        if group == "Opening a memory":
            parts.extend(_awaited())
    return "\n\n".join(filter(None, parts))


def _rooms() -> str:
    parts = []
    for name in ROOMS:
        room = import_module(name)
        parts.append(f"## `{name}`")
        for each in room.__all__:
            parts.extend(_public(each, room))
    return "\n\n".join(filter(None, parts))


def _public(name: str, room: ModuleType = germane) -> Iterator[str]:
    value = getattr(room, name)
    yield f"### `{name}`"
    if name in _CONSTANTS:
        yield _CONSTANTS[name]
    elif inspect.isfunction(value):
        yield _code(_signature(name, value))
        yield _words(value)
    elif isinstance(value, type):
        yield from _class(name, value)
    else:
        yield from _alias(name, "germane.protocols" if room is germane else room.__name__)


def _class(name: str, value: type) -> Iterator[str]:
    if issubclass(value, germane.GermaneError):
        bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
        yield _words(value)
        yield f"A kind of {bases}. [Cause and remedy](errors.md#{name.lower()})"
        return
    yield _made(name, value)
    yield _words(value)
    if issubclass(value, enum.Enum):
        yield _table(("value", "meaning"), _members(value))
    elif dataclasses.is_dataclass(value):
        yield _table(("field", "type", "default"), _fields(value))
    yield from _methods(name, value)


def _made(name: str, value: type) -> str:
    """How one is made, where that isn't plain from its fields and isn't left to another call."""
    if "__init__" not in vars(value) or dataclasses.is_dataclass(value):
        return ""
    if value in (germane.Engine, germane.Space):
        return ""
    made = _signature(name, value)
    return "" if made.startswith(f"{name}(*args") else _code(made.rpartition(" -> ")[0])


def _methods(name: str, value: type) -> Iterator[str]:
    for method, function in _members_of(value):
        if method.startswith("_"):
            continue
        if isinstance(function, property):
            yield f"**`{name}.{method}`** · property"
            yield _words(function)
        elif inspect.isfunction(function) or isinstance(function, classmethod):
            yield _code(_signature(f"{name}.{method}", inspect.unwrap(getattr(value, method))))
            yield _words(getattr(value, method))


def _members_of(value: type) -> Iterator[tuple[str, Any]]:
    """What a class defines; for the engine, after what the parts that it is put together from do."""
    for part in reversed(value.__mro__):
        if part is value or (value is germane.Engine and part.__module__.startswith("germane.engine.")):
            yield from vars(part).items()


def _awaited() -> Iterator[str]:
    yield "### `germane.aio.open` and `AsyncEngine`"
    yield "The same surface with await: each verb of the engine, run on a worker thread."
    yield _code(f"await {_signature('aio.open', aio.open)}")
    parts = reversed(aio.AsyncEngine.__mro__)
    verbs = [name for part in parts for name, verb in vars(part).items() if inspect.iscoroutinefunction(verb)]
    named = ", ".join(f"`{name}`" for name in verbs if not name.startswith("_"))
    yield f"{_words(aio.AsyncEngine)} Awaited, with the arguments, results and errors of `Engine`: {named}."


def _alias(name: str, module: str) -> Iterator[str]:
    """A value or an alias of a type: its definition and the text below it, which only the source knows."""
    home = _home(name, module)
    body = ast.parse(Path(str(sys.modules[home].__file__)).read_text(encoding="utf-8")).body
    for node, after in pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and target and ast.unparse(target) == name:
            yield _code(f"{name} = {ast.unparse(node.value) if node.value else ''}")
            if isinstance(after, ast.Expr):
                yield ast.literal_eval(after.value)


def _home(name: str, module: str) -> str:
    """The module that defines a name which another one only passes on."""
    for node in ast.walk(ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return str(node.module)
    return module


def _signature(name: str, function: Callable[..., Any]) -> str:
    if getattr(function, "_is_protocol", False):
        return f"class {name}(Protocol)"  # Nobody makes one: an object with its members is one.
    signature = inspect.signature(function)
    shown: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        shown.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    result = f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(shown)}){result}"
    if len(line) <= _LINE:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){result}"


def _members(value: type[enum.Enum]) -> Iterator[tuple[str, str]]:
    """The values of a closed list, each with the comment beside it."""
    lines = inspect.getsource(value).splitlines()
    for member in value:
        line = next(line for line in lines if re.match(rf"\s+{member.name} = ", line))
        comment = line.partition("#")[2].strip()
        yield f"`{value.__name__}.{member.name}` = `{member.value!r}`", comment


def _fields(value: Any) -> Iterator[tuple[str, str, str]]:
    annotations = inspect.get_annotations(value)
    for field in dataclasses.fields(value):
        default = "" if field.default is dataclasses.MISSING else f"`{_default(field.default)}`"
        if field.default_factory is not dataclasses.MISSING:
            default = "empty" if field.name in ("metadata", "parts", "signals") else "its own default"
        yield f"`{field.name}`", f"`{annotations[field.name]}`", default


def _default(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple) and value:
        return f"({', '.join(map(_default, value))}{',' if len(value) == 1 else ''})"
    if value == germane.GLOBAL:
        return "GLOBAL"
    return getattr(value, "__name__", None) or repr(value)


def _kinds() -> str:
    rows = [
        (
            f"`{kind.name}`",
            kind.section,
            str(kind.priority),
            kind.lifecycle,
            _wording(kind.micro),
            _wording(kind.summary),
            _wording(kind.full),
        )
        for kind in sorted(BUILT_IN, key=lambda kind: (kind.priority, kind.name))
    ]
    return _table(("kind", "section", "priority", "lifecycle", "micro", "summary", "full"), rows)


def _wording(template: Template) -> str:
    text = "".join(f"`{piece.text}`" for piece in template).replace("``", "").replace("\n", "⏎")
    return "as written" if template == Kind(name="plain").full else text


def _sections(plan: germane.Plan) -> str:
    whole = plan.spare + sum(section.share.weight for section in plan.sections)
    rows = [
        (
            f"`{section.heading}`",
            ", ".join(section.kinds) or "the frame's own text",
            f"{section.share.weight}/{whole}",
            f"always, {section.order} first"
            if section.order
            else "by the question"
            if section.kinds
            else "always",
            ", ".join(section.levels),
            str(section.overflow),
            "yes" if section.required else ", ".join(section.required_kinds),
        )
        for section in plan.sections
    ]
    return _table(("heading", "kinds", "share", "chosen", "levels", "overflow", "required"), rows)


def _frames() -> str:
    rows = [
        (
            f"`{frame.name}`",
            frame.description,
            "<br>".join(frame.questions),
            ", ".join(f"{section} {priority:g}" for section, priority in frame.priorities),
            ", ".join(frame.domain),
            f"{frame.budget:,}",
            ", ".join(f"{section} {tokens:,}" for section, tokens in frame.shares),
        )
        for frame in FRAMES
    ]
    return _table(("frame", "description", "questions", "priorities", "domain", "total", "shares"), rows)


def _table(head: tuple[str, ...], rows: Any) -> str:
    cells = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells)


def _code(text: str) -> str:
    return f"```py\n{text}\n```"


def _words(value: object) -> str:
    return inspect.getdoc(value) or ""


_PARTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("api.md", "names", _api),
    ("rooms.md", "rooms", _rooms),
    ("kinds.md", "kinds", _kinds),
    ("plans.md", "layered", lambda: _sections(layered(BUILT_IN, frame_named("task")))),
    ("plans.md", "layered_strict", lambda: _sections(layered_strict(BUILT_IN, frame_named("task")))),
    ("plans.md", "relevance", lambda: _sections(relevance(BUILT_IN))),
    ("plans.md", "frames", _frames),
)


if __name__ == "__main__":
    pages = outdated(write="--check" not in sys.argv)
    if pages and "--check" in sys.argv:
        sys.exit(f"Not up to date: {', '.join(pages)}. Run `make docs`.")
