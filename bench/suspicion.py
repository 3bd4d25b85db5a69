"""How many harmless texts the rules of `germane/retrieval/suspicion.toml` mark: documentation and mails.

`python bench/suspicion.py [FOLDER...]` reads the Markdown, reStructuredText and text files of the folders by
sections, and mails (.eml, and folders in the Maildir format) whole; without any, the documentation of the
installed packages and of /usr/share/doc.
"""

from __future__ import annotations

import email
import email.policy
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


def texts(folders: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The sections of all documents below the folders and the mails there, with their files."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.stat().st_size > _LONGEST:
                continue
            if path.suffix.lower() == ".eml" or path.parent.name in {"cur", "new"}:
                yield path, _mail(path)
            elif path.suffix.lower() in {".md", ".rst", ".txt"}:
                text = path.read_text(encoding="utf-8", errors="ignore")
                yield from ((path, each) for each in _SECTION.split(text) if len(each.strip()) > _SHORTEST)


def _mail(path: Path) -> str:
    """The subject, the sender and the text of a mail."""
    mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    body = mail.get_body(("plain", "html"))
    content = body.get_payload(decode=True) if body else b""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
    return f"{mail['subject']}\n{mail['from']}\n\n{text}"


def main() -> None:
    folders = [Path(each) for each in sys.argv[1:]] or [
        Path(sysconfig.get_path("purelib")),
        Path("/usr/share/doc"),
    ]
    rules: Counter[str] = Counter()
    count = marked = size = 0
    started = time.perf_counter()
    for path, text in texts(folders):
        count, size = count + 1, size + len(text)
        if found := findings_of(text):
            marked += 1
            rules.update(found)
            print(f"{path}: {', '.join(found)}")
    seconds = time.perf_counter() - started
    share = 100 * marked / max(1, count)
    print(f"{marked} of {count:,} texts ({share:.2f} %), {size / 1e6 / seconds:.1f} MB/s: {dict(rules)}")


if __name__ == "__main__":
    main()
