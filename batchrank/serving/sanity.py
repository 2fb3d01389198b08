"""Four tiny queries that any useful model ranks better than chance, written for this purpose."""

from __future__ import annotations

from batchrank.values import Document, Query, Request

_SETS: tuple[tuple[str, tuple[str, ...], int], ...] = (
    (
        "how long does it take to boil an egg hard",
        (
            "Eggs are sold by the dozen and keep for weeks in the fridge.",
            "The kettle was boiling when we came home from the market.",
            "For a hard yolk, leave the egg in boiling water for ten minutes.",
            "Hens lay fewer eggs in winter because the days are short.",
        ),
        2,
    ),
    (
        "capital of Australia",
        (
            "Sydney, the largest city of Australia, is known for its opera house.",
            "Canberra has been the capital of Australia since 1913.",
            "Kangaroos live in most parts of Australia.",
            "A capital is the city where a country is governed.",
        ),
        1,
    ),
    (
        "why is the sky blue",
        (
            "Blue paint was once made from a costly stone.",
            "The sky over the harbour was grey all week.",
            "Pilots learn to read the clouds before they fly.",
            "Air scatters blue light more than red, so the sky looks blue.",
        ),
        3,
    ),
    (
        "remove a directory with all its files in the shell",
        (
            "Use ls to list the files of a directory.",
            "The shell is the part of a snail that protects it.",
            "rm -r NAME removes a directory and everything in it.",
            "Removing old paint takes patience and a good scraper.",
        ),
        2,
    ),
)

CHANCE = 2.5
"""Mean rank of the right document of four where the order is drawn by lot."""


def sanity_requests() -> list[tuple[Request, str]]:
    """Each request with the docid of its one right document, which never stands first."""
    return [
        (
            Request(
                Query(f"sanity-{number}", text),
                tuple(Document(str(place), document) for place, document in enumerate(documents)),
            ),
            str(right),
        )
        for number, (text, documents, right) in enumerate(_SETS)
    ]
