"""What `batchrank publish` says of what it would do, and of what it did."""

from __future__ import annotations

from dataclasses import asdict

from batchrank.formats.wording import counted, duration
from batchrank.publishing.publication import Outlook, Published
from batchrank.publishing.target import Generation, Target


def outlook_lines(outlook: Outlook, target: Target) -> list[str]:
    """What a publication would do."""
    if outlook.is_current:
        return [f"{target.name}: all this is current already; nothing would be written"]
    entries = counted(outlook.entries, "entry", "entries")
    lines = [
        f"would write at most {entries} to {target.name}, about {outlook.needed:,} bytes with what "
        "is carried over"
    ]
    if outlook.current is None:
        lines.append("nothing is published there yet")
    else:
        held = outlook.current.entries
        lines.append(
            f"current: generation {outlook.current.number} ({outlook.current.header.source})"
            + ("" if held is None else f", {counted(held, 'entry', 'entries')}")
        )
    return lines


def ending_lines(ended: Published, seconds: float) -> list[str]:
    """How a publication ended."""
    if ended.repeated:
        return [f"generation {ended.generation} is current already; nothing was written"]
    lines = [
        f"generation {ended.generation} is current: "
        f"{counted(ended.entries or 0, 'entry', 'entries')}, {ended.written:,} from this run, "
        f"{ended.carried:,} carried over, in {duration(seconds)}"
        + (" (went on where it was interrupted)" if ended.resumed else "")
    ]
    if ended.shared:
        lines.append(
            f"  {counted(ended.shared, 'line')} with the key of an earlier line: the first stays"
        )
    if ended.coverage.keys:
        lines.append(f"  {ended.coverage.share:.1%} of the keys that were current are still there")
    return lines


def as_value(ended: Published | Outlook) -> dict[str, object]:
    """The same for a machine."""
    if isinstance(ended, Published):
        return asdict(ended)
    current = ended.current.number if ended.current else None
    return {
        "entries": ended.entries,
        "needed_bytes": ended.needed,
        "current": current,
        "is_current": ended.is_current,
        "refusal": ended.refusal,
    }


def current_again(found: Generation, *, dry: bool) -> dict[str, object]:
    """The generation that a rollback made current, or would make, for a machine."""
    return {
        "generation": found.number,
        "entries": found.entries,
        "source": found.header.source,
        "is_current": not dry,
    }
