"""What a request is counted beside what OpenAI reported for it, where its users published both."""

from __future__ import annotations

from typing import Any

import pytest

from germane.conversation.counting import request_tokens
from germane.model.message import Provider
from germane.tokens import get_counter

_ID = "call_Id8ycVMsW8gdsf7kSXfgAcf1"


def _pairs(number: int, name: str, arguments: str, content: str, call_id: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": f"{call_id}{each}", "type": "function", "function": function} for each in range(number)]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": content} for call in calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


@pytest.mark.parametrize(("number", "reported"), [(1, 40), (2, 89), (3, 114), (4, 139)])
def test_a_call_and_its_result_are_never_counted_low_and_hardly_high(number: int, reported: int) -> None:
    # https://community.openai.com/t/strange-token-cost-calculation-for-tool-calls/538914
    asked = {"role": "user", "content": "How much is 2 plus 2?"}
    messages = [asked, *_pairs(number, "calculator", '{"a":2, "b":2}', "4", "a")]
    counted = request_tokens(Provider.OPENAI, get_counter("cl100k"), messages=messages)
    assert reported <= counted <= reported + 6


def test_the_ids_of_calls_cost_nothing() -> None:
    # https://github.com/forestwanglin/openai-java/issues/5, where the result has its name as well.
    messages = _pairs(1, "get_current_weather", '{\n  "location": "Boston, MA"\n}', "29 degree celcius", _ID)
    messages[-1]["name"] = "get_current_weather"
    counted = request_tokens(Provider.OPENAI, get_counter("cl100k"), messages=messages)
    assert 35 <= counted <= 46
