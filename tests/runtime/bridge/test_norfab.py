"""NORFAB's two dialects: every recorded message of the deployed package goes to the specification's and back."""

from __future__ import annotations

import pytest

from specwire.generated import norfab, norfab_ascii
from specwire.runtime.bridge.norfab import NorfabTranslation
from specwire.runtime.bridge.translation import Send, UnsayableError
from tests.generated.refused import REFUSED
from tests.generated.vectors import entries, frames_of

RECORDED = [
    entry
    for entry in entries("norfab-0.25-0.6.json")
    if entry["name"] not in REFUSED["norfab_ascii"] and entry["fields"].get("command_name") not in (None, "?")
]
UNSPECIFIED = {"STREAM", "PUT"}
"""Commands that the specification does not have."""

SPECIFIED_STATUS = {"102": "300", "201": "202", "404": "400"}


def test_recorded_messages_come_back_as_they_were() -> None:
    """From clients and workers to a broker that speaks by the letter, and from there to another of the deployed kind."""
    there, back = NorfabTranslation("norfab_ascii", "norfab"), NorfabTranslation("norfab", "norfab_ascii")
    seen = set()
    for entry in RECORDED:
        name = entry["fields"]["command_name"]
        if entry["direction"].startswith("broker"):
            continue
        frames = list(frames_of(entry))
        if name in UNSPECIFIED:
            with pytest.raises(UnsayableError, match=f"norfab has no word for it \\({name}, tag\\)"):
                there.translate(frames, from_opener=True)
            continue
        (said,) = there.translate(frames, from_opener=True)
        assert isinstance(said, Send) and not said.to_opener
        message = norfab.decode(said.frames)
        assert len(said.frames[2]) == 1, "the specification's command is one octet"
        (again,) = back.translate(said.frames, from_opener=True)
        assert isinstance(again, Send)
        wanted = norfab_ascii.decode(frames)
        found = norfab_ascii.decode(again.frames)
        if hasattr(wanted, "status"):
            status = wanted.status[:3]
            wanted = wanted.replace(status=SPECIFIED_STATUS.get(status, status))
        assert found == wanted.replace(**({"more": ()} if hasattr(wanted, "more") else {}))
        seen.add(type(message).__name__)
    assert seen >= {
        "PostClient",
        "GetClient",
        "Ready",
        "Keepalive",
        "ResponseWorker",
        "EventWorker",
        "MmiClient",
    }


def test_the_broker_answers_in_the_role_that_asked() -> None:
    """A job to a worker and a result to a client are different messages; DISPATCHED is 202 in both."""
    worker = NorfabTranslation("norfab", "norfab_ascii")
    worker.translate([b"", b"NFPW01", b"\x01", b"echo"], from_opener=True)
    job = [b"", b"NFPB01", b"0x04", b"client-1", b"", b"a" * 32, b'{"task":"t"}']
    (said,) = worker.translate(job, from_opener=False)
    assert said == Send(True, [b"", b"NFPB01", b"\x04", b"client-1", b"", b"a" * 32, b'{"task":"t"}'])
    client = NorfabTranslation("norfab", "norfab_ascii")
    client.translate([b"", b"NFPC01", b"\x04", b"echo", b"all", b"a" * 32, b"{}"], from_opener=True)
    answer = [b"", b"NFPB01", b"0x05", b"echo", b"a" * 32, b"202", b"{}"]
    (said,) = client.translate(answer, from_opener=False)
    assert isinstance(said, Send)
    message = norfab.decode(said.frames)
    assert isinstance(message, norfab.ResponseClient)
    assert (message.service, message.status, message.body) == ("echo", "202", b"{}")


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([b""], "no message of NORFAB"),
        ([b"", b"NFPB01", b"0x02", b"echo"], "a broker's message from who connects"),
    ],
)
def test_what_is_no_message_goes_no_further(frames: list[bytes], reason: str) -> None:
    """The reason has nothing in it that the sender chose."""
    with pytest.raises(UnsayableError, match=reason):
        NorfabTranslation("norfab_ascii", "norfab").translate(frames, from_opener=True)
