"""Reads in a statement which tables it touches without naming their agent, so that all shards are asked.

No parser of SQL: it knows the forms in which the named queries are written, and what it doesn't know it
reports, so that a new form fails a test instead of passing it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet

__all__ = ["unrouted"]

# What the agent's number may come from: a placeholder, the place of a literal, the look-up of a name.
_GIVEN = r"(?:%\(agent\)s(?:::bigint)?|\{agent\}|number_of\(%\(\w+\)s\))"
_UNION = re.compile(r"\bUNION(?:\s+ALL)?\b")
_NO_ALIAS = r"(?!\s+(?:WHERE|SET|JOIN|LEFT|CROSS|USING|ON|ORDER|GROUP)\b)"
_TABLE = re.compile(rf"\b(FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+AS\s+(\w+)|{_NO_ALIAS})?")
_INSERT = re.compile(r"INSERT INTO (\w+) \(([^)]*)\)")
_USING = re.compile(r"JOIN\s+(\w+)(?:\s+AS\s+(\w+))?\s+USING \(agent\b")
_EQUAL = re.compile(r"\b(\w+)\.agent = (\w+)\.agent")


def unrouted(statement: str, *, distributed: Collection[str]) -> list[str]:
    """The tables among the distributed that a statement reads or writes without naming the agent."""
    text = re.sub(r"--.*", "", re.sub(r"'[^']*'", "''", statement))
    return _unrouted(text, frozenset(), frozenset(distributed))


def _unrouted(text: str, outer: AbstractSet[str], distributed: AbstractSet[str]) -> list[str]:
    """Those of one SELECT or the like; its parentheses may refer to its tables, as it to the `outer`."""
    inner: list[str] = []
    found: list[str] = []
    for part in _UNION.split(_flat(text, inner)):
        certain = _certain(part)
        tables = {alias or table: table for _, table, alias in _TABLE.findall(part)}
        owned = [alias for alias, table in tables.items() if table in distributed]
        routed = _carried(certain, owned, _named(certain, owned) | outer)
        found += [tables[alias] for alias in owned if alias not in routed]
        for number in re.findall("\0(\\d+)\0", part):
            found += _unrouted(inner[int(number)], routed, distributed)
    return found


def _named(part: str, owned: list[str]) -> AbstractSet[str]:
    """The tables whose agent the statement names itself; a bare `agent` is that of the only one left."""
    named = {alias for alias in owned if re.search(rf"\b{alias}\.agent = {_GIVEN}", part)}
    insert = _INSERT.search(part)
    if insert and "agent" in map(str.strip, insert[2].split(",")):
        named.add(insert[1])
    left = [alias for alias in owned if alias not in named]
    if len(left) == 1 and re.search(rf"(?<![.\w])agent = {_GIVEN}", part):
        named.update(left)
    return named


def _carried(part: str, owned: list[str], routed: AbstractSet[str]) -> AbstractSet[str]:
    """Those and what is joined to them: by USING to all before it, by equality from one to the other."""
    reached = set(routed)
    for _ in owned:
        for match in _USING.finditer(part):
            place = owned.index(match[2] or match[1]) if (match[2] or match[1]) in owned else -1
            group = set(owned[: place + 1])
            reached |= group if group & reached else set()
        for pair in map(set, _EQUAL.findall(part)):
            reached |= pair if pair & reached else set()
    return reached


def _certain(part: str) -> str:
    """What is left of a statement without its alternatives, each of which might hold without the agent."""
    while innermost := re.search(r"\(([^()]*)\)", part):
        held = "" if re.search(r"\bOR\b", innermost[1]) else innermost[1]
        part = f"{part[: innermost.start()]}\x01{held}\x02{part[innermost.end() :]}"
    part = part.replace("\x01", "(").replace("\x02", ")").split("HAVING")[0]
    return part.split("WHERE")[0] if re.search(r"\bOR\b", part) else part


def _flat(text: str, inner: list[str]) -> str:
    """A text with a mark for each SELECT in parentheses, and those put into the list."""
    start = text.find("(")
    if start < 0:
        return text
    end = _closing(text, start)
    held = text[start + 1 : end]
    if re.match(r"\s*(?:SELECT|WITH)\b", held):
        inner.append(held)
        held = f"\0{len(inner) - 1}\0"
    else:
        held = _flat(held, inner)
    return f"{text[:start]}({held}){_flat(text[end + 1 :], inner)}"


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError(f"A parenthesis is left open: {text[start:]}")
