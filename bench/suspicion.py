"""How many harmless texts the rules of `germane/retrieval/suspicion.toml` mark: sections of documentation.

`python bench/suspicion.py [FOLDER...]` reads the Markdown, reStructuredText and text files of the folders;
without any, those of the installed packages and of /usr/share/doc.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from germane.retrieval.suspicion import findings_of

_SECTION = re.compile(r"\n(?=#{1,4} |[^\n]+\n[=\-~^]{4,}\n)")
_LONGEST = 400_000
_SHORTEST = 20


def sections(folders: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The sections of all documents below the folders, with their files."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if (
                path.suffix.lower() in {".md", ".rst", ".txt"}
                and path.is_file()
                and path.stat().st_size < _LONGEST
            ):
                text = path.read_text(encoding="utf-8", errors="ignore")
                yield from ((path, each) for each in _SECTION.split(text) if len(each.strip()) > _SHORTEST)


def main() -> None:
    folders = [Path(each) for each in sys.argv[1:]] or [
        Path(sysconfig.get_path("purelib")),
        Path("/usr/share/doc"),
    ]
    rules: Counter[str] = Counter()
    count = marked = size = 0
    started = time.perf_counter()
    for path, text in sections(folders):
        count, size = count + 1, size + len(text)
        if found := findings_of(text):
            marked += 1
            rules.update(found)
            print(f"{path}: {', '.join(found)}")
    seconds = time.perf_counter() - started
    share = 100 * marked / max(1, count)
    print(f"{marked} of {count:,} sections ({share:.2f} %), {size / 1e6 / seconds:.1f} MB/s: {dict(rules)}")


if __name__ == "__main__":
    main()
