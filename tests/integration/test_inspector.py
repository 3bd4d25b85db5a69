"""The inspector in a browser: each view is opened and used, and no text becomes markup."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import germane

sync_api = pytest.importorskip("playwright.sync_api")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
HOSTILE = (
    "Billing runs a hostile job: <img src=x onerror=\"document.title='XSS'\"></script>"
    "<script>document.title='XSS'</script>"
)
NOTED = "Billing runs at night."

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no chromium is installed: apt-get install chromium"),
    pytest.mark.timeout(240),
]


class Inspected:
    """A running inspector: its address, its token, and what the store has."""

    def __init__(self, address: str, token: str, ids: dict[str, str]) -> None:
        self.address, self.token, self.ids = address, token, ids

    def page(self, view: str = "playground") -> str:
        return f"{self.address}/#/{view}"


def filled(path: Path) -> dict[str, str]:
    """A store with something for every view, and the ids of what tests look for."""
    with germane.open(path, embedder=None) as engine:
        first = engine.remember(NOTED, kind="fact", tags=["billing"])
        revised = engine.revise(first.id, content="Billing runs at noon.")
        hostile = engine.remember(HOSTILE, kind="decision", confidence=0.8)
        engine.review(hostile.id, "success")
        gone = engine.remember("To be purged: the old billing cluster.", kind="note")
        for number in range(40):
            engine.remember(f"Billing runs job {number}: it sends the invoices of region {number}.")
        refs = [
            engine.assemble("How does billing run?", budget=budget, record=True).ref for budget in (200, 400)
        ]
        conversation = engine.conversation("monday")
        conversation.extend(
            [
                {"role": "user", "content": "How does billing run? <b>bold</b>"},
                {"role": "assistant", "content": "At noon."},
                {"role": "user", "content": "Since when?"},
            ]
        )
        conversation.hide(conversation.groups()[0])
        engine.space("team", create=True)
        return {
            "first": revised.id,
            "hostile": hostile.id,
            "gone": gone.id,
            "small": str(refs[0]),
            "large": str(refs[1]),
        }


def serving(*arguments: str, db: Path) -> tuple[subprocess.Popen[str], dict[str, str]]:
    started = subprocess.Popen(
        [sys.executable, "-m", "germane", "inspect", "--json", "--db", str(db), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    return started, json.loads(started.stdout.readline())


@pytest.fixture(scope="module")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspected]:
    db = tmp_path_factory.mktemp("inspector") / "m.db"
    ids = filled(db)
    started, answer = serving(db=db)
    yield Inspected(answer["address"], answer["token"], ids)
    started.terminate()
    started.communicate(timeout=60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, inspected: Inspected) -> Iterator[Any]:
    """A page of its own with the key, which must end without an error and without a foreign request."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    faults: list[str] = []
    opened.on("console", lambda each: faults.append(each.text) if each.type in ("error", "warning") else None)
    opened.on("pageerror", lambda each: faults.append(str(each)))
    opened.on("requestfailed", lambda each: faults.append(f"{each.url}: {each.failure}"))
    opened.on(
        "request", lambda each: None if each.url.startswith(inspected.address) else faults.append(each.url)
    )
    opened.goto(f"{inspected.address}/#token={inspected.token}")
    sync_api.expect(opened.get_by_role("heading", level=1)).to_have_text("Playground")
    yield opened
    # The page gives up a request that a newer one replaces, and a wrong value is answered with 422.
    usual = ("ERR_ABORTED", "status of 422")
    assert [each for each in faults if not any(one in each for one in usual)] == []
    context.close()


def expect(locator: Any) -> Any:
    return sync_api.expect(locator)


def ask(page: Any, inspected: Inspected, *, budget: int = 200) -> None:
    page.goto(inspected.page(f"playground?q=How+does+billing+run%3F&budget={budget}"))
    expect(page.get_by_label("Question")).to_have_value("How does billing run?")
    expect(page.get_by_role("heading", name="Candidates")).to_be_visible()


