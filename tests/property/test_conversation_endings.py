"""A window that reads the end of a conversation alone is the window over all of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import BudgetTooSmall, Message
from germane.conversation import Selection, Tiers
from germane.stores import SqliteStore
from requests_of import conversations
from support.examples import examples

SIZES = st.sampled_from([1, 2, 3, 7, 50])
BUDGETS = st.sampled_from([None, 0, 40, 300, 5000])
TIERS = st.sampled_from([None, Tiers(recent=1, older=60, inactive=20)])


@contextmanager
def _logged(chat: tuple[Message, ...]) -> Iterator[Path]:
    """A file with the conversation as a log holds it, its hidden groups hidden, beside another one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "talks.db"
        with germane.open(path, embedder=None, durability="relaxed") as engine:
            engine.conversation("other").append("user", "Said elsewhere.", group="a")
            log = engine.conversation("chat")
            log.extend(message.evolve(id="", hidden=False) for message in chat)
            hidden = {str(message.group) for message in chat if message.hidden}
            for group in hidden & {group.id for group in log.groups()}:
                log.hide(group)
        yield path


def _window(
    log: germane.Conversation, groups: int, budget: int | None, tiers: Tiers | None
) -> Selection | str:
    try:
        return log.window(groups, budget=budget, tiers=tiers)
    except BudgetTooSmall as error:
        return str(error)


@settings(max_examples=examples(60))
@given(conversations(), SIZES, BUDGETS, TIERS)
def test_the_end_alone_gives_the_same_window(
    chat: tuple[Message, ...], groups: int, budget: int | None, tiers: Tiers | None
) -> None:
    with _logged(chat) as path, germane.open(path, embedder=None) as engine:
        log = engine.conversation("chat")
        of_the_end = _window(log, groups, budget, tiers)
        log.messages()
        assert of_the_end == _window(log, groups, budget, tiers)


def test_only_the_end_is_read_until_all_is_in_memory(tmp_path: Path) -> None:
    with germane.open(tmp_path / "talks.db", embedder=None) as engine:
        engine.conversation("chat").extend({"role": "user", "content": str(each)} for each in range(9))
    with closing(SqliteStore(tmp_path / "talks.db")) as store:
        log = store.conversations
        end = log.last_groups("default", "chat", 2)
        assert end is not None
        assert [message.text for message in end.messages] == ["7", "8"]
        assert len(end.opened) == 9
        whole = log.messages("default", "chat")
        assert whole[-2:] == end.messages
        assert log.last_groups("default", "chat", 2) is None
        assert log.last_groups("default", "nothing", 2) is not None
