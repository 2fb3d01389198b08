"""The judge obeys the constraints of the server it imitates, and ignores the others."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from batchrank.answers import forms
from scripts.judge import JudgeConfig, JudgeServer
from scripts.judge.config import Field, Kind

from .asking import FRUIT, chat, content, post, texts, window

SCHEMA = {"type": "json_schema", "json_schema": {"name": "r", "schema": forms.schema(5, 2)}}
CONSTRAINTS: list[tuple[Kind, dict[str, Any], str]] = [
    ("llama.cpp", {"grammar": forms.grammar(5, 2)}, "3,5"),
    ("llama.cpp", {"response_format": SCHEMA}, '{"ranking": [3, 5]}'),
    ("vllm", {"structured_outputs": {"regex": forms.regex(5, 2)}}, "3,5"),
    ("vllm", {"structured_outputs": {"json": forms.schema(5, 2)}}, '{"ranking": [3, 5]}'),
    ("vllm", {"structured_outputs": {"grammar": forms.grammar(5, 1)}}, "3"),
    ("vllm", {"structured_outputs": {"choice": ["ok"]}}, "ok"),
    ("sglang", {"regex": forms.regex(5, 5)}, "3,5,1,4,2"),
    ("sglang", {"ebnf": forms.grammar(5, 5)}, "3,5,1,4,2"),
    ("openai", {"response_format": SCHEMA}, '{"ranking": [3, 5]}'),
    (
        "llama.cpp",
        {"grammar": 'root ::= i (" > " i){2} # three\ni ::= "[" [1-5] "]"'},
        "[3] > [5] > [1]",
    ),
]

OBEYED: frozenset[Field] = frozenset({"grammar", "structured_outputs", "response_format"})


@pytest.mark.parametrize(("kind", "fields", "expected"), CONSTRAINTS)
async def test_an_honoured_constraint_shapes_the_answer(
    kind: Kind, fields: dict[str, Any], expected: str
) -> None:
    async with JudgeServer(JudgeConfig(kind=kind), FRUIT) as judge:
        assert await content(judge, window(texts()), **fields) == expected


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("llama.cpp", {"structured_outputs": {"regex": "[1-5]"}}),
        ("vllm", {"grammar": 'root ::= "1"'}),
        ("openai", {"grammar": 'root ::= "1"', "regex": "1"}),
        ("ollama", {"format": forms.schema(5, 2)}),
        ("openai", {"response_format": {"type": "text"}}),
    ],
)
async def test_other_fields_are_ignored(kind: Kind, fields: dict[str, Any]) -> None:
    async with JudgeServer(JudgeConfig(kind=kind), FRUIT) as judge:
        answer = await content(judge, window(texts()), **fields)
    assert answer == "[3] > [5] > [1] > [4] > [2]"


async def test_a_server_can_be_made_to_obey_nothing() -> None:
    config = JudgeConfig(kind="llama.cpp", constraints=frozenset())
    async with JudgeServer(config, FRUIT) as judge:
        answer = await content(judge, window(texts()), grammar=forms.grammar(5, 2))
    assert answer.startswith("[3] > [5]")


@pytest.mark.parametrize("documents", [1, 2, 9, 10, 20, 99, 100])
async def test_every_size_of_the_forms_is_answered(documents: int) -> None:
    shown = [f"text {number}" for number in range(documents)]
    wanted = max(1, documents // 3)
    async with JudgeServer(JudgeConfig(kind="vllm", context=99_999)) as judge:
        regex = forms.regex(documents, wanted)
        answer = await content(judge, window(shown), structured_outputs={"regex": regex})
    assert re.fullmatch(regex, answer)
    assert len(set(answer.split(","))) == wanted


PROBES: list[tuple[dict[str, Any], str]] = [
    ({"grammar": 'root ::= "ok"'}, "ok"),
    ({"grammar": 'root ::= answer\nanswer ::= "a.b\\n"'}, "a.b\n"),
    ({"grammar": 'root ::= "2,1"'}, "2,1"),
    ({"structured_outputs": {"regex": r"^(?:q\.7)$"}}, "q.7"),
    ({"structured_outputs": {"regex": "(yes|no)"}}, "yes"),
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"const": 7}}}}, "7"),
    (
        {
            "response_format": {
                "type": "json_schema",
                "schema": {"properties": {"a": {"enum": ["x"]}, "b": {"type": "boolean"}}},
            }
        },
        '{"a": "x", "b": true}',
    ),
    (
        {
            "structured_outputs": {
                "json": json.dumps({"type": "array", "items": {"const": 41}, "minItems": 2})
            }
        },
        "[41, 41]",
    ),
]


@pytest.mark.parametrize(("fields", "expected"), PROBES)
async def test_a_probe_gets_the_only_text_it_allows(fields: dict[str, Any], expected: str) -> None:
    async with JudgeServer(JudgeConfig(constraints=OBEYED)) as judge:
        assert await content(judge, "Say anything.", **fields) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"grammar": "root ::= root"},
        {"grammar": "root ::= $"},
        {"grammar": 'other ::= "a"'},
        {"grammar": "root ::= [x-z] [p-q]"},
        {"structured_outputs": {"regex": "("}},
    ],
)
async def test_what_the_judge_cannot_satisfy_is_refused(fields: dict[str, Any]) -> None:
    async with JudgeServer(JudgeConfig(constraints=OBEYED)) as judge:
        status, body = await post(judge, chat("Say anything.", **fields))
    assert status == 400
    assert body["error"]["message"].startswith("judge: ")


async def test_ollama_obeys_a_format_on_its_own_route_only() -> None:
    async with JudgeServer(JudgeConfig(kind="ollama"), FRUIT) as judge:
        body = chat(window(texts()), format=forms.schema(5, 2), stream=False)
        status, answer = await post(judge, body, "/api/chat")
    assert status == 200
    assert answer["message"] == {"role": "assistant", "content": '{"ranking": [3, 5]}'}
    assert (answer["done"], answer["done_reason"]) == (True, "stop")


async def test_an_answer_is_cut_at_the_token_limit() -> None:
    async with JudgeServer(JudgeConfig(kind="llama.cpp"), FRUIT) as judge:
        grammar = forms.grammar(5, 2)
        answers = []
        for limit in (3, 4):
            body = chat(window(texts()), grammar=grammar, max_tokens=limit)
            answers.append((await post(judge, body))[1])
    found = [
        (
            a["choices"][0]["message"]["content"],
            a["choices"][0]["finish_reason"],
            a["usage"]["completion_tokens"],
        )
        for a in answers
    ]
    assert found == [("3,5", "length", 3), ("3,5", "stop", 4)]