def test_the_address_gives_the_key_once(page: Any, inspected: Inspected) -> None:
    expect(page).to_have_url(re.compile(r"#/playground"))
    assert inspected.token not in page.url
    page.reload()
    expect(page.get_by_label("Question")).to_be_visible()


def test_without_a_key_nothing_is_shown(browser: Any, inspected: Inspected) -> None:
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(inspected.address)
    opened.get_by_label("Key").fill("wrong")
    opened.get_by_role("button", name="Open").click()
    expect(opened.get_by_role("alert")).to_contain_text("This needs a key")
    opened.get_by_label("Key").fill(inspected.token)
    opened.get_by_role("button", name="Open").click()
    expect(opened.get_by_label("Question")).to_be_visible()
    context.close()


def test_the_playground_shows_each_candidate_and_why(page: Any, inspected: Inspected) -> None:
    ask(page, inspected)
    rows = page.locator(".entries tbody tr:not(.below)")
    expect(rows.first).to_contain_text("in, ")
    expect(page.locator(".stacked svg")).to_have_attribute("aria-label", re.compile(r"free of 200 tokens"))
    page.get_by_role("radio", name=re.compile("^Out")).check(force=True)
    expect(rows.first).to_contain_text("short by")
    expect(page.get_by_role("heading", name="With the next 100 tokens")).to_be_visible()
    expect(page.locator(".changes .entered").first).to_contain_text("tokens")
    before = page.locator(".figure b").first.inner_text()
    page.get_by_label("Budget in tokens").fill("600")
    expect(page.locator(".figure span").first).to_have_text("of 600 tokens")
    assert page.locator(".figure b").first.inner_text() != before


def test_the_playground_says_what_a_pin_and_an_exclusion_change(page: Any, inspected: Inspected) -> None:
    ask(page, inspected)
    page.get_by_role("radio", name=re.compile("^Out")).check(force=True)
    page.locator(".expander").filter(has_text="sends the invoices").first.click()
    page.get_by_role("button", name="it is pinned?").click()
    expect(page.locator(".what-if .entered")).not_to_have_count(0)
    expect(page.locator(".what-if .left")).not_to_have_count(0)
    page.get_by_role("button", name="Keep it pinned").click()
    expect(page.locator(".chip")).to_contain_text("pinned")
    assert "pin=" in page.url
    page.locator(".chip button").click()
    expect(page.locator(".chip")).to_have_count(0)
    page.get_by_role("radio", name=re.compile("^In")).check(force=True)
    page.locator(".expander").first.click()
    page.get_by_role("button", name="it is excluded?").click()
    expect(page.locator(".what-if .left")).to_have_count(1)


def test_a_budget_that_is_too_small_names_the_one_that_is_enough(page: Any, inspected: Inspected) -> None:
    page.goto(inspected.page(f"playground?q=billing&budget=2&pin={inspected.ids['first']}"))
    expect(page.get_by_role("alert")).to_contain_text("budget")
    page.get_by_role("button", name=re.compile("^Use .* tokens$")).click()
    expect(page.get_by_role("heading", name="Candidates")).to_be_visible()


def test_text_of_memories_stays_text(page: Any, inspected: Inspected) -> None:
    ask(page, inspected, budget=2000)
    expect(page.locator("pre.context")).to_contain_text("onerror")
    page.locator(".entries tbody tr").filter(has_text="hostile job").first.locator(".expander").click()
    expect(page.locator(".detail pre")).to_have_text(HOSTILE)
    assert page.locator("main img, main script").count() == 0
    assert "XSS" not in page.title()


def test_the_page_makes_no_markup_and_loads_nothing_else(inspected: Inspected) -> None:
    folder = Path(germane.__file__).parent / "servers" / "static"
    text = "\n".join(each.read_text(encoding="utf-8") for each in folder.iterdir())
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|DOMParser", text)
    assert not re.search(r"(?:src|href|from|import|url)\W{1,3}https?:", text)
    answer = httpx.get(inspected.address)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|\sstyle=", answer.text)
    again = httpx.get(inspected.address, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert httpx.get(f"{inspected.address}/inspector/nothing.js").status_code == 404
    assert httpx.get(f"{inspected.address}/inspector/..%2Frest.py").status_code == 404
