"""What a request is counted beside what OpenAI reported for it, where its users published both."""

from __future__ import annotations

from typing import Any

import pytest

from germane.conversation import Provider
from germane.tokens import get_counter
from requests_of import request_tokens

_ID = "call_Id8ycVMsW8gdsf7kSXfgAcf1"


def _pairs(number: int, name: str, arguments: str, content: str, call_id: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": f"{call_id}{each}", "type": "function", "function": function} for each in range(number)]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": content} for call in calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


@pytest.mark.parametrize(("number", "reported"), [(1, 40), (2, 89), (3, 114), (4, 139)])
def test_a_call_and_its_result_are_never_counted_low_and_hardly_high(number: int, reported: int) -> None:
    # https://community.openai.com/t/strange-token-cost-calculation-for-tool-calls/538914
    question = {"role": "user", "content": "How much is 2 plus 2?"}
    messages = [question, *_pairs(number, "calculator", '{"a":2, "b":2}', "4", "a")]
    counted = request_tokens(Provider.OPENAI, get_counter("cl100k"), messages=messages)
    assert reported <= counted <= reported + 6


def test_the_ids_of_calls_cost_nothing() -> None:
    # https://github.com/forestwanglin/openai-java/issues/5, where the result has its name as well.
    messages = _pairs(1, "get_current_weather", '{\n  "location": "Boston, MA"\n}', "29 degree celcius", _ID)
    messages[-1]["name"] = "get_current_weather"
    counted = request_tokens(Provider.OPENAI, get_counter("cl100k"), messages=messages)
    assert 35 <= counted <= 46


@pytest.mark.parametrize(
    ("number", "content", "reported"), [(1, "테스트 ", 1121), (3, "test ", 3191), (3, "테스트 ", 39235)]
)
def test_results_of_several_calls_are_counted_as_escapes(number: int, content: str, reported: int) -> None:
    # https://community.openai.com/t/1375117: what else stood in these requests was not published.
    messages = _pairs(number, "test", "{}", content * 1000, _ID)
    counted = request_tokens(Provider.OPENAI, get_counter("o200k"), messages=messages)
    assert reported - 200 < counted < reported


def test_a_phrase_of_one_token_makes_seven_where_two_calls_were_made() -> None:
    # https://community.openai.com/t/816259
    one, two = (
        request_tokens(Provider.OPENAI, get_counter("o200k"), messages=_pairs(2, "test", "{}", content, _ID))
        for content in ("4", "你好")
    )
    assert two - one == 2 * (7 - 1)


def test_what_stands_in_json_as_it_is_and_what_no_parallel_call_brought_is_counted_as_text() -> None:
    counter = get_counter("o200k")

    def counted(content: str, provider: Provider = Provider.OPENAI, number: int = 1) -> int:
        """The tokens of one result behind so many calls."""
        before, result, *_ = _pairs(number, "test", "{}", content, _ID)
        shorter, longer = (
            request_tokens(provider, counter, messages=[before, *results]) for results in ([], [result])
        )
        return longer - shorter

    assert counted("plain text", number=2) == counted("plain text")
    assert counted("übrigens", number=2) > counted("übrigens")
    assert counted('say "hi"\n\n', number=2) > counted('say "hi"\n\n')
    assert counted("übrigens", Provider.ANTHROPIC, 2) == counted("übrigens", Provider.ANTHROPIC)
    # A text after the results isn't one of them.
    question = {"role": "user", "content": "übrigens"}
    pairs = _pairs(2, "test", "{}", "4", _ID)
    total = request_tokens(Provider.OPENAI, counter, messages=[*pairs, question])
    alone = request_tokens(Provider.OPENAI, counter, messages=pairs)
    single = request_tokens(Provider.OPENAI, counter, messages=[*_pairs(1, "test", "{}", "4", _ID), question])
    without = request_tokens(Provider.OPENAI, counter, messages=_pairs(1, "test", "{}", "4", _ID))
    assert total - alone == single - without
