"""What looks like a secret is refused by every import; each one here is put together as the test runs."""

from __future__ import annotations

import io
import json
import random
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import germane
from germane import Engine, MissingExtra, Order
from germane.importers import export_jsonl, find_secrets, import_source

LETTERS, DIGITS, HEX = string.ascii_letters, string.digits, "0123456789abcdef"


def made(length: int, signs: str = LETTERS + DIGITS) -> str:
    """Random signs, the same on each run."""
    chosen = random.Random(length)  # noqa: S311 - Not a secret, which is the point.
    return "".join(chosen.choice(signs) for _ in range(length))


SECRETS = {
    "AWS Access Key": "AKIA" + made(16, string.ascii_uppercase + "234567"),
    "secret:api-key of Anthropic": "-".join(["sk", "ant", "api03", made(93)]),
    "Basic Auth Credentials": "postgres://" + "admin:" + made(14) + "@db.example.com/prod",
    "secret:bearer-token": "Authorization: " + "Bearer " + made(40),
    "secret:github-token": "github_" + "pat_" + made(22) + "_" + made(59),
    "GitHub Token": "gh" + "p_" + made(36),
    "secret:api-key of Google": "AI" + "za" + made(35),
    "Hex High Entropy String": 'key = "' + made(40, HEX) + '"',
    "secret:api-key of Hugging Face": "hf" + "_" + made(34, LETTERS),
    "JSON Web Token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0." + made(43),
    "OpenAI Token": "sk-" + made(20) + "T3Blbk" + "FJ" + made(20),
    "Private Key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "PyPI Token": "pypi-" + "AgEIcHlwaS5vcmc" + made(70),
    "Secret Keyword": "DB_PASS" + "WORD=" + made(12) + "7",
    "Slack Token": "xox" + "b-" + made(12, DIGITS) + "-" + made(12, DIGITS) + "-" + made(24),
    "Stripe Access Key": "sk_" + "live_" + made(24),
}
HARMLESS = [
    f"Fixed in commit {made(40, HEX)}.",
    f"sha256:{made(64, HEX)}",
    f'sha256 = "{made(64, HEX)}"',
    "id 123e4567-e89b-12d3-a456-426614174000",
    'password = "<your-password>"',
    "password = os.environ['PASSWORD']",
    "token: ${TOKEN}",
    "Password: the secret that a user types; a token is a unit of text.",
    "AKIA" + "IOSFODNN7" + "EXAMPLE",
    "gh" + "p_" + "x" * 36,
    "postgres://user:password@localhost/db",
    "TOKENIZER=models/all_minilm/tokenizer.json",
    "api_key = settings.api_key_of_2024",
    "The secret of good bread is time: see https://example.org/2024/11/22/on-baking-bread-slowly.html",
]


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None) as opened:
        yield opened


@pytest.mark.parametrize("rule", sorted(SECRETS))
def test_each_format_is_found_with_its_line(rule: str) -> None:
    found = find_secrets(f"# Notes\n\nFirst.\n{SECRETS[rule]}\nLast.\n")
    assert [secret.line for secret in found] == [4]
    assert found[0].rule == rule.partition(" of ")[0]
    assert find_secrets(f"{SECRETS[rule]}  <!-- pragma: allowlist secret -->") == ()


@pytest.mark.parametrize("line", HARMLESS)
def test_what_only_resembles_a_secret_is_none(line: str) -> None:
    assert find_secrets(line) == ()


@pytest.mark.parametrize(
    "text",
    ["://", "password", "pass_", "password" + " " * 500, "ibm_cloud_iam_api_key", "a=" * 700 + "token"],
)
def test_a_long_line_is_looked_through_in_time_linear_in_its_length(text: str) -> None:
    """99 KB of `://` took 11 seconds, of `password` more than a minute; the timeout of the tests judges."""
    assert find_secrets((text * 200_000)[:200_000]) is not None


@pytest.mark.parametrize("at", [0, 1_700, 1_800, 1_900, 2_040, 9_000, 19_500])
def test_a_secret_is_found_wherever_it_stands_in_a_long_line(at: int) -> None:
    line = ("word " * 4_000)[:at] + " " + SECRETS["AWS Access Key"] + " " + "word " * 100
    assert [(secret.rule, secret.line) for secret in find_secrets(line)] == [("AWS Access Key", 1)]
    assert find_secrets(f"{line} pragma: allowlist secret") == ()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


FILLER = "The quick brown fox jumps over the lazy dog and runs on and on. " * 14


def everything(engine: Engine) -> str:
    out = io.StringIO()
    export_jsonl(engine.memories(order=Order.OLDEST), out)
    return out.getvalue()


