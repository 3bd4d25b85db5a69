"""Claude's memory tool over an agent's memories (extra `anthropic`): files below /memories are memories."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any, Final

from germane.engine import Engine
from germane.errors import MissingExtra, StaleRevision
from germane.frameworks.anthropic_file import (
    FIELD,
    content,
    lines_in,
    listed,
    metadata,
    numbered,
    places,
    size,
    text_of,
)
from germane.frameworks.shared import Deletion, current, remove, to_the_end
from germane.model.memory import Draft, Memory

try:
    from anthropic.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as error:
    raise MissingExtra(feature="Claude's memory tool", extra="anthropic") from error

__all__ = ["AnthropicMemoryTool", "AsyncAnthropicMemoryTool"]

_ROOT: Final = "/memories"
_MOST_LINES: Final = 999_999
_TRIES: Final = 20


class AnthropicMemoryTool(BetaAbstractMemoryTool):
    """A tool for `client.beta.messages.tool_runner(tools=[...])` in which each file is a memory.

    What Claude writes is found by `engine.recall` and `engine.assemble`, and each edit is a next version of
    its memory, also after a rename. Results and errors have the words of Anthropic's own tool for local
    files. A directory is there as long as a file is in it. `delete="forget"` leaves deleted files restorable
    in the engine; the default leaves nothing of them. Threads may share it.
    """

    def __init__(self, engine: Engine, *, delete: Deletion = "purge", cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._engine = engine
        self._delete = delete

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """The lines of a file with their numbers, or the files of a directory. Raises ToolError."""
        path, shown = _path_of(command.path), command.path
        memory = self._file(path)
        if memory is not None:
            text = text_of(memory)
            if text.count("\n") >= _MOST_LINES:
                raise ToolError(f"File {shown} exceeds maximum line limit of {_MOST_LINES:,} lines.")
            header = f"Here's the content of {shown} with line numbers:"
            return "\n".join([header, *lines_in(text, command.view_range)])
        files = {name: text_of(one) for name, one in self._files(path).items()}
        if not files and path != _ROOT:
            raise ToolError(f"The path {shown} does not exist. Please provide a valid path.")
        lines = [f"{size(files.values())}\t{shown}", *listed(path, shown, files)]
        header = f"Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:"
        return "\n".join([header, *lines])

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Store a new file. Raises ToolError for a known path, or one below a file."""
        path = _path_of(command.path)
        if path == _ROOT or self._file(path) is not None or self._files(path):
            raise ToolError(f"File {command.path} already exists")
        self._check_parents(path)
        text = command.file_text
        self._engine.remember(content(text), key=_key(path), metadata=metadata(path, text), force=True)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands once in a file. Raises ToolError, with the lines where it stands."""
        old, shown = command.old_str, command.path

        def edited(text: str) -> str:
            lines = [text[:place].count("\n") + 1 for place in places(text, old)]
            if not lines:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {shown}."
                )
            if len(lines) > 1:
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                    f"{', '.join(map(str, lines))}. Please ensure it is unique"
                )
            return text.replace(old, command.new_str)

        before, after = self._edit(shown, edited)
        line = before[: before.find(old)].count("\n")
        lines = after.split("\n")
        snippet = numbered(lines[max(0, line - 2) : line + 3], max(1, line - 1))
        header = (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        )
        return "\n".join([header, *snippet])

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind a line of a file, 0 for its beginning. Raises ToolError."""

        def edited(text: str) -> str:
            lines = text.removesuffix("\n").split("\n") if text else []
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"

        self._edit(command.path, edited)
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all its files. Raises ToolError."""
        path = _path_of(command.path)
        if path == _ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        found = self._at(path)
        if not found:
            raise ToolError(f"The path {command.path} does not exist")
        self._remove(found)
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file, or a directory with all its files. Raises ToolError."""
        old, new = _path_of(command.old_path), _path_of(command.new_path)
        if old == _ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        if new == _ROOT or self._at(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        self._check_parents(new)
        if new.startswith(f"{old}/"):
            raise ToolError(f"The path {command.new_path} is inside {command.old_path}")
        found = self._at(old)
        if not found:
            raise ToolError(f"The path {command.old_path} does not exist")
        for path, memory in found.items():
            moved = new + path.removeprefix(old)
            draft = Draft(content=memory.content, key=_key(moved), metadata=metadata(moved, text_of(memory)))
            self._engine.supersede(memory.id, draft)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Delete all files."""
        self._remove(self._files(_ROOT))
        return "All memory cleared"

    def _edit(self, shown: str, edited: Callable[[str], str]) -> tuple[str, str]:
        """Change a file's text; the text before and after. What others changed meanwhile is changed again."""
        path = _path_of(shown)
        for left in reversed(range(_TRIES)):
            memory = self._file(path)
            if memory is None:
                is_directory = path == _ROOT or self._files(path)
                reason = "is not a file." if is_directory else "does not exist. Please provide a valid path."
                raise ToolError(f"The path {shown} {reason}")
            before = text_of(memory)
            after = edited(before)
            try:
                self._engine.revise(
                    memory.id,
                    content(after),
                    metadata=metadata(path, after),
                    expected=memory.version,
                    force=True,
                )
            except StaleRevision:
                if not left:
                    raise
            else:
                return before, after
        raise AssertionError("The last try returns or raises.")

    def _file(self, path: str) -> Memory | None:
        return current(self._engine, _key(path))

    def _files(self, directory: str) -> dict[str, Memory]:
        """The files below a directory by their paths."""
        found = self._engine.memories({f"{FIELD}.path": {"$startswith": f"{directory}/"}})
        return {str(memory.metadata[FIELD]["path"]): memory for memory in found}

    def _at(self, path: str) -> dict[str, Memory]:
        """The file of this path, or those below it."""
        memory = self._file(path)
        return self._files(path) if memory is None else {path: memory}

    def _check_parents(self, path: str) -> None:
        parent = posixpath.dirname(path)
        while parent != _ROOT:
            if self._file(parent) is not None:
                raise ToolError(f"The path {parent} is a file, so nothing can be below it")
            parent = posixpath.dirname(parent)

    def _remove(self, found: Mapping[str, Memory]) -> None:
        remove(self._engine, [memory.id for memory in found.values()], self._delete)


def _awaited(name: str) -> Any:
    async def method(self: AsyncAnthropicMemoryTool, command: Any) -> str:
        work = getattr(self._tool, name)
        return str(await to_the_end(lambda: work(command)))

    return method


class AsyncAnthropicMemoryTool(BetaAsyncAbstractMemoryTool):
    """`AnthropicMemoryTool` for the asynchronous client: each command runs on a worker thread.

    A cancelled command still finishes what it began.
    """

    def __init__(self, engine: Engine, *, delete: Deletion = "purge", cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = AnthropicMemoryTool(engine, delete=delete)

    view, create = _awaited("view"), _awaited("create")
    str_replace, insert = _awaited("str_replace"), _awaited("insert")
    delete, rename = _awaited("delete"), _awaited("rename")

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await to_the_end(self._tool.clear_all_memory)


def _path_of(path: str) -> str:
    """The path without `.`, `..` and doubled slashes. Raises ToolError for one outside /memories."""
    if not path.startswith(_ROOT):
        raise ToolError(f"Path must start with /memories, got: {path}")
    inside = posixpath.normpath(f"{_ROOT}/{path.removeprefix(_ROOT)}").replace("//", "/")
    if inside != _ROOT and not inside.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path {path} would escape /memories directory")
    return inside


def _key(path: str) -> str:
    return f"memory-tool:{path}"
