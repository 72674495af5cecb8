"""Worked examples: the octets of each are a message, whole, and every octet is said to be of some field."""

from __future__ import annotations

from importlib import import_module

import pytest

from site_examples import LONGEST_RUN, examples
from site_protocols import protocol_names
from tests.generator.reference_pages import compilation


@pytest.mark.parametrize("name", protocol_names())
def test_octets_of_an_example_are_its_message(name: str) -> None:
    """Put together again, frame by frame, they decode to the message of that name."""
    protocol = compilation(name).protocol
    package = import_module(f"specwire.generated.{name}")
    found = examples(protocol)
    assert set(found) == {message.class_name for message in protocol.messages}
    for message in protocol.messages:
        frames: list[bytes] = []
        for frame, offset, octets, field, *_ in found[message.class_name].rows:
            if int(frame) == len(frames):
                frames.append(b"")
            assert int(offset) == len(frames[int(frame)]) and (field != "(empty)" or not octets)
            first, _, more = octets.partition(" … ")
            missing = int(more.removesuffix(" more")) if more else 0
            assert not missing or len(bytes.fromhex(first)) == LONGEST_RUN
            frames[-1] += bytes.fromhex(first) + b" " * missing
        if message.senders and "sender" in package.decode.__code__.co_varnames:
            decoded = package.decode(frames, sender=message.senders[0])
        else:
            decoded = package.decode(frames)
        assert type(decoded).__name__ == message.class_name
        total = f"{sum(map(len, frames))} octets in {len(frames)} frame"
        assert total in found[message.class_name].caption


def test_values_are_those_of_the_message() -> None:
    """CHEEZBURGER of FILEMQ, as the vectors have it: numbers, names of numbers, entries, texts."""
    rows = examples(compilation("filemq").protocol)["Cheezburger"].rows
    values = {field: value for _, _, _, field, value, _ in rows}
    assert values["signature"] == "always these octets"
    assert values["operation"] == "1: CREATE"
    assert values["filename"] == '"a.jpg"'
    assert (values["sequence"], values["offset"]) == ("5", "4096")
    assert (values["headers"], values["chunk"]) == ("0 entries", "6 octets")


def test_messages_that_others_wrote_are_preferred() -> None:
    """A recorded request of flux-core has more to show than the shortest one."""
    table = examples(compilation("flux").protocol)["Request"]
    assert table.caption.startswith("As flux-core 0.88 wrote it: ")
    assert {"TOPIC + PAYLOAD + ROUTE"} <= {row[4] for row in table.rows}
