"""Build the documentation site, with each broken link as an error.

    python tools/build_site.py            writes .site/VERSION, and the list of the versions that are there
    python tools/build_site.py FOLDER     writes into another folder than .site

The pages are those of docs, the examples and README; their order is that of docs/index.md. Search works
without a network, also from a folder on disk. It needs Zensical (the group `docs`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import germane

__all__ = ["SITE", "build", "main"]

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / ".site"
_SETTINGS = """
[project]
site_name = "germane"
site_description = "The best context for a token budget, and an account of what is left out of it."
docs_dir = "docs"
site_dir = "site"
use_directory_urls = false
nav = {nav}

[project.theme]
font = false
features = ["navigation.tabs", "navigation.sections", "navigation.footer", "content.code.copy"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle = {{ icon = "lucide/moon", name = "Dark" }}

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle = {{ icon = "lucide/sun", name = "Light" }}

[project.plugins.offline]

[project.extra.version]
provider = "mike"

[project.markdown_extensions.toc]
permalink = true

[project.markdown_extensions.tables]
[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]
"""
_RENAMED = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "LICENSE": "licence.md",
    "decisions": "decisions/index.md",
    "examples": "index.md",
}
"""What has another name on the site."""
_FOREIGN = re.compile(r'<script src="?https?://[^>]*></script>')
"""A script from elsewhere that the theme loads for old browsers."""
_FENCE = re.compile(r"^```(\w+) \w+$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")
_TARGET = re.compile(r"\]\(([^)\s]+)\)")


def main() -> None:
    """Build the site of this version."""
    site = Path(sys.argv[1]) if sys.argv[1:] else SITE
    build(site)
    print(site / "index.html")


def build(site: Path) -> None:
    """Write the pages of this version into `site`. Raises CalledProcessError for a broken link."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        pages = work / "docs"
        shutil.copytree(ROOT / "docs", pages)
        _add_pages(pages)
        for page in pages.rglob("*.md"):
            page.write_text(_as_page(page, pages), encoding="utf-8")
        nav = _toml(list(_nav((pages / "index.md").read_text(encoding="utf-8"))))
        (work / "zensical.toml").write_text(_SETTINGS.format(nav=nav), encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        subprocess.run(command, cwd=work, check=True, env={**os.environ, "NO_COLOR": "1"})
        for page in (work / "site").rglob("*.html"):
            page.write_text(_FOREIGN.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")
        target = site / germane.__version__
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(work / "site", target)
    _list_versions(site)


def _add_pages(pages: Path) -> None:
    """Add what isn't in docs: the examples as pages, README, CHANGELOG, and a list of the decisions."""
    for source in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"):
        shutil.copy(ROOT / source, pages / _RENAMED[source])
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    (pages / _RENAMED["LICENSE"]).write_text(f"# Licence\n\n```text\n{licence}\n```\n", encoding="utf-8")
    examples = pages / "examples"
    examples.mkdir()
    for program in sorted((ROOT / "examples").glob("*.py")):
        text = f"# {program.name}\n\n```python\n{program.read_text(encoding='utf-8')}```\n"
        if (output := program.with_suffix(".txt")).exists():
            text += f"\n```text\n{output.read_text(encoding='utf-8')}```\n"
        (examples / f"{program.stem}.md").write_text(text, encoding="utf-8")
    records = sorted((pages / "decisions").glob("0*.md"))
    titles = [each.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for each in records]
    rows = [f"- [{title}]({each.name})" for each, title in zip(records, titles, strict=True)]
    (pages / "decisions" / "index.md").write_text(
        "# Decision records\n\n" + "\n".join(rows) + "\n", encoding="utf-8"
    )


def _as_page(page: Path, pages: Path) -> str:
    """The text of a page with the fences and links that the site understands."""
    text = _FENCE.sub(r"```\1", page.read_text(encoding="utf-8"))
    top = "../" * len(page.relative_to(pages).parent.parts)
    return _TARGET.sub(lambda link: f"]({_target(link[1], top)})", text)


def _target(target: str, top: str) -> str:
    """A link of the repository as one of the site; `top` leads from the page to the first one."""
    inside = target.removeprefix(f"{top}../").removeprefix("docs/")
    path, mark, anchor = inside.partition("#")
    if path in _RENAMED or path.startswith("examples/"):
        return top + _RENAMED.get(path, path.replace(".py", ".md")) + mark + anchor
    return inside if target.startswith("docs/") else target


def _nav(index: str) -> Iterator[dict[str, object]]:
    """The pages by the sections of the index, in its order."""
    yield {"Overview": ["overview.md", {"All pages": "index.md"}]}
    for title, text in _parts(index, "##"):
        own, *groups = _parts(f"### \n{text}", "###")
        yield {title: [*_pages(own[1]), *({name: _pages(part)} for name, part in groups)]}
    names = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE")
    yield {"Project": [_RENAMED[name] for name in names]}


def _parts(text: str, mark: str) -> list[tuple[str, str]]:
    """The headings of a level, each with the text below it."""
    parts = re.split(rf"^{mark} (.*)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _pages(text: str) -> list[dict[str, str]]:
    return [{name: path} for name, path in _LINK.findall(text)]


def _list_versions(site: Path) -> None:
    """Write which versions there are, the newest first, for the menu; the site begins with this one."""
    there = sorted((each.name for each in site.iterdir() if each.is_dir()), key=_number, reverse=True)
    listed = [{"version": name, "title": name, "aliases": []} for name in there]
    (site / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (site / "index.html").write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={germane.__version__}/index.html">',
        encoding="utf-8",
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _toml(value: object) -> str:
    """A nested list of pages as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items()) + " }"
    return "[" + ", ".join(map(_toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


if __name__ == "__main__":
    main()
