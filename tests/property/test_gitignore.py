"""What git ignores is not read: the walk agrees with git itself on any patterns."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from germane.importers import Skipped
from germane.importers.markdown import walk
from support.examples import examples

FILES = (
    "a.md",
    "b.md",
    "doc/a.md",
    "doc/deep/a.md",
    "doc/deep/c d.md",
    "gen/a.md",
    "gen/keep.md",
    "src/gen/b.md",
)
patterns = st.lists(
    st.sampled_from(
        [
            "*.md",
            "!a.md",
            "/a.md",
            "doc/",
            "doc/*",
            "!doc/deep/",
            "doc/**/a.md",
            "gen",
            "/gen/",
            "!gen/keep.md",
            "**/deep",
            "deep/a.md",
            "c\\ d.md",
            "[ab].md",
            "# a.md",
            "",
            "b.md ",
        ]
    ),
    max_size=4,
)


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "core.quotePath=false", "-c", "core.excludesFile=", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def note(skipped: Skipped) -> None:
    raise AssertionError(skipped)


@given(patterns, patterns, patterns, patterns)
@example(["!doc/deep/"], [], [], ["*.md"])  # What lets a folder in says nothing of the files in it.
@settings(max_examples=examples(60))
def test_the_walk_finds_what_git_would_add(
    top: list[str], doc: list[str], gen: list[str], own: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        git(root, "init", "-q")
        for name in FILES:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x", encoding="utf-8")
        for place, lines in (("", top), ("doc", doc), ("gen", gen)):
            (root / place / ".gitignore").write_text("\n".join(lines), encoding="utf-8")
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "exclude").write_text("\n".join(own), encoding="utf-8")

        listed = git(root, "ls-files", "--others", "--exclude-standard").splitlines()
        found = walk(root, root=root, wanted=_is_markdown, passed_over=note, refused=note)

        expected = sorted(name for name in listed if name.endswith(".md"))
        assert sorted(path.relative_to(root).as_posix() for path in found) == expected
        for name in FILES:  # Each file alone is judged as it is in the whole.
            alone = walk(root / name, root=root, wanted=_is_markdown, passed_over=note, refused=note)
            assert ([path.relative_to(root).as_posix() for path in alone] == [name]) == (name in expected)


def _is_markdown(path: Path) -> bool:
    return path.suffix == ".md"
