"""The page on the architecture names only files and functions that exist."""

from __future__ import annotations

import re

from docs.pages import ROOT

SOURCE = ROOT / "src" / "germane"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_file_exists() -> None:
    named = set(re.findall(r"[\w./]+\.(?:py|sql)\b", PAGE))
    named |= {name for name in re.findall(r"`([a-z_]+(?:/[a-z_]*)*)`", PAGE) if "/" in name}

    assert len(named) > 30
    assert [name for name in sorted(named) if not any((at / name).exists() for at in (ROOT, SOURCE))] == []


def test_every_name_is_in_the_source() -> None:
    files = [path for path in SOURCE.rglob("*") if path.suffix in (".py", ".sql")]
    words = {word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    words |= {word for path in files for word in path.relative_to(SOURCE).with_suffix("").parts}
    drawn = " ".join(re.findall(r"^```text$(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    named = re.findall(r"`@?([A-Za-z_.]+)`", PAGE) + re.findall(r"\b(?:[A-Za-z]+[._])+[a-z_]+", drawn)
    parts = {part for name in named if not name.endswith((".py", ".sql")) for part in name.split(".") if part}

    assert len(parts) > 30
    assert sorted(parts - words) == []
