"""What a live peer answered, against what it answered in the recording.

Both are put in order by the key of the dialog where it has one, for answers to several requests may come in any order;
without a key all are one sequence. Content that came in pieces is put together first, for how large the pieces are is a
matter of time; a pulse is left out, and so is a last word by which a peer leaves, for that answers nothing. Within a
sequence the longest runs of equal messages are found; of what stands between, messages of one class are the same answer
with another content.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import msgspec

from specwire.generated.errors import DecodeError
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.replay.nature import Ignored, plain_fields

SHOWN = 300
"""Characters of a value that are shown."""


class Difference(msgspec.Struct, frozen=True):
    """An answer that is not as recorded.

    Attributes:
        conversation: as the capture names it.
        kind: differs, missing, extra.
        message: class name.
        key: of the dialog, empty where it has none.
        field: path of the first field that differs; empty where the whole message is missing or extra.
        recorded, live: what is there, shortened.
    """

    conversation: str
    kind: str
    message: str
    key: list[Any]
    field: str
    recorded: str
    live: str


class Answer(msgspec.Struct):
    """A message as it is compared; `text` is everything that must be equal."""

    name: str
    key: tuple[Any, ...]
    fields: dict[str, Any]
    text: str = ""
    end: int | None = None


class Comparison(msgspec.Struct, frozen=True):
    """Of one conversation."""

    recorded: int
    live: int
    same: int
    unreadable: int
    differences: list[Difference]


def compare(
    language: Language,
    dialog_key: Sequence[str],
    conversation: str,
    recorded: Sequence[Sequence[bytes]],
    live: Sequence[Sequence[bytes]],
    ignored: Ignored,
) -> Comparison:
    """Return what the live answers have that the recorded have not, and the other way round."""
    old, broken_before = _answers(language, dialog_key, recorded, ignored)
    new, broken_now = _answers(language, dialog_key, live, ignored)
    keys = list(dict.fromkeys(answer.key for answer in (*old, *new)))
    same, differences = 0, []
    for key in keys:
        before = [answer for answer in old if answer.key == key]
        now = [answer for answer in new if answer.key == key]
        matcher = SequenceMatcher(None, [a.text for a in before], [a.text for a in now], autojunk=False)
        for kind, i, j, k, m in matcher.get_opcodes():
            if kind == "equal":
                same += j - i
            else:
                differences += _differ(conversation, before[i:j], now[k:m])
    if broken_now != broken_before:
        differences.append(
            Difference(conversation, "unreadable", "", [], "", str(broken_before), str(broken_now))
        )
    return Comparison(len(old), len(new), same, broken_now, differences)


def _answers(
    language: Language, dialog_key: Sequence[str], messages: Sequence[Sequence[bytes]], ignored: Ignored
) -> tuple[list[Answer], int]:
    """Return the messages as they are compared, and how many could not be read."""
    found: list[Answer] = []
    unreadable = 0
    for frames in messages:
        try:
            message = language.decode(frames)
        except DecodeError:
            unreadable += 1
            continue
        if not language.habits.is_beat(message):
            _add(found, message, language, dialog_key, ignored)
    while found and found[-1].name in language.habits.partings:
        found.pop()
    for answer in found:
        answer.text = f"{answer.name} {json.dumps(answer.fields, sort_keys=True, default=repr)}"
    return found, unreadable


def _add(
    found: list[Answer], message: Any, language: Language, dialog_key: Sequence[str], ignored: Ignored
) -> None:
    """Add a message, or its content to the piece before it."""
    name = type(message).__name__
    key = tuple(getattr(message, field, None) for field in dialog_key)
    place, content = language.habits.pieces.get(name, ("", ""))
    fields = plain_fields(message, language.habits, ignored, leave=(content,) if content else ())
    if not content:
        found.append(Answer(name, key, fields))
        return
    begin, octets = getattr(message, place), bytes(getattr(message, content))
    rest = {field: value for field, value in fields.items() if field != place}
    for answer in reversed(found):
        if answer.name == name and answer.end == begin and _same_piece(answer.fields, rest, place):
            answer.fields[content] += octets.hex()
            answer.end = begin + len(octets)
            return
    found.append(Answer(name, key, {**fields, content: octets.hex()}, end=begin + len(octets)))


def _same_piece(whole: dict[str, Any], piece: dict[str, Any], place: str) -> bool:
    """Whether a piece is of the same content: all else is equal, or only the first piece says it."""
    return all(whole.get(field) == value or not value for field, value in piece.items() if field != place)


def _differ(conversation: str, before: list[Answer], now: list[Answer]) -> list[Difference]:
    found: list[Difference] = []
    left = list(now)
    for old in before:
        new = next((answer for answer in left if answer.name == old.name), None)
        if new is None:
            found.append(
                Difference(conversation, "missing", old.name, list(old.key), "", _show(old.fields), "")
            )
            continue
        left.remove(new)
        field, recorded, live = first_difference(old.fields, new.fields)
        shown = (_show(recorded), _show(live))
        found.append(Difference(conversation, "differs", old.name, list(old.key), field, *shown))
    for new in left:
        found.append(Difference(conversation, "extra", new.name, list(new.key), "", "", _show(new.fields)))
    return found


def first_difference(old: Any, new: Any, path: str = "") -> tuple[str, Any, Any]:
    """Return the path of the first value that differs, and both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name) or (name in old) != (name in new):
                inner = f"{path}.{name}" if path else str(name)
                return first_difference(old.get(name), new.get(name), inner)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                return first_difference(one, other, f"{path}[{index}]")
    return path, old, new


def _show(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
