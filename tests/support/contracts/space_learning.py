"""What a store promises where a conversation teaches a space: facts for all, words for its member."""

from __future__ import annotations

import json

import pytest

import germane
from germane import Engine, Space
from germane.errors import InvalidInput, NotAllowed
from germane.extractors import LearningRun, ModelExtractor, ProposalOutcome
from germane.spaces import Right
from support.stores import TablesStore

__all__ = ["SpaceLearningContract"]


def member(store: TablesStore, agent: str, *, creates: bool = False) -> tuple[Engine, Space]:
    """An agent's engine on the store, and the space `team` as it has it."""
    engine = germane.open(store, agent=agent, embedder=None)
    return engine, engine.space("team", create=creates)


def contents(run: LearningRun) -> list[tuple[str, str]]:
    """The outcome and the text of each decision of a run."""
    return [(each.outcome.value, each.proposal.content) for each in run.decisions]


class SpaceLearningContract:
    """Learning into a space: two members, whose conversations stay their own."""

    def test_members_see_what_one_of_them_learned_and_no_word_of_the_conversation(
        self, store: TablesStore
    ) -> None:
        ada, team = member(store, "ada", creates=True)
        ben, theirs = member(store, "ben")
        theirs.join()
        ada.conversation("chat").append("user", "Between us, quite frankly: I live in Nagoya.")
        run = team.learn_from("chat")

        assert contents(run) == [("new", "The user of ada lives in Nagoya.")]
        (fact,) = theirs.recall("Who lives in Nagoya?")
        assert (fact.memory.subject, fact.memory.session) == ("the user of ada", "ada/chat")
        seen = theirs.learning_run(run.id)
        (quote,) = seen.decisions[0].proposal.quotes
        assert seen == run
        assert (quote.text, quote.withheld[:6]) == ("", "user, ")
        assert "frankly" not in repr(seen)
        assert ada.learning_runs() == ben.learning_runs() == ()
        assert not list(ada.recall("Who lives in Nagoya?"))

    def test_the_users_of_two_members_stay_two(self, store: TablesStore) -> None:
        (ada, team), (ben, theirs) = member(store, "ada", creates=True), member(store, "ben")
        theirs.join()
        ada.conversation("chat").append("user", "I live in Nagoya.")
        ben.conversation("chat").append("user", "I live in Osaka.")
        team.learn_from("chat")
        assert contents(theirs.learn_from("chat")) == [("new", "The user of ben lives in Osaka.")]
        ada.conversation("chat").append("user", "I moved to Kobe.")
        (moved,) = team.learn_from("chat").decisions
        assert moved.outcome is ProposalOutcome.REVISED
        assert [each.content for each in theirs.history(moved.memory or "")] == [
            "The user of ada lives in Nagoya.",
            "The user of ada moved to Kobe and lives there.",
        ]
        assert contents(theirs.learn_from("chat", again=True)) == [
            ("nothing", "The user of ben lives in Osaka.")
        ]

    def test_consolidating_a_space_reads_what_is_new_in_the_members_own_conversations(
        self, store: TablesStore
    ) -> None:
        (ada, team), (ben, theirs) = member(store, "ada", creates=True), member(store, "ben")
        theirs.join()
        ada.conversation("chat").append("user", "I live in Nagoya.")
        ada.conversation("mail").append("user", "I'm allergic to nuts.")
        ben.conversation("chat").append("user", "I live in Osaka.")
        assert [contents(run) for run in team.consolidate(dry_run=True)] == [
            contents(run) for run in team.consolidate()
        ]
        assert team.consolidate() == ()
        assert sorted(run.session or "" for run in theirs.learning_runs()) == ["ada/chat", "ada/mail"]
        assert ada.learning_runs() == ()
        ada.conversation("chat").append("user", "I moved to Kobe.")
        (run,) = team.consolidate()
        assert contents(run) == [("revised", "The user of ada moved to Kobe and lives there.")]

    def test_a_user_consolidates_a_space_only_knowingly(self, store: TablesStore) -> None:
        ada, team = member(store, "ada", creates=True)
        ann = ada.for_user("ann")
        team.join("user:ann:ada")
        ann.conversation("chat").append("user", "I live in Nagoya.")
        with pytest.raises(InvalidInput, match="private=True"):
            ann.space("team").consolidate()
        (run,) = ann.space("team").consolidate(private=True)
        assert contents(run) == [("new", "Ann lives in Nagoya.")]

    def test_any_member_that_may_write_can_undo_it(self, store: TablesStore) -> None:
        ada, team = member(store, "ada", creates=True)
        _, theirs = member(store, "ben")
        theirs.join()
        ada.conversation("chat").append("user", "I'm allergic to nuts.")
        run = team.learn_from("chat")
        theirs.unlearn(run.id)
        assert not list(team.recall("allergic to nuts"))
        assert team.learning_run(run.id).undone_at is not None

    def test_who_may_not_write_teaches_nothing(self, store: TablesStore) -> None:
        _, team = member(store, "ada", creates=True)
        ben, theirs = member(store, "ben")
        ben.conversation("chat").append("user", "I live in Nagoya.")
        with pytest.raises(NotAllowed):
            theirs.learn_from("chat")
        theirs.join(rights=Right.READ)
        with pytest.raises(NotAllowed):
            theirs.learn_from("chat")
        assert team.learning_runs() == ()
        assert theirs.learning_runs() == ()

    def test_a_user_is_private_unless_the_caller_says_otherwise(self, store: TablesStore) -> None:
        _, team = member(store, "ada", creates=True)
        bob = germane.open(store, agent="ada", embedder=None).for_user("bob")
        team.join(bob.space("team").member)
        theirs = bob.space("team")
        chat = bob.conversation("chat")
        chat.append("user", "I'm allergic to nuts.")
        for source in (chat, "chat", chat.messages(), [{"role": "user", "content": "I live in Nagoya."}]):
            with pytest.raises(InvalidInput, match="private=True"):
                theirs.learn_from(source)
        assert team.learning_runs() == ()
        run = theirs.learn_from(chat, private=True)
        assert contents(run) == [("new", "Bob is allergic to nuts.")]
        assert [quote.text for quote in run.decisions[0].proposal.quotes] == [""]

    def test_listed_messages_of_no_conversation_are_quoted(self, store: TablesStore) -> None:
        ada, team = member(store, "ada", creates=True)
        run = team.learn_from([{"role": "user", "content": "We decided to use Postgres."}])
        assert [quote.text for quote in run.decisions[0].proposal.quotes] == ["We decided to use Postgres."]
        chat = ada.conversation("chat")
        chat.append("user", "We decided to use Redis for the cache.")
        (decided,) = team.learn_from(chat.messages()).decisions
        assert [quote.text for quote in decided.proposal.quotes] == [""]

    def test_refused_proposals_and_answers_of_a_model_leave_no_words(self, store: TablesStore) -> None:
        ada, team = member(store, "ada", creates=True)
        chat = ada.conversation("chat")
        message = chat.append("user", "My sister is called Vera, she sings.")
        facts = [
            {"content": text, "quotes": [{"message": "m1", "text": quoted}]}
            for text, quoted in (
                ("The user's sister is called Vera.", "My sister is called Vera"),
                ("The user's sister adores Palermo.", "My sister adores Palermo"),
            )
        ]
        run = team.learn_from(
            chat,
            extractor=ModelExtractor(lambda _request, _tokens: json.dumps({"facts": facts}), name="mine"),
        )
        assert contents(run) == [("new", "The user of ada's sister is called Vera."), ("refused", "")]
        assert "Palermo" not in repr(run)
        assert "sings" not in repr(run)
        assert run.tokens > 0
        assert run.decisions[0].proposal.quotes[0].message == message.id
