"""Cuts an answer in words into the tokens that matter: identifiers, marks, scores, separators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from batchrank.answers.reading import integer
from batchrank.answers.scores import Score, score


class Kind(StrEnum):
    """What a token is, in the order of the evidence where two would match."""

    SPAN = "span"  # [4]-[7]
    BRACKET = "bracket"  # [3], [3, 1], [Passage 3], Passage [3], and a list that the end cuts
    BLANK = "blank"  # [rankstart], []
    RATING = "rating"  # Relevance: 9, Score: high
    SCORE = "score"  # 9/10, 0.95, 90%
    MARK = "mark"  # Rank 1, 2nd, 第一名
    LABEL = "label"  # Document 3, 文档3, 第三篇
    RANGE = "range"  # 4-7
    WORD = "word"
    NUMBER = "number"
    MORE = "more"  # > → >>
    LESS = "less"  # < ←
    GAP = "gap"  # an ellipsis
    COLON = "colon"
    DASH = "dash"
    JOIN = "join"  # comma, "and", "then", …
    STOP = "stop"
    LINE = "line"


class Token(NamedTuple):
    """A token; `numbers` has two ends for a span or range, `rating` is None if unreadable."""

    kind: Kind
    numbers: tuple[int, ...]
    rating: Score | None
    start: int
    end: int


_LATIN_LABEL = (
    r"(?:documents?|docs?|passages?|texts?|items?|candidates?|results?|chunks?|snippets?|nodes?"
    r"|paragraphs?|articles?|sources?|options?|entry|entries|identifiers?|ids?|[dp](?=\d)"
    r"|dokumente?|documentos?|pasajes?|passaggi[oi]?|abschnitte?|extraits?)"
)
_CJK_LABEL = r"(?:文档|文檔|文件|段落|文章|资料|候选|结果|文本|文書|文献|片段|网页)"
_CJK = r"\u2e80-\u9fff\uac00-\ud7af"
_CJK_DIGITS = "〇一二三四五六七八九"
_CJK_NUMBER = rf"[{_CJK_DIGITS}零两十百]{{1,7}}"
_SCORE_WORD = (
    r"(?:(?<!by )(?<!of )\b(?:relevance|relevancy|score|rating|confidence|similarity|probability)"
    r"(?:\s(?:score|rating|level))?|相关性|相关度|得分|分数|评分|打分)"
)
_DASH = r"[-–—~]"
_UNIT = rf"(?:{_LATIN_LABEL}|{_CJK_LABEL})?+\s?[:#_]?\s?-?\d++(?:\s?{_DASH}\s?\d++)?+"

_PATTERNS = {
    Kind.SPAN: rf"(?<!{_DASH})\[\d++\]{_DASH}\[\d++\](?!{_DASH}\[)",
    Kind.BRACKET: (
        rf"(?:(?:\b{_LATIN_LABEL}|{_CJK_LABEL}) ?[:#]? ?)?\[\s*+{_UNIT}"
        rf"(?:\s*+(?:[,;>/&|、–—~-]|and\b)?\s*+{_UNIT})*+\s*+(?:\]|[,;>、]?\s*+\Z)"
        r"|<\d++>|\d++\s?\]"
    ),
    Kind.BLANK: r"\[[^\[\]\d\n]{0,40}+\]|</?[a-z][\w:-]{0,30}+\s?/?>",
    Kind.RATING: (
        # Not where numbers follow: "by relevance: 3, 1, 2" is a ranking.
        rf"{_SCORE_WORD}\s{{0,2}}(?:(?:of|is)\s(?=\d)|[:=]\s{{0,2}}|(?=\d))"
        r"[^\s\[\],;|]{1,40}+(?!\s{0,2}[>,、;|-]\s{0,2}\d)(?!\s{0,2}>)"
    ),
    Kind.SCORE: (
        r"(?<![\d./])\d++(?:\.\d++)?\s?/\s?\d++(?!\s?/)"
        r"|\d++(?:\.\d++)?\s{1,2}out\sof\s{1,2}\d++"
        r"|\d++(?:\.\d++)?\s?(?:%|points?\b|pts?\b|stars?\b|分)"
        r"|(?<![\d.])\d++\.\d++(?!\.?\d)"
    ),
    Kind.MARK: (
        rf"\brank(?:ed|ing)?\s?(?:no\.?|number)?\s?\#?\d++(?=\s*+(?:[:.)\[(=]|{_DASH}|is\b|{_LATIN_LABEL}))"
        r"|\b\d++(?:st|nd|rd|th)\b|\btop[\s-]?\d++"
        r"|\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)(?:ly)?\b"
        rf"|第(?:\d++|{_CJK_NUMBER})(?:[名位]|(?= ?:))|排名第?(?:\d++|{_CJK_NUMBER})"
        rf"|^[ \t]*+{_CJK_NUMBER}[、.]"
    ),
    Kind.LABEL: (
        rf"(?:\b{_LATIN_LABEL}|{_CJK_LABEL})[ \t]{{0,3}}(?:no\.?|number|id|编号)?[ \t]{{0,2}}"
        r"[:#_(\"'-]{0,3}[ \t]{0,2}\d++(?![a-z_%]|\.\d)"
        rf"|{_CJK_LABEL}{_CJK_NUMBER}(?=[和与及]|\W|\Z)"
        rf"|第\s?(?:\d++|{_CJK_NUMBER})\s?(?:[篇段条條份号號]{_CJK_LABEL}?|[个個项項]?{_CJK_LABEL}"
        r"|(?=\s?(?:[>、,]|\Z)))"
    ),
    Kind.RANGE: rf"(?<![\d.–—~-])\d++{_DASH}\d++(?![\d.\w]|{_DASH}\d)",
    Kind.GAP: r"\.{2,}",
    Kind.JOIN: (
        r"\b(?:and|then|next|finally|lastly|(?:followed|after)\s(?:by|that)|et|und|y)\b"
        r"|然后|其次|接着|最后|[和与及再]|[,;、|&=/+•·]"
    ),
    Kind.WORD: (rf"\d++[^\W\d_{_CJK}]\w*+|[^\W\d_{_CJK}][^\W{_CJK}]*+|[{_CJK}]"),
    Kind.NUMBER: r"\d++",
    Kind.MORE: r"[-=]{1,3}>|>++=?|》",
    Kind.LESS: r"<[-=]{1,3}|<++|《",
    Kind.COLON: r":|(?<=[\d\]]) ?\((?=\d)",
    Kind.DASH: _DASH,
    Kind.STOP: r"[.!?](?!\w)|。|(?<=\d)\)",
    Kind.LINE: r"\n",
}
_TOKEN = re.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()),
    re.IGNORECASE | re.MULTILINE,
)
_SINGLE = re.compile(
    rf"[\s\[(<#*\"']*+(?:{_LATIN_LABEL}|{_CJK_LABEL})?+[\s:#_.-]*+[\[(]?(?P<n>\d++)[\s\])>*\"']*+",
    re.IGNORECASE,
)
_SIGNED = re.compile(rf"(?<!\d)(-?)(\d++)(?:\s?{_DASH}\s?(\d++))?+")
_CJK_RUN = re.compile(_CJK_NUMBER)
_DIGITS = re.compile(r"\d++")
_RATED = re.compile(rf"{_SCORE_WORD}\s{{0,2}}(?:of|is|[:=])?\s{{0,2}}", re.IGNORECASE)


def single(text: str) -> int | None:
    """Return the number of a text that is one identifier: `4`, `[4]`, `Document 4`."""
    match = _SINGLE.fullmatch(text)
    return integer(match["n"]) if match else None


def tokens(text: str, documents: int) -> Iterator[Token]:
    """Yield the tokens of cleaned `text`; what is neither of them (blanks, quotes) is passed over.

    Ranges within brackets are written out as far as there are `documents`.
    """
    for match in _TOKEN.finditer(text):
        kind = Kind(match.lastgroup or "")
        rating = None
        numbers: tuple[int, ...] = ()
        match kind:
            case Kind.BRACKET:
                numbers = tuple(_bracketed(match[0], documents))
            case Kind.SPAN | Kind.RANGE:
                first, last = map(integer, _DIGITS.findall(match[0]))
                numbers = tuple(spread(first, last, documents))
            case Kind.LABEL | Kind.NUMBER:
                numbers = (_labelled(match[0]),)
            case Kind.RATING | Kind.SCORE:
                rating = score(_RATED.sub("", match[0], count=1))
            case _:
                pass
        yield Token(kind, numbers, rating, match.start(), match.end())


def spread(first: int, last: int, documents: int) -> Iterator[int]:
    """Yield first..last where that rises, as far as there are documents; else just the two."""
    if first >= last:
        yield first
        yield last
        return
    yield from range(first, min(last, documents) + 1)
    if last > documents:
        yield last


def _bracketed(text: str, documents: int) -> Iterator[int]:
    for sign, first, last in _SIGNED.findall(text):
        if sign:
            yield -1
        elif last:
            yield from spread(integer(first), integer(last), documents)
        else:
            yield integer(first)


def _labelled(text: str) -> int:
    digits = _DIGITS.search(text)
    if digits:
        return integer(digits[0])
    numeral = _CJK_RUN.search(text)
    return _cjk_number(numeral[0]) if numeral else 0


def _cjk_number(numeral: str) -> int:
    """Convert a Chinese numeral below a thousand, such as 十一 or 二十."""
    total = digit = 0
    for char in numeral.replace("零", "〇").replace("两", "二"):
        if char in "十百":
            total += (digit or 1) * (10 if char == "十" else 100)
            digit = 0
        else:
            digit = digit * 10 + _CJK_DIGITS.index(char)
    return total + digit
