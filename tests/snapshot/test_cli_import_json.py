"""What importing and watching a folder print with --json; the reference describes each of their fields."""

from __future__ import annotations

from pathlib import Path

from inline_snapshot import snapshot

from commandline import fields, printed

_GUIDE = (
    "Deploy the boiler controller by the script in the cellar, and look at the pressure gauge afterwards."
)


def changed_folder(folder: Path, db: Path) -> Path:
    """A folder that was imported, and in which something of every sort has changed since."""
    app = folder / "app"
    app.mkdir()
    (app / "README.md").write_text("# App\n\nIt runs.\n", encoding="utf-8")
    (app / "old.md").write_text("Old.\n", encoding="utf-8")
    (app / "guide.md").write_text(_GUIDE, encoding="utf-8")
    printed("import", str(app), db=db)
    (app / "README.md").write_text("# App\n\nIt runs well.\n", encoding="utf-8")
    (app / "old.md").unlink()
    (app / "guide.md").rename(app / "manual.md").write_text(f"{_GUIDE} Or by hand.\n", encoding="utf-8")
    (app / "key.md").write_text("gh" + "p_" + "aB3dE5gH7j" * 3 + "kL9mN1\n", encoding="utf-8")
    (app / "bad.py").write_text("def (:\n", encoding="utf-8")
    return app


def test_import_of_a_folder_that_changed(tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    value = printed("import", str(changed_folder(tmp_path, db)), "--prune", db=db)

    (source,) = value["sources"]
    assert list(source) == fields("Source")
    assert [list(each) for each in source["gone"]] == [fields("Gone")]
    assert [list(each) for each in source["moved"]] == [fields("Moved")]
    assert [list(each) for each in source["skipped"]] == [fields("Skipped")]
    source["skipped"][0]["reason"] = source["skipped"][0]["reason"].partition(", so")[0]
    source["passed_over"][0]["reason"] = source["passed_over"][0]["reason"].partition(" (")[0]
    assert value == snapshot(
        {
            "sources": [
                {
                    "source": "<folder>/app",
                    "read": 3,
                    "created": 0,
                    "known": 0,
                    "revised": 2,
                    "gone": [{"id": "<id 1>", "source": "app/old.md"}],
                    "pruned": True,
                    "moved": [
                        {
                            "id": "<id 2>",
                            "before": "app/guide.md",
                            "after": "app/manual.md",
                            "share": 1.0,
                        }
                    ],
                    "skipped": [
                        {
                            "source": "<folder>/app/key.md:1",
                            "reason": "it looks like a secret (GitHub Token)",
                        }
                    ],
                    "passed_over": [
                        {
                            "source": "<folder>/app/bad.py",
                            "reason": "Can't import <folder>/app/bad.py, line 1: it is no Python",
                        }
                    ],
                    "unchecked": None,
                    "usage_records": 0,
                    "error": None,
                }
            ],
            "read": 3,
            "created": 0,
            "known": 0,
            "revised": 2,
            "gone": 1,
            "skipped": 1,
            "errors": 0,
            "dry_run": False,
        }
    )
