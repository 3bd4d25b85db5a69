"""Random conversations in the layouts of the providers, for property tests."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

__all__ = ["anthropic_requests", "openai_messages", "plain_messages", "responses_items"]

Message = dict[str, Any]

TEXTS = st.sampled_from(
    ["", " ", "Is it raining?", "C++", "user's", 'say "hi', "foo AND", "path/to/file.cpp", "雨ですか", "a\nb"]
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
IDS = st.sampled_from(["call_1", "call_2", "call_3", "t4"])
NAMES = st.sampled_from(["weather", "read_file", "now"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
ARGUMENTS = OBJECTS.map(json.dumps) | st.just("{broken")
EXTRAS = st.sampled_from([{}, {}, {"cache_control": {"type": "ephemeral"}}, {"annotations": []}])


def with_extras(messages: st.SearchStrategy[Message]) -> st.SearchStrategy[Message]:
    return st.builds(lambda message, extra: {**message, **extra}, messages, EXTRAS)


def some_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Message]:
    """Objects with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def parts(*kinds: str, others: st.SearchStrategy[Message] | None = None) -> st.SearchStrategy[list[Message]]:
    texts = st.builds(lambda kind, text: {"type": kind, "text": text}, st.sampled_from(kinds), TEXTS)
    return st.lists(with_extras(texts if others is None else texts | others), max_size=3)


def openai_messages() -> st.SearchStrategy[Message]:
    """Any message of chat completions, old forms and those of local servers among them."""
    image = st.just({"type": "image_url", "image_url": {"url": "data:,x"}})
    content = TEXTS | parts("text", others=image)
    function = st.fixed_dictionaries(
        {"name": NAMES, "arguments": ARGUMENTS | OBJECTS}, optional={"strict": st.booleans()}
    )
    custom = st.fixed_dictionaries({"name": NAMES, "input": TEXTS})
    call = st.fixed_dictionaries(
        {"function": function},
        optional={
            "id": IDS | st.just("") | st.none(),
            "type": st.just("function"),
            "index": st.integers(0, 3),
        },
    ) | st.fixed_dictionaries({"id": IDS, "type": st.just("custom"), "custom": custom})
    old = st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS})
    questions = st.builds(
        lambda role, content, more: {"role": role, "content": content, **more},
        st.sampled_from(["system", "developer", "user"]),
        content,
        some_of(name=NAMES),
    )
    answers = some_of(
        content=content | st.none(),
        tool_calls=st.lists(call, max_size=3) | st.none(),
        function_call=old | st.none(),
        refusal=TEXTS | st.none(),
    ).map(lambda fields: {"role": "assistant", **fields})
    returned = st.builds(
        lambda call_id, content: {"role": "tool", "tool_call_id": call_id, "content": content},
        IDS | st.just(""),
        TEXTS | parts("text"),
    )
    of_old = st.builds(lambda name, text: {"role": "function", "name": name, "content": text}, NAMES, TEXTS)
    return with_extras(questions | answers | returned | of_old)


def anthropic_requests() -> st.SearchStrategy[Message]:
    """Any request's messages and what the system says."""
    image = st.just({"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}})
    call = st.builds(
        lambda call_id, name, given: {"type": "tool_use", "id": call_id, "name": name, "input": given},
        IDS,
        NAMES,
        OBJECTS,
    )
    returned = st.builds(
        lambda call_id, more: {"type": "tool_result", "tool_use_id": call_id, **more},
        IDS,
        some_of(content=TEXTS | parts("text", others=image), is_error=st.booleans()),
    )
    thought = st.just({"type": "thinking", "thinking": "hm", "signature": "s"})
    answers = TEXTS | parts("text", others=image | call | returned | thought)
    message = st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant"]),
        answers | st.lists(returned, min_size=1, max_size=2),
    )
    return st.fixed_dictionaries(
        {"messages": st.lists(message, max_size=5)}, optional={"system": TEXTS | parts("text")}
    )


def responses_items() -> st.SearchStrategy[Message]:
    """Any item of the Responses API that tools and dialogue are made of."""
    image = st.just({"type": "input_image", "detail": "auto", "image_url": "data:,x"})
    questions = st.builds(
        lambda role, content, more: {"role": role, "content": content, **more},
        st.sampled_from(["user", "system", "developer", "assistant"]),
        TEXTS | parts("input_text", others=image),
        some_of(type=st.just("message")),
    )
    output = st.builds(lambda text: {"type": "output_text", "text": text, "annotations": []}, TEXTS)
    answers = st.builds(
        lambda content, name: {
            "type": "message",
            "role": "assistant",
            "id": f"msg_{name}",
            "status": "completed",
            "content": content,
        },
        st.lists(output, max_size=2),
        NAMES,
    )
    call = st.builds(
        lambda call_id, name, given, more: {
            "type": "function_call",
            "call_id": call_id,
            "name": name,
            "arguments": given,
            **more,
        },
        IDS,
        NAMES,
        ARGUMENTS,
        some_of(id=st.just("fc_1"), status=st.just("completed")),
    )
    returned = st.builds(
        lambda call_id, text: {"type": "function_call_output", "call_id": call_id, "output": text},
        IDS,
        TEXTS | parts("input_text"),
    )
    return questions | answers | call | returned | st.sampled_from(OTHER_ITEMS)


OTHER_ITEMS: list[Message] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
    {"type": "item_reference", "id": "msg_1"},
    {"type": "custom_tool_call", "call_id": "call_1", "name": "sh", "input": "ls"},
    {"type": "custom_tool_call_output", "call_id": "call_1", "output": "a.txt"},
    {"type": "shell_call", "call_id": "call_2", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": "call_2", "output": []},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
]


def plain_messages() -> st.SearchStrategy[Message]:
    """Any message of germane's own layout."""
    call = st.fixed_dictionaries(
        {"id": IDS, "name": NAMES}, optional={"arguments": ARGUMENTS | OBJECTS, "note": TEXTS}
    )
    returned = st.fixed_dictionaries(
        {"call_id": IDS}, optional={"content": TEXTS | parts("text"), "is_error": st.booleans() | st.none()}
    )
    content = TEXTS | parts("text") | st.none()
    answers = st.builds(
        lambda role, fields: {"role": role, **fields},
        st.sampled_from(["system", "user", "assistant"]),
        some_of(content=content, mood=TEXTS),
    )
    called = some_of(content=content, tool_calls=st.lists(call, max_size=2)).map(
        lambda fields: {"role": "assistant", **fields}
    )
    results = st.lists(returned, min_size=1, max_size=2)
    answered = results.map(lambda given: {"role": "tool", "tool_results": given})
    both = st.builds(
        lambda text, given: {"role": "user", "content": text, "tool_results": given}, TEXTS, results
    )
    return answers | called | answered | both
