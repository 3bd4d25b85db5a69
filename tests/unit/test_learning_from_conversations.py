"""learn_from, learning_runs and unlearn: what is stored, with which sources, and how it is taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import Engine, Filter, Memory, Message, Status, Trust
from germane.errors import InvalidInput, MessageNotFound, RunNotFound
from germane.extractors import LearningRun, Proposal, ProposalOutcome, Quote
from germane.testing.fakes import FixedClock

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
EVERY = Filter(statuses=tuple(Status))
HELLO = "My name is Anna and I live in Nagoya. I'm allergic to peanuts."


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def engine(clock: FixedClock) -> Iterator[Engine]:
    with germane.open(":memory:", clock=clock) as engine:
        yield engine


def outcomes(run: LearningRun) -> list[tuple[str, str]]:
    return [(each.outcome.value, each.proposal.content) for each in run.decisions]


def shown(engine: Engine) -> list[object]:
    """What a user can see: a context, results, all memories with their texts, and their stages."""
    memories = engine.memories(EVERY)
    return [
        engine.assemble("Where does the user live, and what does she eat?", budget=600).text,
        engine.recall("Where does the user live?"),
        [(memory, memory.renditions) for memory in memories],
        engine.lifecycle_states([memory.ref for memory in memories]),
        engine.stats().by_kind,
    ]


def test_a_chat_becomes_facts_with_their_sources(engine: Engine) -> None:
    message = engine.conversation("chat").append("user", HELLO)
    run = engine.learn_from("chat")
    assert outcomes(run) == [
        ("new", "The user's name is Anna."),
        ("new", "The user lives in Nagoya."),
        ("new", "The user is allergic to peanuts."),
    ]
    for decision, memory in zip(run.decisions, reversed(engine.memories()), strict=True):
        assert decision.memory == memory.id
        assert memory.source == f"conversation:chat#{message.id}"
        assert (memory.subject, memory.session, memory.trust) == ("user", "chat", Trust.OWNER)
        assert memory.created_at == message.created_at
        assert decision.proposal.quotes[0].text in HELLO
    assert engine.learning_runs() == (run,)


def test_messages_are_read_once(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", HELLO)
    first = engine.learn_from(chat)
    assert (first.since, first.through) == (0, 1)
    again = engine.learn_from(chat)
    assert (again.since, again.through, again.decisions) == (1, 1, ())
    chat.append("user", "I'm vegetarian.")
    assert outcomes(engine.learn_from(chat)) == [("new", "The user is vegetarian.")]
    whole = engine.learn_from(chat, again=True)
    assert {outcome for outcome, _ in outcomes(whole)} == {"nothing"}
    assert engine.count() == 4


def test_a_time_says_from_when_to_read(engine: Engine, clock: FixedClock) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I live in Nagoya.")
    clock.advance(timedelta(days=2))
    chat.append("user", "I'm vegetarian.")
    assert outcomes(engine.learn_from(chat, since="yesterday")) == [("new", "The user is vegetarian.")]
    assert outcomes(engine.learn_from(chat, since=START)) == [
        ("new", "The user lives in Nagoya."),
        ("nothing", "The user is vegetarian."),
    ]


def test_a_dry_run_stores_nothing(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", HELLO)
    run = engine.learn_from(chat, dry_run=True)
    assert (len(run.decisions), run.dry_run) == (3, True)
    assert (engine.count(), engine.learning_runs()) == (0, ())
    assert outcomes(engine.learn_from(chat)) == outcomes(run)


def test_messages_that_are_not_stored_can_be_learned_from(engine: Engine) -> None:
    run = engine.learn_from([{"role": "user", "content": HELLO}])
    assert (run.session, len(run.decisions)) == (None, 3)
    assert [memory.source for memory in engine.memories()] == [None] * 3
    again = engine.learn_from([{"role": "user", "content": HELLO}])
    assert {each.outcome for each in again.decisions} == {ProposalOutcome.CONFIRMED}


def test_what_is_stated_again_confirms(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I'm allergic to peanuts.")
    first = engine.learn_from(chat)
    chat.append("user", "As I mentioned, I'm allergic to peanuts!")
    (decision,) = engine.learn_from(chat).decisions
    assert (decision.outcome, decision.memory) == (ProposalOutcome.CONFIRMED, first.decisions[0].memory)
    assert engine.lifecycle_state(decision.memory or "").confirmations == 1


def test_a_change_revises_and_the_former_value_holds_for_its_time(engine: Engine, clock: FixedClock) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I live in Nagoya.")
    (first,) = engine.learn_from(chat).decisions
    clock.advance(timedelta(days=60))
    chat.append("user", "I moved to Osaka.")
    (second,) = engine.learn_from(chat).decisions
    assert (second.outcome, second.memory) == (ProposalOutcome.REVISED, first.memory)
    former, now = engine.history(first.memory or "")
    assert (former.content, former.valid_until) == ("The user lives in Nagoya.", clock())
    assert (now.content, now.valid_from) == ("The user moved to Osaka and lives there.", clock())
    assert engine.recall("Where does the user live?")[0].memory.content == now.content
    assert engine.recall("Where did the user live in January 2026?")[0].memory.content == former.content
    assert "Nagoya" not in engine.assemble("Where does the user live?", budget=300, conversations=False).text


def test_a_correction_says_that_the_former_was_never_valid(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "My dentist appointment is on Tuesday.")
    engine.learn_from(chat)
    chat.append("user", "No, it's Thursday.")
    (decision,) = engine.learn_from(chat).decisions
    assert decision.outcome is ProposalOutcome.REVISED
    former, now = engine.history(decision.memory or "")
    assert now.content == "The user's dentist appointment is on Thursday."
    assert (former.valid_until, now.valid_from) == (None, None)


def test_the_opposite_stands_beside_and_both_are_named(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I like hiking.")
    (first,) = engine.learn_from(chat).decisions
    chat.append("user", "I don't like hiking.")
    (second,) = engine.learn_from(chat).decisions
    assert (second.outcome, second.other) == (ProposalOutcome.CONTRADICTED, first.memory)
    assert engine.get(first.memory).confidence == 0.8
    assert engine.count() == 2
    assert [run.id for run in engine.learning_runs(memory_id=first.memory)] == [
        run.id for run in engine.learning_runs()
    ]


def test_what_ended_revises(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I eat meat only on Sundays. I never drink coffee.")
    chat.append("user", "I only eat fish.")
    engine.learn_from(chat)
    chat.append("user", "I no longer only eat fish.")
    decisions = engine.learn_from(chat).decisions
    assert [each.outcome for each in decisions] == [ProposalOutcome.REVISED]


def test_an_older_conversation_does_not_undo_a_newer_one(engine: Engine, clock: FixedClock) -> None:
    old = engine.conversation("old")
    old.append("user", "I live in Nagoya.")
    clock.advance(timedelta(days=9))
    new = engine.conversation("new")
    new.append("user", "I live in Osaka.")
    engine.learn_from(new)
    (decision,) = engine.learn_from(old).decisions
    assert decision.outcome is ProposalOutcome.NOTHING
    assert [memory.content for memory in engine.memories()] == ["The user lives in Osaka."]


def test_what_was_forgotten_stays_so(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I live in Nagoya. I'm vegetarian.")
    for decision in engine.learn_from(chat).decisions:
        engine.forget(decision.memory or "")
    run = engine.learn_from(chat, again=True)
    assert {each.outcome for each in run.decisions} == {ProposalOutcome.NOTHING}
    assert engine.count() == 0


def test_messages_without_a_log_restore_nothing_that_was_forgotten(engine: Engine) -> None:
    messages = [{"role": "user", "content": "I'm vegan."}]
    (decision,) = engine.learn_from(messages).decisions
    engine.forget(decision.memory or "")
    (again,) = engine.learn_from(messages).decisions
    assert (again.outcome, again.memory, again.reason) == ("nothing", decision.memory, "It was forgotten.")


def test_what_ended_can_begin_again(engine: Engine) -> None:
    texts = ("I only eat fish.", "I no longer only eat fish.", "I only eat fish.")
    runs = [engine.learn_from([{"role": "user", "content": text}]) for text in texts]
    assert [each.outcome.value for run in runs for each in run.decisions] == ["new", "revised", "revised"]
    assert [memory.content for memory in engine.memories()] == ["The user only eats fish."]


def test_consolidation_reads_what_is_new_of_every_conversation(engine: Engine) -> None:
    for name in ("one", "two"):
        engine.conversation(name).append("user", f"My {'dog' if name == 'one' else 'cat'}'s name is Rex.")
    runs = engine.consolidate()
    assert {run.session for run in runs} == {"one", "two"}
    assert engine.consolidate() == ()
    engine.conversation("two").append("user", "I'm vegan.")
    (run,) = engine.consolidate(dry_run=True)
    assert (run.session, len(run.decisions)) == ("two", 1)


def test_a_user_learns_apart(engine: Engine) -> None:
    anna, bob = engine.for_user("anna"), engine.for_user("bob")
    anna.conversation("chat").append("user", "I live in Nagoya.")
    anna.learn_from("chat")
    assert [memory.content for memory in anna.memories()] == ["The user lives in Nagoya."]
    assert (bob.count(), engine.count()) == (0, 0)
    assert (bob.learning_runs(), engine.learning_runs()) == ((), ())
    with pytest.raises(MessageNotFound):
        bob.learn_from("chat")
    with pytest.raises(RunNotFound):
        bob.unlearn(anna.learning_runs()[0].id)
    with pytest.raises(InvalidInput, match="belongs to"):
        bob.learn_from(anna.conversation("chat"))


def test_a_user_does_not_learn_what_the_agent_knows(engine: Engine) -> None:
    engine.remember("The user lives in Nagoya.", kind="fact", subject="user")
    anna = engine.for_user("anna")
    (decision,) = anna.learn_from([{"role": "user", "content": "I live in Nagoya."}]).decisions
    assert decision.outcome is ProposalOutcome.NOTHING
    assert engine.lifecycle_state(engine.memories()[0].id).confirmations == 0


def test_what_is_known_of_a_user_by_name_is_revised_by_what_they_say(engine: Engine) -> None:
    moved, known = "The user moved to Bergen and lives there.", "Ann lives in Oslo."
    for name, current in (("ann", {moved}), ("bob", {moved, known})):
        bound = engine.for_user(name)
        bound.remember(known, kind="fact")
        bound.learn_from([{"role": "user", "content": "I moved to Bergen."}])
        assert {memory.content for memory in bound.memories()} == current


@pytest.mark.parametrize("source", [42, object()])
def test_what_is_no_conversation_is_refused(engine: Engine, source: object) -> None:
    with pytest.raises(InvalidInput, match="source"):
        engine.learn_from(source)  # type: ignore[arg-type]  # It is refused.


def test_wrong_arguments_are_refused(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", HELLO)
    with pytest.raises(InvalidInput, match="again=1"):
        engine.learn_from(chat, again=1)  # type: ignore[arg-type]  # It is refused.
    with pytest.raises(InvalidInput, match="names no time"):
        engine.learn_from(chat, since="soon")
    with pytest.raises(InvalidInput, match="extractor='rules'"):
        engine.learn_from(chat, extractor="rules")  # type: ignore[arg-type]  # It is refused.
    with pytest.raises(RunNotFound, match="run_id='nothing' is no learning run") as raised:
        engine.unlearn("nothing")
    assert (raised.value.run_id, raised.value.agent) == ("nothing", engine.agent)
    assert engine.count() == 0


# Undo.


def _grow(engine: Engine, clock: FixedClock) -> LearningRun:
    """A run with every outcome that changes anything, after another one."""
    chat = engine.conversation("chat")
    chat.append("user", f"{HELLO} I like hiking. My dentist appointment is on Tuesday.")
    engine.learn_from(chat)
    engine.remember("Tea is green.")
    clock.advance(timedelta(days=40))
    chat.append("user", "I moved to Osaka. I'm allergic to peanuts. I'm vegan. I don't like hiking.")
    chat.append("user", "No, my dentist appointment is on Friday. I'm allergic to peanuts. I moved to Kyoto.")
    before.extend(shown(engine))
    return engine.learn_from(chat)


before: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_before() -> None:
    before.clear()


def test_undoing_restores_every_byte(engine: Engine, clock: FixedClock) -> None:
    run = _grow(engine, clock)
    assert {each.outcome.value for each in run.decisions} == {"new", "confirmed", "revised", "contradicted"}
    assert shown(engine) != before
    undone = engine.unlearn(run.id[-8:])
    assert shown(engine) == before
    assert undone.undone_at == clock()
    assert all(each.undone for each in undone.decisions)
    assert engine.learning_runs()[0] == undone
    assert engine.doctor() == ()
    with pytest.raises(InvalidInput, match="was undone at"):
        engine.unlearn(run.id)


def test_what_was_changed_since_is_left_alone(engine: Engine, clock: FixedClock) -> None:
    run = _grow(engine, clock)
    home = next(each for each in run.decisions if "Kyoto" in each.proposal.content).memory or ""
    engine.revise(home, "The user lives in Kobe.")
    undone = engine.unlearn(run.id)
    left = [each.proposal.content for each in undone.decisions if each.effects and not each.undone]
    assert left == ["The user moved to Osaka and lives there.", "The user moved to Kyoto and lives there."]
    assert undone.undone_at is None
    assert engine.get(home).content == "The user lives in Kobe."
    assert all("changed since" in each.reason for each in undone.decisions if each.proposal.content in left)


def test_a_later_run_is_undone_first(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I live in Nagoya.")
    first = engine.learn_from(chat)
    chat.append("user", "I moved to Osaka.")
    second = engine.learn_from(chat)
    assert engine.unlearn(first.id).undone_at is None
    assert engine.unlearn(second.id).undone_at is not None
    assert engine.unlearn(first.id).undone_at is not None
    assert engine.count(EVERY) == 0


def test_what_was_undone_is_not_learned_by_itself_again(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", HELLO)
    engine.unlearn(engine.learn_from(chat).id)
    assert engine.consolidate() == ()
    assert len(engine.learn_from(chat, again=True).memories) == 3


def test_working_sets_get_the_former_version_back(engine: Engine) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I live in Nagoya.")
    (first,) = engine.learn_from(chat).decisions
    working = engine.working_set()
    working.add(first.memory or "")
    chat.append("user", "I moved to Osaka.")
    run = engine.learn_from(chat)
    assert [item.memory.version for item in working.items()] == [2]
    engine.unlearn(run.id)
    assert [item.memory.content for item in working.items()] == ["The user lives in Nagoya."]


# Purges.


def _bytes_with(path: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def test_purging_a_memory_removes_what_the_log_has_of_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as engine:
        run = engine.learn_from([{"role": "user", "content": "I'm vegan. My cat's name is Quuxie."}])
        cat = next(each.memory for each in run.decisions if "Quuxie" in each.proposal.content)
        engine.purge(cat or "", confirm=True)
        (left,) = engine.learning_runs()
        assert [each.proposal.content for each in left.decisions] == ["The user is vegan.", ""]
    assert not _bytes_with(path, "Quuxie")


@pytest.mark.parametrize("whole", [True, False])
def test_purging_a_conversation_removes_what_the_log_quotes(tmp_path: Path, *, whole: bool) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as engine:
        chat = engine.conversation("chat")
        chat.append("user", "My cat's name is Quuxie.")
        run = engine.learn_from(chat)
        engine.purge(run.memories[0], confirm=True)
        chat.append("user", "My dog's name is Bazzle.")
        engine.purge(engine.learn_from(chat).memories[0], confirm=True)
        chat.purge(None if whole else chat.groups()[0], confirm=True)
        runs = engine.learning_runs()
        assert len(runs) == (0 if whole else 2)
    assert not _bytes_with(path, "Quuxie")
    assert _bytes_with(path, "Bazzle") is not whole


def test_purging_a_user_removes_the_log(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.connect(path, embedder=None) as store:
        anna = store.agent("bot").for_user("anna")
        anna.learn_from([{"role": "user", "content": "My cat's name is Quuxie."}])
        store.purge_user("anna", confirm=True)
        assert store.agent("bot").for_user("anna").learning_runs() == ()
    assert not _bytes_with(path, "Quuxie")


class Counting:
    """Proposes that each user message states something, and counts its calls."""

    name = "counting"
    max_tokens = None

    def __init__(self) -> None:
        self.calls: list[int] = []

    def extract(self, messages: Sequence[Message], known: Sequence[Memory]) -> list[Proposal]:
        del known
        self.calls.append(len(messages))
        if len(self.calls) == 2:
            raise RuntimeError("The line went dead.")
        return [
            Proposal(content=each.text, quotes=(Quote(message=each.id, text=each.text),)) for each in messages
        ]


def test_an_interrupted_run_goes_on_where_it_ended(engine: Engine) -> None:
    chat = engine.conversation("chat")
    for number in range(50):
        chat.append("user", f"Shelf {number} carries {number * 7} jars.")
    extractor = Counting()
    with pytest.raises(RuntimeError, match="went dead"):
        engine.learn_from(chat, extractor=extractor)
    assert engine.count() == 40
    assert engine.learning_runs()[0].through == 40
    engine.learn_from(chat, extractor=extractor)
    assert extractor.calls == [40, 14, 14]
    assert engine.count() == 50


@pytest.mark.parametrize(
    ("known", "named", "reply"),
    [
        ("The user works at Acme.", "How is work at Acme?", "I no longer drink coffee."),
        ("The user lives in Oslo.", "Is it cold in Oslo?", "I upgraded my laptop to a Framework."),
        ("The user has a dog called Rex.", "How is Rex?", "I sold my car last week."),
        ("The user plays chess.", "Chess tonight?", "I also play the cello."),
        ("The user is a nurse.", "How is it as a nurse?", "I'm a mother of two now."),
        ("The user speaks Spanish.", "In Spanish?", "I speak Portuguese too."),
        ("The user likes jazz.", "Some jazz?", "I like hip hop."),
        ("The user uses Postgres.", "With Postgres?", "We replaced Jenkins with Buildkite."),
    ],
)
def test_a_reply_about_something_else_leaves_alone_what_the_assistant_named(
    engine: Engine, known: str, named: str, reply: str
) -> None:
    engine.remember(known)
    chat = engine.conversation("chat")
    for role, text in (("user", "Can you help me?"), ("assistant", named), ("user", reply)):
        chat.append(role, text)
    run = engine.learn_from(chat)
    assert [each.outcome.value for each in run.decisions] == ["new"]
    assert known in [each.content for each in engine.memories()]


def test_a_memory_without_a_subject_is_the_users(engine: Engine) -> None:
    engine.remember("Has no pets.")
    run = engine.learn_from([{"role": "user", "content": "My dog Bello sleeps in my room."}])
    assert [each.outcome.value for each in run.decisions] == ["contradicted"]
