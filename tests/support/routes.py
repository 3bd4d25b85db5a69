"""Which tables a statement reads or writes without saying whose rows, so that every server has to run it.

It looks at what the server understood of the statement (`support.trees`), and concludes no more than planners
do. Whose rows are meant is known where a condition that has to hold compares the column that parts a table
with a value from outside, or with that of another table for which it is known. The condition of an outer join
says so only for the side that may be missing, and what is known around a query counts where that becomes a
join. What isn't known here counts as unknown, so that a new form fails a test instead of passing it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from support.trees import Node, nodes

__all__ = ["Catalog", "conditions", "refused", "unrouted"]

Place: TypeAlias = tuple[int, int, int]
"""A column of a table: by the query's identity, the table's number in its list, and the column's number."""

_UPDATE, _INSERT = "2", "3"
_RELATION, _SUBQUERY, _JOIN = "0", "1", "2"
_INNER, _LEFT, _RIGHT = "0", "1", "3"
_EXISTS, _ANY = "0", "2"


@dataclass(frozen=True)
class Catalog:
    """What has to be known of the database: the tables and operators by their numbers in it."""

    partitioned: Mapping[int, tuple[str, int]]
    """The name of each partitioned table, and the number of the partition column."""
    equalities: frozenset[int]
    """The operators that say that two such columns are equal."""


def unrouted(query: Node, catalog: Catalog, *, without: Node | None = None) -> list[str]:
    """The tables of a statement whose rows may be anybody's, and whatever else no server could do alone.

    `without` is one of its `conditions`, which is left out to see whether it matters.
    """
    judge = _Judge(catalog, without)
    judge.query(query, (), is_joined=False)
    if len(judge.values) > 1:
        judge.wanting.append("rows of several")
    return judge.wanting


def conditions(query: Node, catalog: Catalog) -> Iterator[Node]:
    """All that says, at whatever depth of a statement, whose rows are meant: comparisons, new values."""
    judge = _Judge(catalog, None)
    for stack in _queries(query, ()):
        for each in _parts(stack[-1]):
            if each.kind == "OPEXPR" and each.number("opno") in catalog.equalities:
                sides = [judge.place(side, stack) for side in each.nodes("args")]
                # One with a directory says which of its rows are meant.
                is_of_others = any(
                    isinstance(side, tuple) and not judge.parts_a_table(side) for side in sides
                )
                if any(map(judge.parts_a_table, sides)) and not is_of_others:
                    yield each
            elif each is judge.target(stack[-1]):
                yield each


def refused(query: Node, catalog: Catalog) -> list[str]:
    """What a cluster can't do in a statement for one server either, as one refused it or did it wrongly."""
    found = []
    judge = _Judge(catalog, None)
    stacks = list(_queries(query, ()))
    if not any(judge.reads(stack[-1]) for stack in stacks):
        return []
    for stack in stacks:
        one = stack[-1]
        if len(stack) > 1 and not one.nodes("targetList"):
            found.append("a subquery without columns")
        for each in _parts(one):
            # It is written anew for the worker, and compares the truth of the comparison.
            outside = (inner for case in each.nodes("args") for inner in nodes(case) if inner.kind == "PARAM")
            if each.kind == "CASEEXPR" and each.node("arg") is not None and any(outside):
                found.append("a CASE of a column and a value from outside")
        if judge.is_copied(stack):
            found.append("an INSERT with a SELECT that goes by way of the coordinator")
    return found


