"""Wording of octets and numbers in error messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def number_of(number: int, thing: str) -> str:
    """Return a number and what it counts, in the plural unless the number is one."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def octets_word(number: int) -> str:
    """Return a number of octets with its unit."""
    return number_of(number, "octet")


def frames_word(frames: Sequence[object]) -> str:
    """Return the number of `frames` with its unit."""
    return number_of(len(frames), "frame")


def one_of(options: Iterable[bytes]) -> str:
    """Return the alternatives for octets as words."""
    return either(map(show, options))


def one_start_of(starts: Iterable[str]) -> str:
    """Return alternatives for the octets with which something begins, in hexadecimal, as words."""
    return either(f"0x{start}" if "?" in start else show(bytes.fromhex(start)) for start in starts)


def either(words: Iterable[str]) -> str:
    """Return words joined by commas, with "or" before the last."""
    *several, last = words
    return f"{', '.join(several)} or {last}" if several else last


def allowed_characters(rule: str) -> str:
    """Return what a text of a rule may have."""
    return f"characters that the rule {rule} allows"


def depth_words(deepest: int) -> str:
    """Return how many records may contain each other."""
    return f"at most {deepest} values inside each other"


def show(octets: bytes) -> str:
    """Return octets in readable form, shortened: quoted if they are text, else hexadecimal."""
    if not octets:
        return "nothing"
    if len(octets) > 2 and all(0x20 <= octet <= 0x7E for octet in octets):
        text = octets.decode("ascii")
        return f"'{text}'" if len(text) <= 40 else f"'{text[:37]}...'"
    shown = octets[:16].hex()
    return f"0x{shown}" if len(octets) <= 16 else f"0x{shown}... ({octets_word(len(octets))})"
