"""The words between a tap and its writer, cut in any way on their way through a pipe."""

from __future__ import annotations

import pytest

from specwire.runtime.capture.link import Captured, Closing, Progress, Word, WordReader, pack_word

WORDS: list[Word] = [
    Captured(1, 2, 0, "c1", "C", "peer é", (b"\xaa\xa3\x01", b""), 0),
    Closing(3),
    Progress(written=5, lost=1, fault="full"),
]


@pytest.mark.parametrize("portion", [1, 2, 3, 7, 1000])
def test_words_survive_any_portions(portion: int) -> None:
    """A pipe may deliver octets in any portions."""
    octets = b"".join(map(pack_word, WORDS))
    reader = WordReader()
    found = [word for at in range(0, len(octets), portion) for word in reader.feed(octets[at : at + portion])]
    assert found == WORDS


def test_half_a_word_is_not_a_word() -> None:
    """A writer's input ends anywhere when its peer is killed."""
    octets = b"".join(map(pack_word, WORDS[:2]))
    assert WordReader().feed(octets[:-1]) == WORDS[:1]
