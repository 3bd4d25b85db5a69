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
from germane import aio, errors
from germane.exports import SUBMODULES
from germane.kinds import BUILT_IN, Kind, Template
from germane.plans.frames import FRAMES, frame_named
from germane.plans.layered import layered, layered_strict, relevance

__all__ = ["GROUPS", "outdated"]

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

GROUPS: dict[str, tuple[str, ...]] = {
    "Opening a memory": ("open", "connect", "Engine", "aio"),
    "What you write": (
        "Draft", "Kind", "Scope", "GLOBAL", "Filter", "TimeRange", "Order", "Level", "Outcome", "Status",
        "Trust", "Message",
    ),
    "Plans": ("Plan", "Section", "Share", "Overflow", "RollOver", "Frame"),
    "What you get back": (
        "Memory", "RememberResult", "RecallResult", "Ranked", "Context", "Item", "Trace", "Reason",
        "RefreshResult", "Request", "diff",
    ),
    "Handles": ("Conversation", "WorkingSet", "Space", "Ledger"),
    "Protocols": ("Store", "Embedder", "TokenCounter", "Summarizer", "Scorer", "Clock"),
    "Errors": tuple(name for name in germane.__all__ if name in errors.__all__),
    "Version": ("__version__",),
}  # fmt: skip
_CONSTANTS = {
    "GLOBAL": "The scope of what applies everywhere: `Scope(name='global')`.",
    "aio": "The same engine with await: see [`germane.aio`](modules.md#germaneaio).",
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


def _modules() -> str:
    """Each public module with what it is for and its names."""
    rows = []
    for module in ("germane", *SUBMODULES):
        page = "api.md" if module == "germane" else "modules.md#" + module.replace(".", "")
        names = ", ".join(f"`{name}`" for name in import_module(module).__all__)
        rows.append((f"[`{module}`]({page})", _words(import_module(module)).partition("\n\n")[0], names))
    return _table(("module", "what it is for", "names"), rows)


def _api() -> str:
    parts = []
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        for name in names:
            parts.extend(_public(name))
    return "\n\n".join(filter(None, parts))


def _submodules() -> str:
    parts = []
    for name in SUBMODULES:
        module = import_module(name)
        own = [each for each in module.__all__ if getattr(module, each) is not getattr(germane, each, None)]
        passed_on = [f"[`{each}`](api.md#{each.lower()})" for each in module.__all__ if each not in own]
        parts += [f"## `{name}`", _words(module).partition("\n\n")[0]]
        if passed_on:
            parts.append(f"Also here, and in `germane`: {', '.join(passed_on)}.")
        for each in own:
            parts.extend(_public(each, module))
    return "\n\n".join(filter(None, parts))


def _public(name: str, module: ModuleType = germane) -> Iterator[str]:
    value = getattr(module, name)
    yield f"### `{name}`"
    if name in _CONSTANTS:
        yield _CONSTANTS[name]
    elif inspect.isfunction(value):
        awaited = module is aio
        signature = _signature(name, value)
        yield _code(f"await {signature.removesuffix('Engine')}AsyncEngine" if awaited else signature)
        yield _words(value)
    elif isinstance(value, type):
        yield from _class(name, value)
    else:
        yield from _alias(name, module)


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
    yield from _awaited(value) if value.__module__ == aio.__name__ else _methods(name, value)


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


def _awaited(value: type) -> Iterator[str]:
    """The methods of a class of `germane.aio`, which are those of the class behind it."""
    parts = reversed(value.__mro__)
    names = [name for part in parts for name, verb in vars(part).items() if inspect.iscoroutinefunction(verb)]
    shown = ", ".join(f"`{name}`" for name in names if not name.startswith("_"))
    behind = value.__name__.removeprefix("Async")
    yield _words(value)
    yield f"Awaited, with the arguments, results and errors of `{behind}`: {shown}."


def _alias(name: str, module: ModuleType) -> Iterator[str]:
    """A value or an alias of a type: its definition and the text below it, which only the source knows."""
    body = ast.parse(_home(name, module).read_text(encoding="utf-8")).body
    for node, after in pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and target and ast.unparse(target) == name:
            yield _code(f"{name} = {ast.unparse(node.value) if node.value else ''}")
            if isinstance(after, ast.Expr):
                yield ast.literal_eval(after.value)


def _home(name: str, module: ModuleType) -> Path:
    """The source of the module that defines a name which another one imports."""
    source = Path(str(module.__file__))
    stub = source.with_suffix(".pyi")
    for node in ast.parse((stub if stub.exists() else source).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return Path(str(sys.modules[str(node.module)].__file__))
    return source


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
    for field in dataclasses.fields(value):
        default = "" if field.default is dataclasses.MISSING else f"`{_default(field.default)}`"
        if field.default_factory is not dataclasses.MISSING:
            default = "empty" if field.name in ("metadata", "parts", "signals") else "its own default"
        yield f"`{field.name}`", f"`{field.type}`", default


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


_WITHOUT_KINDS = {True: "external memories that instruct", False: "the frame's own text"}


def _sections(plan: germane.Plan) -> str:
    whole = plan.spare + sum(section.share.weight for section in plan.sections)
    rows = [
        (
            f"`{section.heading}`",
            ", ".join(section.kinds) or _WITHOUT_KINDS[section.quoted],
            f"{section.share.weight}/{whole}",
            f"always, {section.order} first"
            if section.order
            else "by the question"
            if section.gathers
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
    ("api.md", "modules", _modules),
    ("modules.md", "names", _submodules),
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
