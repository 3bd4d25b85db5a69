"""Make the pictures of the inspector in docs/how-to, in a browser, from the demo's memory.

    python tools/inspector_pictures.py

It needs Playwright (the group `test`), Pillow and a chromium. Look at the pictures before you commit them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import expect, sync_playwright

import germane
from germane.demo import load_demo

FOLDER = Path(__file__).parents[1] / "docs" / "how-to"
TALK = (
    "My sister Anna lives in Rome, and my boss is called Marta.",
    "I'm allergic to peanuts, and I prefer tea.",
    "Anna moved to Lisbon in March.",
)


def main() -> None:
    """Write each picture into docs/how-to."""
    with TemporaryDirectory() as folder, _inspected(Path(folder) / "demo.db") as (address, ids, page):
        _playground(page, address)
        _what_if(page)
        page.goto(f"{address}/#/diff/{ids['first']}/{ids['second']}")
        page.get_by_role("heading", name="Memories").wait_for()
        _write(page, "diff", height=760)
        page.goto(f"{address}/#/learning/{ids['run']}")
        page.get_by_role("heading", name="Decisions").wait_for()
        _write(page, "learning", height=760)


def _playground(page: Any, address: str) -> None:
    page.goto(f"{address}/#/playground?q=How+are+tokens+counted%3F&budget=1500")
    expect(page.locator(".figure span").first).to_have_text("of 1,500 tokens")
    expect(page.locator(".results")).to_have_attribute("aria-busy", "false")
    _write(page, "playground", height=820)


def _what_if(page: Any) -> None:
    page.get_by_role("button", name="Dark").click()
    page.get_by_role("radio", name=re.compile("^Out")).check(force=True)
    expect(page.locator(".entries tbody tr").first).to_contain_text("short by")
    page.locator(".expander").first.click()
    page.get_by_role("button", name="it is pinned?").click()
    page.locator(".what-if .entered").first.wait_for()
    page.get_by_role("heading", name="Candidates").scroll_into_view_if_needed()
    page.evaluate("window.scrollTo(0, document.querySelector('.entries').offsetTop - 120)")
    _write(page, "what-if", height=640)
    page.get_by_role("button", name="Light").click()


def _write(page: Any, name: str, *, height: int) -> None:
    page.set_viewport_size({"width": 1180, "height": height})
    taken = Image.open(BytesIO(page.screenshot()))
    taken.convert("RGB").quantize(64).save(FOLDER / f"inspect-{name}.png", optimize=True)


@contextmanager
def _inspected(path: Path) -> Iterator[tuple[str, dict[str, str], Any]]:
    """A store with the demo, its inspector, and a page of it with the key."""
    with germane.open(path) as engine:
        load_demo(engine)
        made = [
            engine.assemble(question, budget=2000, record=True).ref
            for question in ("Which database for billing?", "What did we decide about caching?")
        ]
        talk = engine.conversation("family")
        for text in TALK:
            talk.append("user", text)
        ids = {"first": str(made[0]), "second": str(made[1]), "run": engine.learn_from(talk).id}
    command = [sys.executable, "-m", "germane", "inspect", "--json", "--db", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        answer = json.loads(server.stdout.readline() if server.stdout else "")
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
                )
                page = browser.new_page(viewport={"width": 1180, "height": 820})
                page.goto(f"{answer['address']}/#token={answer['token']}")
                page.get_by_label("Question").wait_for()
                yield answer["address"], ids, page
                browser.close()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
