"""Learning with a model: its request, its answers good and bad, limits, and runs that repeat without it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import germane
from germane import Engine
from germane.errors import InvalidInput
from germane.extractors import LearningRun, ModelExtractor, recorded
from germane.testing.fakes import START, seeded_ids


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", ids=seeded_ids()) as engine:
        yield engine


def fact(content: str, text: str, message: str = "m1", **fields: object) -> dict[str, object]:
    return {"content": content, "quotes": [{"message": message, "text": text}], **fields}


def answering(*answers: object) -> tuple[Callable[[str, int], str], list[str]]:
    """A function that gives these answers in turn, and the requests that it got."""
    requests: list[str] = []

    def ask(request: str, tokens: int) -> str:
        assert tokens > 0
        requests.append(request)
        answer = answers[min(len(requests), len(answers)) - 1]
        return answer if isinstance(answer, str) else json.dumps({"facts": answer})

    return ask, requests


def test_what_it_quotes_is_learned_and_the_rest_refused(engine: Engine) -> None:
    ask, requests = answering(
        [
            fact("The user's sister is called Vera.", "My sister is called Vera.", attribute="sister's name"),
            fact("The user's sister lives in Rome.", "My sister is called Vera."),
            fact("The user moved to Rome.", "I moved to Rome.", "m7"),
        ]
    )
    engine.conversation("chat").append("user", "My sister is called Vera.")
    run = engine.learn_from("chat", extractor=ModelExtractor(ask, name="small"))
    assert [each.outcome.value for each in run.decisions] == ["new", "refused", "refused"]
    assert [each.content for each in engine.memories()] == ["The user's sister is called Vera."]
    assert (run.extractor, len(run.answers), run.stopped) == ("small", 1, "")
    assert run.tokens > 100
    assert "[m1]" in requests[0]
    assert "My sister is called Vera." in requests[0]


def test_it_sees_no_ids_and_nothing_recalled(engine: Engine) -> None:
    memory = engine.remember("The user's sister is called Vera.", kind="fact", subject="user")
    ask, requests = answering([])
    chat = engine.conversation("chat")
    recalled = "<recalled-from-memory>\nThe safe opens with 4711.\n</recalled-from-memory>\nWho is my sister?"
    message = chat.append("user", recalled)
    engine.learn_from(chat, extractor=ModelExtractor(ask))
    assert "[k1] The user's sister is called Vera." in requests[0]
    assert not any(each in requests[0] for each in (memory.id, message.id, "4711"))


def test_it_can_replace_a_known_memory_by_its_label(engine: Engine) -> None:
    known = engine.remember("The user's sister lives in Rome.", kind="fact", subject="user")
    text = "My sister lives in Oslo now."
    ask, _ = answering([fact("The user's sister lives in Oslo now.", text, subject="user", replaces="k1")])
    run = engine.learn_from([{"role": "user", "content": text}], extractor=ModelExtractor(ask))
    assert [(each.outcome.value, each.memory) for each in run.decisions] == [("revised", known.id)]
    made_up, _ = answering([fact("The user's sister lives in Oslo now.", text, replaces="k9")])
    (decision,) = engine.learn_from(
        [{"role": "user", "content": text}], extractor=ModelExtractor(made_up)
    ).decisions
    assert decision.outcome == "refused"
    assert "'k9', which is no known memory" in decision.reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I can't help with that.", "no JSON object"),
        ("", "no JSON object"),
        ('{"facts": 5}', 'no list "facts"'),
        ('{"facts": [{"content": "x"', "no JSON object"),
        ('{"facts": ["x"]}', '"facts"[0] has no text "content"'),
        ('{"facts": [{"content": "x"}]}', 'no list "quotes"'),
        ('{"facts": [{"content": "x", "quotes": [{"message": 1}]}]}', 'quote without texts "message"'),
        ('{"facts": [{"content": "x", "quotes": [], "kind": 3}]}', '"kind": 3'),
        ('{"facts": [{"content": "x", "quotes": [], "confidence": 7}]}', '"confidence": 7'),
    ],
)
def test_a_bad_answer_is_repaired_once_and_then_refused(engine: Engine, answer: str, reason: str) -> None:
    chat = engine.conversation("chat")
    chat.append("user", "I live in Nagoya.")
    good = [fact("The user lives in Nagoya.", "I live in Nagoya.")]
    ask, requests = answering(answer, answer)
    run = engine.learn_from(chat, extractor=ModelExtractor(ask))
    assert (run.decisions, run.through, len(run.answers), len(requests)) == ((), 0, 2, 2)
    assert reason in run.stopped
    assert reason in requests[1]
    assert engine.learning_runs() == (run,)
    ask, _ = answering(answer, good)
    run = engine.learn_from(chat, extractor=ModelExtractor(ask))
    assert (len(run.decisions), run.through, run.stopped) == (1, 1, "")


def test_messages_that_say_too_much_for_one_answer_are_read_in_parts(engine: Engine) -> None:
    chat = engine.conversation("chat")
    for number in range(12):
        chat.append("user", f"My neighbour {number} is called Vera{number}.")

    def ask(request: str, tokens: int) -> str:
        lines = [line for line in request.splitlines() if line.startswith("[m")]
        shown = [(line.partition("]")[0][1:], line.partition("user: ")[2]) for line in lines]
        answer = json.dumps(
            {"facts": [fact(text, text, label, subject="neighbour") for label, text in shown]}
        )
        # As a provider does: what is longer than the limit ends in the middle.
        return answer if len(shown) <= 3 else answer[:-20] + " and" * tokens

    run = engine.learn_from(chat, extractor=ModelExtractor(ask))
    assert (run.stopped, run.through, len(run.answers)) == ("", 12, 7)
    assert {each.content for each in engine.memories()} == {
        f"My neighbour {number} is called Vera{number}." for number in range(12)
    }


def test_one_message_that_says_too_much_stops_the_run(engine: Engine) -> None:
    ask, requests = answering('{"facts": [' + " and" * 4000)
    engine.conversation("chat").append("user", "I live in Nagoya.")
    run = engine.learn_from("chat", extractor=ModelExtractor(ask))
    assert (run.through, len(requests)) == (0, 2)
    assert "holds no JSON object" in run.stopped


def test_a_model_reads_who_wrote_a_message(engine: Engine) -> None:
    ask, requests = answering([fact("Ada lives in Nagoya.", "I live in Nagoya.", subject="Ada")])
    named = {"role": "user", "name": "Ada", "content": "I live in Nagoya."}
    run = engine.learn_from([named], extractor=ModelExtractor(ask))
    assert "user Ada: I live in Nagoya." in requests[0]
    assert [each.outcome.value for each in run.decisions] == ["new"]


def test_a_model_that_fails_stops_the_run_which_says_why(engine: Engine) -> None:
    def ask(request: str, tokens: int) -> str:
        raise ConnectionError(f"nobody took {len(request) > 0} {tokens > 0}")

    chat = engine.conversation("chat")
    chat.append("user", "I live in Nagoya.")
    run = engine.learn_from(chat, extractor=ModelExtractor(ask))
    assert run.stopped == "The model can't be called: ConnectionError: nobody took True True"
    assert (run.through, engine.count()) == (0, 0)
    assert len(engine.learn_from(chat).decisions) == 1


def test_json_is_found_in_a_talkative_answer(engine: Engine) -> None:
    facts = json.dumps({"facts": [fact("The user lives in {Nagoya}.", "I live in {Nagoya}.")]})
    ask, _ = answering(f"Sure! Here you go:\n```json\n{facts}\n```\nAnything else?")
    run = engine.learn_from(
        [{"role": "user", "content": "I live in {Nagoya}."}], extractor=ModelExtractor(ask)
    )
    assert [each.outcome.value for each in run.decisions] == ["new"]


def test_the_schema_goes_to_who_takes_it(engine: Engine) -> None:
    schemas = []

    def ask(request: str, tokens: int, *, schema: Mapping[str, Any]) -> str:
        schemas.append((len(request) > 0, tokens > 0, schema))
        return '{"facts": []}'

    engine.learn_from([{"role": "user", "content": "Hello"}], extractor=ModelExtractor(ask, structured=True))
    ((_, _, schema),) = schemas
    assert schema["properties"]["facts"]["items"]["properties"]["kind"]["enum"]


def test_a_run_makes_no_call_beyond_its_limit_and_goes_on_later(engine: Engine) -> None:
    chat = engine.conversation("chat")
    for number in range(100):
        chat.append("user", f"Line {number}.")
    ask, requests = answering([])
    run = engine.learn_from(chat, extractor=ModelExtractor(ask, max_tokens=1))
    assert (run.through, len(requests)) == (40, 1)
    assert "of 1 tokens" in run.stopped
    assert engine.learn_from(chat, extractor=ModelExtractor(ask, max_tokens=100_000)).through == 100


@pytest.mark.parametrize(
    "limits",
    [
        {"max_tokens": 0},
        {"max_cost": 0.0, "price": 1.0},
        {"max_cost": 1.0},
        {"max_cost": 1.0, "price": -1.0},
    ],
)
def test_limits_that_mean_nothing_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"max_tokens|max_cost|price"):
        ModelExtractor(lambda request, tokens: request[:tokens], **limits)


def test_a_cost_is_a_limit_of_tokens() -> None:
    extractor = ModelExtractor(lambda request, tokens: request[:tokens], max_cost=0.5, price=10.0)
    assert extractor.max_tokens == 50_000


def test_a_run_repeats_without_the_model_to_the_byte() -> None:
    texts = [f"My neighbour {number} is called Vera{number}." for number in range(50)]

    def ask(request: str, tokens: int) -> str:
        del tokens
        lines = [line for line in request.splitlines() if line.startswith("[m")]
        shown = [(line.partition("]")[0][1:], line.partition("user: ")[2]) for line in lines]
        return json.dumps({"facts": [fact(text, text, label) for label, text in shown]})

    def learned(extractor: ModelExtractor) -> tuple[object, object]:
        with germane.open(":memory:", ids=seeded_ids(), clock=lambda: START) as engine:
            chat = engine.conversation("chat")
            for text in texts:
                chat.append("user", text)
            run = engine.learn_from(chat, extractor=extractor)
            return run, [(memory, memory.renditions) for memory in engine.memories()]

    run, memories = learned(ModelExtractor(ask))
    assert isinstance(run, LearningRun)
    assert len(run.answers) == 2
    assert learned(ModelExtractor(recorded(run))) == (run, memories)


def test_a_replay_of_other_messages_says_so(engine: Engine) -> None:
    ask, _ = answering([])
    run = engine.learn_from([{"role": "user", "content": "Hello"}], extractor=ModelExtractor(ask))
    with pytest.raises(InvalidInput, match="has an answer to this request"):
        engine.learn_from([{"role": "user", "content": "Goodbye"}], extractor=ModelExtractor(recorded(run)))
