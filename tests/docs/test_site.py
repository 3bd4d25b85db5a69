"""The documentation site: it is built without a broken link, has every page, and loads nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import germane
from docs.pages import EXAMPLES, ROOT

pytest.importorskip("zensical", reason="Zensical isn't installed: pip install --group docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(
        [sys.executable, ROOT / "tools" / "build_site.py", folder],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


def test_every_page_and_example_is_listed(site: Path) -> None:
    index = (site / germane.__version__ / "index.html").read_text(encoding="utf-8")
    documents = [each.relative_to(ROOT / "docs") for each in (ROOT / "docs").rglob("*.md")]
    examples = [Path("examples", each.name) for each in EXAMPLES]
    listed = {each for each in (*documents, *examples) if each.parent.name != "decisions"} - {
        Path("index.md")
    }
    missing = [str(each) for each in sorted(listed) if f'href="./{each.with_suffix(".html")}"' not in index]
    assert missing == []


def test_the_search_knows_what_pages_say(site: Path) -> None:
    index = (site / germane.__version__ / "search.json").read_text(encoding="utf-8")
    for text in ("purge_user", "Send a request that fits", "bug-report", "Snowball"):
        assert text in index


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loading = re.compile(
        r"<(?:script|img|iframe)[^>]*src=\"?https?:|<link[^>]*stylesheet[^>]*href=\"?https?:"
    )
    for page in site.rglob("*.html"):
        assert loading.search(page.read_text(encoding="utf-8")) is None, page


def test_the_site_begins_with_this_version(site: Path) -> None:
    versions = json.loads((site / "versions.json").read_text(encoding="utf-8"))
    assert [each["version"] for each in versions] == [germane.__version__]
    assert f"url={germane.__version__}/index.html" in (site / "index.html").read_text(encoding="utf-8")
