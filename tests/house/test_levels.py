"""Who may import whom: every import goes up the list of levels, and nothing goes round in a circle."""

from __future__ import annotations

from house.source import modules

# From the most general to the most particular; what shares a line may import each other's files
# unless a test below separates them.
LEVELS: tuple[tuple[str, ...], ...] = (
    ("germane.errors", "germane.forks", "germane.exports", "germane.encoding"),
    (
        "germane.model",
        "germane.filters",
        "germane.ledger",
        "germane.provenance",
        "germane.working_sets",
        "germane.access",
    ),
    ("germane.protocols",),
    (
        "germane.ids",
        "germane.kinds",
        "germane.lifecycle",
        "germane.scopes",
        "germane.renditions",
        "germane.spaces",
        "germane.tokens",
    ),
    (
        "germane.ranking",
        "germane.packing",
        "germane.conversation",
        "germane.retrieval",
        "germane.stores",
        "germane.embedders",
        "germane.extractors",
        "germane.summarizers",
    ),
    ("germane.plans",),
    ("germane.pipeline",),
    ("germane.operations",),
    ("germane.engine",),
    (
        "germane.aio",
        "germane.evaluation",
        "germane.frameworks",
        "germane.importers",
        "germane.servers",
        "germane.telemetry",
        "germane.testing",
    ),
    ("germane.demo", "germane.cli", "germane.__main__"),
)
THINKING = (
    "germane.ranking",
    "germane.packing",
    "germane.conversation",
    "germane.plans",
    "germane.pipeline",
)
STORAGE = ("germane.stores", "germane.retrieval", "germane.embedders")


def level_name(name: str) -> str:
    """The entry of LEVELS that a module belongs to; the longest that matches."""
    prefixes = [
        prefix for level in LEVELS for prefix in level if name == prefix or name.startswith(prefix + ".")
    ]
    assert prefixes, f"{name} is in no level; add it to one in a decision record first."
    return max(prefixes, key=len)


def level_of(name: str) -> int:
    prefix = level_name(name)
    return next(number for number, level in enumerate(LEVELS) if prefix in level)


def test_imports_go_up_the_levels() -> None:
    wrong = [
        f"{module.name} imports {other}"
        for module in modules()
        if module.name != "germane"
        for other in module.imports()
        if other != "germane" and level_of(other) > level_of(module.name)
    ]
    assert wrong == []


def test_thinking_and_storage_never_meet() -> None:
    wrong = [
        f"{module.name} imports {other}"
        for module in modules()
        if module.name != "germane"
        for other in module.imports()
        if other != "germane"
        and (
            (level_name(module.name) in THINKING and level_name(other) in STORAGE)
            or (level_name(module.name) in STORAGE and level_name(other) in THINKING)
        )
    ]
    assert wrong == []


def test_retrieval_does_not_know_the_stores() -> None:
    wrong = [
        f"{module.name} imports {other}"
        for module in modules()
        if module.name.startswith("germane.retrieval")
        for other in module.imports()
        if other.startswith("germane.stores")
    ]
    assert wrong == []


def test_only_outer_packages_import_the_public_module() -> None:
    outer = LEVELS[-1] + LEVELS[-2]
    wrong = [
        module.name
        for module in modules()
        if module.name != "germane" and "germane" in module.imports() and level_name(module.name) not in outer
    ]
    assert wrong == []


def test_no_imports_go_round_in_a_circle() -> None:
    graph = {module.name: module.imports() - {module.name} for module in modules()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, "circle: " + " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for other in sorted(graph.get(name, ())):
                visit(other, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())