def _queries(query: Node, around: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """A query and all inside it, each behind those around it."""
    stack = (*around, query)
    yield stack
    for each in nodes(list(query.fields.values())):
        if each.kind == "QUERY":
            yield from _queries(each, stack)


def _parts(query: Node) -> Iterator[Node]:
    """What a query is made of, but for the tables that it names and the queries inside it."""
    yield from nodes([each for name, each in query.fields.items() if name not in ("rtable", "cteList")])


@dataclass
class _Judge:
    catalog: Catalog
    without: Node | None
    wanting: list[str] = field(default_factory=list)
    values: set[str] = field(default_factory=set)
    known: dict[Place, str] = field(default_factory=dict)
    queries: dict[int, Node] = field(default_factory=dict)

    def query(self, query: Node, around: tuple[Node, ...], *, is_joined: bool) -> None:
        """Judge a query and all in it; what is known around it counts where it becomes a join with that."""
        if query.node("jointree") is None:
            return  # A LOCK, which reads no row.
        stack = (*around, query)
        inside = [each.node("ctequery") for each in query.nodes("cteList")]
        inside += [each.node("subquery") for each in query.nodes("rtable")]
        for each in inside:
            if each is not None:
                self.query(each, stack, is_joined=False)
        self._learn(stack, is_joined=is_joined)
        self._require(stack)
        joined = {id(each) for each in _joined(_in(query, "jointree"))}
        for part in _parts(query):
            if part.kind == "SUBLINK":
                self.query(_in(part, "subselect"), stack, is_joined=id(part) in joined)

    def place(self, expression: Node, stack: tuple[Node, ...]) -> Place | str | None:
        """The column or the value from outside that an expression is; None where it is neither."""
        if expression.kind == "RELABELTYPE":
            return self.place(_in(expression, "arg"), stack)
        if expression.kind != "VAR" or expression.number("varlevelsup") >= len(stack):
            return _given(expression)
        inner = stack[: len(stack) - expression.number("varlevelsup")]
        number, column = expression.number("varno"), expression.number("varattno")
        tables = inner[-1].nodes("rtable")
        if number > len(tables) or column < 1:
            return None
        table = tables[number - 1]
        if table.fields["rtekind"] == _JOIN:
            return self.place(table.nodes("joinaliasvars")[column - 1], inner)
        if table.fields["rtekind"] == _SUBQUERY:
            query = _in(table, "subquery")
            return self.place(_in(query.nodes("targetList")[column - 1], "expr"), (*inner, query))
        self.queries[id(inner[-1])] = inner[-1]
        return (id(inner[-1]), number, column)

    def parts_a_table(self, place: Place | str | None) -> bool:
        """Whether a place is the partition column of its table."""
        if not isinstance(place, tuple):
            return False
        found = self._partitioned(self.queries[place[0]], place[1])
        return found is not None and found[1] == place[2]

    def reads(self, query: Node) -> bool:
        """Whether a query names a table that is partitioned, itself."""
        return any(self._partitioned(query, number) for number in _tables(query))

    def is_copied(self, stack: tuple[Node, ...]) -> bool:
        """Whether a cluster copies the rows of an INSERT, and so can't tell a duplicate."""
        query = stack[-1]
        target = self.target(query) if query.fields["commandType"] == _INSERT else None
        sources = [each for each in query.nodes("rtable") if each.fields["rtekind"] == _SUBQUERY]
        if target is None or not sources:
            return False
        source = _in(sources[0], "subquery")
        sends = self.parts_a_table(self.place(_in(target, "expr"), stack))
        return self.reads(source) and (not sends or source.fields["hasAggs"] == "true")

    def target(self, query: Node) -> Node | None:
        """The new value for the partition column of the table that a query writes to."""
        number = query.number("resultRelation")
        found = self._partitioned(query, number) if number else None
        entries = query.nodes("targetList")
        return next((each for each in entries if found and each.number("resno") == found[1]), None)

    def _partitioned(self, query: Node, number: int) -> tuple[str, int] | None:
        """The name and the column of a table of a query's, if it is partitioned."""
        table = query.nodes("rtable")[number - 1]
        if table.fields["rtekind"] != _RELATION or table.fields["relkind"] == "c":
            return None
        return self.catalog.partitioned.get(table.number("relid"))

    def _learn(self, stack: tuple[Node, ...], *, is_joined: bool) -> None:
        """Find out for which columns the value is known, from one to the next."""
        query = stack[-1]
        target = self.target(query)
        if query.fields["commandType"] == _INSERT and target is not None and target is not self.without:
            value = self._value(self.place(_in(target, "expr"), stack))
            if value is not None:
                self.known[(id(query), query.number("resultRelation"), target.number("resno"))] = value
        pairs = [
            (tuple(self.place(each, stack) for each in condition.nodes("args")), learns)
            for condition, learns in _certain(_in(query, "jointree"), frozenset(_tables(query)))
            if condition.number("opno") in self.catalog.equalities and condition is not self.without
        ]
        for _ in pairs:
            for (left, right), learns in pairs:
                for one, other in ((left, right), (right, left)):
                    value = self._value(other, within=None if is_joined else query)
                    if isinstance(one, tuple) and one[0] == id(query) and one[1] in learns and value:
                        self.known.setdefault(one, value)

    def _value(self, place: Place | str | None, *, within: Node | None = None) -> str | None:
        """What is known of a place; `within` a query nothing of those around it."""
        if not isinstance(place, tuple):
            return place
        is_around = within is not None and place[0] != id(within) and place[0] not in self._inside(within)
        return None if is_around else self.known.get(place)

    def _inside(self, query: Node) -> set[int]:
        return {id(stack[-1]) for stack in _queries(query, ())} | {
            id(each[-1])
            for table in query.nodes("rtable")
            if (sub := table.node("subquery"))
            for each in _queries(sub, ())
        }

    def _require(self, stack: tuple[Node, ...]) -> None:
        query = stack[-1]
        command = query.fields["commandType"]
        for number in range(1, len(query.nodes("rtable")) + 1):
            found = self._partitioned(query, number)
            if found is None:
                continue
            value = self.known.get((id(query), number, found[1]))
            if value is None:
                self.wanting.append(found[0])
            else:
                self.values.add(value)
        if command == _UPDATE and self.target(query) is not None:
            self.wanting.append("a row that goes to another server")
        selects = any(each.fields["rtekind"] == _SUBQUERY for each in query.nodes("rtable"))
        if command == _INSERT and not selects and any(each.kind == "SUBLINK" for each in _parts(query)):
            # Citus refuses it, and takes an INSERT with a SELECT.
            self.wanting.append("a query among the values of an INSERT")


def _given(expression: Node) -> str | None:
    """What stands for a value from outside; None for what is none."""
    if expression.kind == "PARAM" and expression.fields["paramkind"] == "0":
        return f"${expression.fields['paramid']}"
    if expression.kind == "CONST" and expression.fields["constisnull"] == "false":
        return "a constant"
    return None


def _tables(query: Node) -> Iterator[int]:
    yield from range(1, len(query.nodes("rtable")) + 1)


def _certain(tree: Node, learns: frozenset[int]) -> Iterator[tuple[Node, frozenset[int]]]:
    """The comparisons that hold for every row of a join, each with the tables that it says something of."""
    if tree.kind == "FROMEXPR":
        for each in tree.nodes("fromlist"):
            yield from _certain(each, learns)
        yield from ((each, learns) for each in _conjuncts(tree.node("quals")) if each.kind == "OPEXPR")
    elif tree.kind == "JOINEXPR":
        left, right = _in(tree, "larg"), _in(tree, "rarg")
        sides = {_INNER: learns, _LEFT: learns & _joins(right), _RIGHT: learns & _joins(left)}
        sides_of = sides.get(str(tree.fields["jointype"]), frozenset())
        yield from _certain(left, learns)
        yield from _certain(right, learns)
        yield from ((each, sides_of) for each in _conjuncts(tree.node("quals")) if each.kind == "OPEXPR")


def _joins(tree: Node) -> frozenset[int]:
    """The numbers of the tables in a part of a join."""
    return frozenset(each.number("rtindex") for each in nodes(tree) if each.kind == "RANGETBLREF")


def _joined(tree: Node) -> Iterator[Node]:
    """The queries in conditions that become joins: EXISTS, not EXISTS and IN, where they have to hold."""
    for each in _conjuncts(tree.node("quals")):
        negated = each.kind == "BOOLEXPR" and each.fields["boolop"] == "not"
        inner = each.nodes("args")[0] if negated else each
        kinds = (_EXISTS,) if negated else (_EXISTS, _ANY)
        if inner.kind == "SUBLINK" and inner.fields["subLinkType"] in kinds:
            yield inner


def _conjuncts(condition: Node | None) -> Iterator[Node]:
    if condition is None:
        return
    if condition.kind == "BOOLEXPR" and condition.fields["boolop"] == "and":
        for each in condition.nodes("args"):
            yield from _conjuncts(each)
    else:
        yield condition


def _in(node: Node, name: str) -> Node:
    found = node.node(name)
    assert found is not None, (node.kind, name)
    return found
