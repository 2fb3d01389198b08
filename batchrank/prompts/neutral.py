"""Makes a document's text harmless in a prompt: it can change the order, never the shape.

Chat-template tokens of the common model families would end the document or speak as somebody else;
a bracketed number would look like another document's identifier. The stored text is not changed.
"""

from __future__ import annotations

import re

_MARKUP = re.compile(
    r"<(?=[|｜])|(?<=[|｜])>"  # <|im_end|>, <|eot_id|>, harmony's <|channel|>, DeepSeek's <｜…｜>
    r"|<(?=/?(?:s|think|thinking|start_of_turn|end_of_turn|bos|eos|unk|pad|answer|tool_call|sop|eop|"
    r"start_of_image|end_of_image|(?:bos|eos|pad)_token|seed:\w+)>)"  # </s>, <think>, Gemma's turns
    r"|<(?=</?SYS>>)"
    r"|\[(?=\|)|(?<=\|)\]"  # EXAONE's [|endofturn|]
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK|gMASK)\])",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[\[【［](\s*\d{1,5}\s*)[\]】］]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028\u2029\ufeff]+")
_BLANK_LINES = re.compile(r"\n\s*\n")
_HARMLESS = bytes(set(range(0x20, 0x7F)) - set(b"<>[]"))


def is_harmless(odd: bytes) -> bool:
    """Whether `neutral` keeps a text with these `odd_bytes`, as it keeps most: seen far faster."""
    return not odd.translate(None, _HARMLESS)


def neutral(text: str) -> str:
    """`text` without control characters, chat tokens, identifier look-alikes and blank lines."""
    if not text.isprintable():
        text = _CONTROL.sub(" ", text)
        if "\n" in text:
            text = _BLANK_LINES.sub("\n", text.strip())
    if "<" in text or ">" in text or "[" in text or "]" in text:
        text = _MARKUP.sub(
            lambda match: f" {match[0]}" if match[0] in ">]" else f"{match[0]} ", text
        )
    if "[" in text or "【" in text or "［" in text:
        text = _IDENTIFIER.sub(r"(\1)", text)
    return text
