"""Feeds random and mutated bytes to all that reads what others wrote.

    python scripts/fuzz.py --cases 100000 --seed 7

A model's answer must become a permutation of its window with a status, a server's body an answer or
a typed error, an input line a request or a typed error; whatever the bytes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from batchrank.answers import permutation, read
from batchrank.backends.bodies import read_answer
from batchrank.calls import Answer
from batchrank.errors import BatchrankError, LineError, UsageError
from batchrank.formats.lines import read_lines
from batchrank.formats.requests import parse_request
from batchrank.values import Status, Window

ANSWERS = (
    "3,1,2,4,5",
    "[3] > [1] > [2] > [5] > [4]",
    '{"ranking": [3, 1, 2, 5, 4]}',
    "<think>first [2], no, [4]</think>\n[4] > [2]",
    "The best is document 3, then 1. Documents 2 and 4 are off topic.",
    "1. [4] because\n2. [5]\n3. [1]\n",
    "| rank | id |\n|---|---|\n| 1 | [2] |\n| 2 | [3] |",
    "```json\n[5, 4, 3, 2, 1]\n```",
    "排名：[2] > [1]，第三篇最相关",
    "",
)
BODIES = (
    b'{"choices":[{"message":{"content":"[2] > [1]"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":5,"completion_tokens":3}}',
    b'{"message":{"content":"[1] > [2]"},"done":true,"done_reason":"stop","eval_count":4}',
    b'data: {"choices":[{"delta":{"content":"[2]"}}]}\n\ndata: [DONE]\n\n',
    b'{"error":{"message":"context length exceeded","code":400}}',
    b"<html><body>502 Bad Gateway</body></html>",
)
LINES = (
    b'{"query":{"qid":"q1","text":"tea"},"candidates":[{"docid":"d1","score":2.5,'
    b'"doc":{"title":"T","text":"x"}},{"docid":"d2","doc":{"text":"y"}}],"weight":2}',
    b'{"qid":7,"query":"tea","documents":["a","b"]}',
    b'{"qid":"c","query":"f","candidates":[{"path":"a.py","start_line":3,"content":"def f()"}]}',
)
SPICE = (
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b",",
        b":",
        b"\\",
        b"\n",
        b"\r\n",
        b"\x00",
        b"\xff",
        b"\x1b[31m",
    ),
    *(
        b"\xed\xa0\x80",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"\\ud800",
        b"NaN",
        b"1e999",
        b"-0",
        b"null",
    ),
    *(
        b"99999999999999999999",
        b"[[[[[[[[",
        b"<think>",
        b"</think>",
        b"<|im_end|>",
        b"\xe3\x80\x90",
    ),
    *(
        "٣".encode(),
        "②".encode(),
        b"\x1f\x8b",
        b"\x28\xb5\x2f\xfd",
        b"[0]",
        b"[-1]",
        b"[6]",
        b" > ",
    ),
)


def fuzz(cases: int, seed: int, scratch: Path) -> Counter[str]:
    """Try so many inputs on each reader, and count the outcomes; any other exception passes on.

    `scratch` is a file to write inputs to. Raises AssertionError where a result is none.
    """
    draw = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(cases):
        outcomes[f"answer {_answer(draw)}"] += 1
        outcomes[f"body {_body(mutated(draw, BODIES))}"] += 1
        outcomes[f"line {_line(mutated(draw, LINES))}"] += 1
    # Files are slower: fewer of them, each of several lines, some packed or cut off.
    for _ in range(cases // 100):
        parts = [mutated(draw, LINES) for _ in range(draw.randrange(4))]
        scratch.write_bytes(b"\n".join(parts))
        try:
            lines = [line for block in read_lines(str(scratch)) for line in block]
        except UsageError:
            outcomes["file refused"] += 1
        else:
            assert all(b"\n" not in line.data for line in lines)
            outcomes["file read"] += 1
    return outcomes


def mutated(draw: random.Random, samples: tuple[bytes, ...]) -> bytes:
    """One of the samples after a few changes, or nothing but noise."""
    if draw.random() < 0.1:
        return draw.randbytes(draw.randrange(60))
    data = bytearray(draw.choice(samples))
    for _ in range(draw.randrange(5)):
        at = draw.randrange(len(data) + 1)
        change = draw.randrange(5)
        if change == 0:
            data[at:at] = draw.choice(SPICE)
        elif change == 1:
            del data[at : at + draw.randrange(12)]
        elif change == 2:
            data[at : at + 1] = draw.randbytes(1)
        elif change == 3:
            data[at:at] = data[: draw.randrange(40)]
        else:
            del data[at:]
    return bytes(data)


def _answer(draw: random.Random) -> str:
    count = draw.randrange(1, 25)
    docids = tuple(f"d{number}" for number in range(count))
    shown = tuple(draw.sample(docids, count))
    wanted = draw.randrange(1, count + 1)
    samples = tuple(text.encode() for text in ANSWERS)
    text = mutated(draw, samples).decode(errors="surrogateescape")
    reasoning = mutated(draw, samples).decode(errors="replace") if draw.random() < 0.3 else ""
    answer = Answer(text, reasoning, draw.choice(("stop", "length")))
    reading = read(answer, count, wanted)
    outcome = permutation(Window(docids, shown, wanted), reading)
    assert sorted(outcome.order) == sorted(docids), answer
    assert isinstance(outcome.status, Status)
    assert outcome.status in (Status.OK, Status.REPAIRED) or outcome.order == docids, answer
    return str(outcome.status)


def _body(body: bytes) -> str:
    try:
        answer = read_answer(body)
    except BatchrankError as error:
        return type(error).__name__
    assert isinstance(answer, Answer)
    assert isinstance(answer.text, str)
    assert isinstance(answer.reasoning, str)
    assert answer.usage.prompt_tokens >= 0, body
    return "answer"


def _line(line: bytes) -> str:
    try:
        request = parse_request(line).request
    except LineError as error:
        return f"refused ({error.kind})"
    docids = [document.docid for document in request.candidates]
    assert len(docids) == len(set(docids)), line
    return "request"


def main() -> None:
    """Print what came out, and how fast."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--scratch", type=Path, default=Path(".cache/fuzz.jsonl"))
    arguments = parser.parse_args()
    arguments.scratch.parent.mkdir(exist_ok=True)
    start = time.monotonic()
    try:
        outcomes = fuzz(arguments.cases, arguments.seed, arguments.scratch)
    finally:
        arguments.scratch.unlink(missing_ok=True)
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>9,}  {outcome}")
    print(
        f"passed: {arguments.cases:,} answers, bodies and lines each in "
        f"{time.monotonic() - start:.0f} s: only permutations, statuses and typed errors"
    )


if __name__ == "__main__":
    main()
