"""Strips what wraps an answer and writes its characters in one way, leaving the words alone."""

from __future__ import annotations

import re
import unicodedata

LIMIT = 16_384
"""Characters that are read. A ranking of 200 documents takes 2,000."""

_SPECIAL = re.compile(
    r"<[|｜][^|｜<>\n]{1,40}[|｜]>|</?s>|<(?:eos|bos|pad|unk)>|<(?:start|end)_of_turn>|\[/?INST\]"
)
_ROLE = re.compile(r"\s*(?:assistant|model)\s*(?:\n|$)")
_ANSWER_OPEN = re.compile(r"<\s?(?:final_)?answer\s?>", re.IGNORECASE)
_ANSWER_CLOSE = re.compile(r"<\s?/\s?(?:final_)?answer\s?>", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{([^{}]{0,8000}+)\}")
_FENCE = re.compile(r"```[\w-]{0,20}+")
_LINK = re.compile(r"\[\[\s?(\d++)\s?\]\]")
_ESCAPED = re.compile(r"\\([\[\]<>_*])")
_BRACKETS = str.maketrans("【】〖〗〔〕≻≺→←➔⟶«»", "[][][]><><>><>")
_ENTITIES = (("&gt;", ">"), ("&lt;", "<"), ("&#62;", ">"), ("&#60;", "<"), ("&amp;", "&"))
_HALF = re.compile(r"\d++\Z")


def unwrapped(text: str) -> str:
    """Return the model's own turn, without special tokens, fences and answer tags.

    What follows an end token is another turn that the model made up.
    """
    for turn in _SPECIAL.split(text):
        own = _ROLE.sub("", turn, count=1) if _ROLE.match(turn) else turn
        if own.strip():
            text = own
            break
    *_, answer = _ANSWER_OPEN.split(text)
    if len(answer) < len(text):
        text = _ANSWER_CLOSE.split(answer, maxsplit=1)[0]
    boxed = _BOXED.findall(text)
    text = boxed[-1] if boxed else text
    return _FENCE.sub("\n", text).strip()


def plain(text: str) -> str:
    """Return `text` with one way to write digits, brackets and arrows, at most LIMIT long."""
    text = text[:LIMIT]
    if not text.isascii():
        text = "".join(f" [{number}] " if (number := _circled(char)) else char for char in text)
        text = unicodedata.normalize("NFKC", text).translate(_BRACKETS)[:LIMIT]
    for entity, char in _ENTITIES:
        text = text.replace(entity, char)
    return _ESCAPED.sub(r"\1", _LINK.sub(r"[\1]", text)).strip()


def is_open(text: str) -> bool:
    """Tell whether `text` stops within brackets, which shows that it was cut."""
    return text.rfind("[") > text.rfind("]") or text.rfind("{") > text.rfind("}")


def without_half_number(text: str, documents: int) -> str:
    """Drop the number a cut text ends in, where more digits could still make it an identifier."""
    half = _HALF.search(text)
    # A million digits can't be half of an identifier, so their length alone decides.
    if half is None or len(half[0]) >= len(str(documents)) or int(half[0]) * 10 > documents:
        return text
    return text[: half.start()]


def _circled(char: str) -> int:
    """Return the number in a circled digit such as ③, ⑪ or ❸; 0 for any other character."""
    if char < "①" or unicodedata.category(char) != "No":
        return 0
    if unicodedata.decomposition(char).partition(" ")[0] not in ("<circle>", "<compat>", ""):
        return 0
    value = unicodedata.numeric(char)
    return int(value) if value.is_integer() and value <= 50 else 0