def test_of_a_folder_only_the_part_with_the_secret_is_refused(tmp_path: Path, engine: Engine) -> None:
    secret = SECRETS["AWS Access Key"]
    guide = write(
        tmp_path / "guide.md",
        f"---\ntags: [a]\n---\n# Guide\n\n## Use\n\n{FILLER}\n\n## Deploy\n\n{FILLER}\n\nKey: {secret}\n",
    )
    module = write(tmp_path / "login.py", f'"""Signs in with {SECRETS["GitHub Token"]}."""\n')
    needs = {"name": "x", "dependencies": {"y": SECRETS["Basic Auth Credentials"]}}
    manifest = write(tmp_path / "package.json", json.dumps(needs, indent=1))

    report = import_source(engine, str(tmp_path))

    assert sorted(each.source for each in report.skipped) == [f"{guide}:14", f"{module}:1", f"{manifest}:4"]
    assert "(AWS Access Key)" in next(each.reason for each in report.skipped if "guide" in each.source)
    assert (report.read, report.created) == (4, 1)
    assert [memory.subject for memory in engine.memories()] == ["Guide > Use"]
    assert all(each not in everything(engine) + repr(report) for each in SECRETS.values())


def test_a_secret_that_comes_into_a_text_leaves_the_version_before(tmp_path: Path, engine: Engine) -> None:
    path = write(tmp_path / "a" / "README.md", "# App\n\nIt runs.\n")
    import_source(engine, str(path.parent))
    write(path, f"# App\n\nIt runs with {SECRETS['Stripe Access Key']}.\n")
    report = import_source(engine, str(path.parent), prune=True)
    assert (len(report.skipped), report.gone) == (1, ())
    assert [memory.content for memory in engine.memories()] == ["# App\n\nIt runs."]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "# Title\n\n{}\n"),
        ("a.md", "---\nlogin: {}\n---\n# Title\n"),
        ("a.jsonl", '{{"content": "{}"}}\n'),
        ("a.jsonl", '{{"content": "Fine.", "metadata": {{"of": ["{}"]}}}}\n'),
        ("a.jsonl", '{{"content": "Fine.", "subject": "{}"}}\n'),
        ("a.txt", "user: hello\nassistant: {}\n"),
    ],
)
def test_every_layout_is_checked(tmp_path: Path, engine: Engine, name: str, text: str) -> None:
    secret = SECRETS["GitHub Token"]
    path = write(tmp_path / name, text.format(secret))
    report = import_source(engine, str(path))
    assert len(report.skipped) == 1
    assert "(GitHub Token)" in report.skipped[0].reason
    assert report.skipped[0].source.startswith(str(path))
    assert secret not in everything(engine) + repr(report)
    assert import_source(engine, str(path), allow_secrets=True).skipped == ()
    assert secret in everything(engine)


def test_fields_are_judged_by_their_names_and_by_formats(tmp_path: Path, engine: Engine) -> None:
    fields: list[dict[str, object]] = [
        {"deploy": {"password": made(12) + "7"}},
        {"notes": [{"text": SECRETS["GitHub Token"]}]},
        {"commit": made(40, HEX), "digest": made(16, HEX), "tags": ["a"]},
    ]
    lines = [json.dumps({"content": f"Note {n}.", "metadata": each}) for n, each in enumerate(fields)]
    report = import_source(engine, str(write(tmp_path / "a.jsonl", "\n".join(lines))))
    assert (report.created, len(report.skipped)) == (1, 2)
    assert [memory.content for memory in engine.memories()] == ["Note 2."]


def test_commits_are_checked(tmp_path: Path, engine: Engine) -> None:
    def git(*arguments: str) -> None:
        names = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *names, *arguments], check=True, capture_output=True)  # noqa: S607 - As a developer finds it.

    git("init")
    git("commit", "--allow-empty", "-m", "Begin")
    git("commit", "--allow-empty", "-m", f"Use {SECRETS['GitHub Token']}")
    report = import_source(engine, f"git:{tmp_path}")
    assert [memory.subject for memory in engine.memories()] == ["Begin"]
    assert "line 1 of its text" in report.skipped[0].source


def test_of_an_export_all_versions_of_a_memory_are_refused(tmp_path: Path, engine: Engine) -> None:
    first = engine.remember("The key is new.")
    second = engine.revise(first.id, f"The key is {SECRETS['AWS Access Key']}.", force=True)
    engine.revise(second.id, "The key is old.")
    engine.remember("Fine.")
    path = tmp_path / "all.jsonl"
    with path.open("w", encoding="utf-8") as out:
        memories = engine.memories(germane.Filter(statuses=tuple(germane.Status)))
        export_jsonl(sorted(memories, key=lambda memory: memory.id), out)
    with germane.open(":memory:", embedder=None) as copy:
        report = import_source(copy, str(path))
        assert (report.read, report.created, len(report.skipped)) == (4, 1, 1)
        assert [memory.content for memory in copy.memories()] == ["Fine."]
        assert import_source(copy, str(path), allow_secrets=True).created == 3


def test_without_the_detector_a_folder_is_refused_and_a_file_says_that_it_was_not_checked(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.md", "# Title\n")
    monkeypatch.setitem(sys.modules, "detect_secrets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'germane\[project\]'"):
        import_source(engine, str(tmp_path))
    report = import_source(engine, str(path))
    assert report.created == 1
    assert "detect-secrets isn't installed" in str(report.unchecked)
    assert import_source(engine, str(tmp_path), allow_secrets=True).unchecked == "secrets were allowed"
