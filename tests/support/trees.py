"""What the server's own parser and analyser make of a statement, as trees of values.

With `debug_print_parse` a server tells whoever asks what it understood: which columns of which tables are
meant, whatever they are called. Names of nodes and of their fields are PostgreSQL's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import psycopg

__all__ = ["Node", "Understood", "Value", "nodes"]

Value: TypeAlias = "Node | list[Value] | str"

# In a text the server escapes spaces and brackets, and a quotation mark only at its beginning.
_TOKENS = re.compile(r'[{}()]|"(?:\\.|[^\s(){}\\])*"|(?:\\.|[^\s(){}"\\])+')


@dataclass(eq=False)
class Node:
    """One of the tree; two of the same content are two."""

    kind: str
    fields: dict[str, Value] = field(default_factory=dict)

    def node(self, name: str) -> Node | None:
        """The node in a field; None for none."""
        found = self.fields.get(name)
        return found if isinstance(found, Node) else None

    def nodes(self, name: str) -> list[Node]:
        """The nodes of a list in a field; none for none."""
        found = self.fields.get(name)
        return [each for each in found if isinstance(each, Node)] if isinstance(found, list) else []

    def number(self, name: str) -> int:
        """The whole number in a field."""
        found = self.fields[name]
        assert isinstance(found, str), (self.kind, name, found)
        return int(found)


def nodes(value: Value) -> Iterator[Node]:
    """A node and all in it, or all in a list, but for what is in queries of their own."""
    if isinstance(value, Node):
        yield value
        if value.kind != "QUERY":
            for each in value.fields.values():
                yield from nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


class Understood:
    """Collects the trees of all statements that a connection runs, those inside functions included."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._details: list[str] = []
        connection.add_notice_handler(self._hear)
        for setting in ("debug_pretty_print = off", "client_min_messages = log", "debug_print_parse = on"):
            connection.execute(f"SET {setting}".encode())
        self._connection = connection

    def trees(self, statement: str, values: Any = None) -> list[Node]:
        """The trees of a statement that is run, and of what it runs."""
        self._details.clear()
        self._connection.execute(statement.encode(), values, prepare=False)
        read = [_Reader(_TOKENS.findall(detail)).value() for detail in self._details]
        return [each for each in read if isinstance(each, Node) and each.kind == "QUERY"]

    def prepared(self, statement: str) -> Node:
        """The tree of a statement that isn't run."""
        found = self.trees(f"PREPARE asked AS {statement}")
        self._connection.execute(b"DEALLOCATE asked")
        # That of PREPARE itself is another.
        (tree,) = (each for each in found if each.number("commandType") != _UTILITY)
        return tree

    def _hear(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.message_primary == "parse tree:" and diagnostic.message_detail:
            self._details.append(diagnostic.message_detail)


_UTILITY = 6


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def value(self) -> Value:
        first = self._next()
        if first == "{":
            return self._node()
        if first == "(":
            found: list[Value] = []
            while self._tokens[self._at] != ")":
                found.append(self.value())
            self._at += 1
            return found
        return first

    def _node(self) -> Node:
        node = Node(self._next())
        while (name := self._next()) != "}":
            node.fields[name.removeprefix(":")] = self.value()
            # A constant is written as several tokens, which nobody needs.
            while self._tokens[self._at] != "}" and not self._tokens[self._at].startswith(":"):
                self._at += 1
        return node

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]
