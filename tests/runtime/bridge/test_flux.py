"""Flux v1 and CMB1: hand-written octets of both, and what the one cannot say."""

from __future__ import annotations

import pytest

from specwire.generated import cmb1, flux
from specwire.runtime.bridge.flux import FluxTranslation
from specwire.runtime.bridge.translation import Send, UnsayableError
from specwire.runtime.flux.topology import NODEID_UPSTREAM

REQUEST = [
    b"",
    b"attr.get",
    b"{}\0",
    bytes.fromhex("8e01010bffffffff00000000ffffffff00000001"),
]
"""A request of Flux v1: topic, payload and delimiter, matchtag 1, to any rank."""


def test_a_request_is_said_in_the_other_edition() -> None:
    """And comes back as it was."""
    (said,) = FluxTranslation("flux", "cmb1").translate(REQUEST, from_opener=True)
    assert isinstance(said, Send) and not said.to_opener
    message = cmb1.decode(said.frames)
    assert isinstance(message, cmb1.Request)
    assert (message.topic, message.payload, message.matchtag) == ("attr.get", b"{}\0", 1)
    (again,) = FluxTranslation("cmb1", "flux").translate(said.frames, from_opener=True)
    assert again == Send(False, flux.decode(REQUEST).encode())


@pytest.mark.parametrize("edition", ["cmb1", "cmb1_json"])
def test_both_ways_in_both_editions(edition: str) -> None:
    """Requests, responses with an error, events, and control messages as KEEPALIVE."""
    messages: list[flux.AnyMessage] = [
        flux.Request(topic="a.b", payload=b'{"x":1}\0', nodeid=3, matchtag=9, routes=("u1", "u2")),
        flux.Response(topic="a.b", payload=None, errnum=38, matchtag=9, routes=("u1",)),
        flux.Event(topic="news", payload=b"{}\0", sequence=5),
        flux.Control(routes=(), type_=0, status=0),
        flux.Control(routes=(), type_=1, status=4),
    ]
    there, back = FluxTranslation("flux", edition), FluxTranslation(edition, "flux")
    for message in messages:
        for from_opener in (True, False):
            (said,) = (there if from_opener else back).translate(message.encode(), from_opener=from_opener)
            assert isinstance(said, Send) and said.to_opener is not from_opener
            (again,) = (back if from_opener else there).translate(said.frames, from_opener=from_opener)
            assert isinstance(again, Send)
            assert flux.decode(again.frames) == flux.decode(message.encode())


def test_who_waits_for_an_answer_gets_one() -> None:
    """CMB1 has no rank "upstream": the request is answered with EPROTO, in the sender's own edition."""
    bridge = FluxTranslation("flux", "cmb1")
    upstream = flux.Request(topic="a.b", nodeid=NODEID_UPSTREAM, matchtag=7, routes=("u1",))
    with pytest.raises(UnsayableError, match=r"cmb1 has no word for it \(request, nodeid\)") as told:
        bridge.translate(upstream.encode(), from_opener=True)
    assert told.value.answer is not None and told.value.answer.to_opener
    answer = flux.decode(told.value.answer.frames)
    assert isinstance(answer, flux.Response)
    assert (answer.errnum, answer.matchtag, answer.routes, answer.topic) == (71, 7, ("u1",), "a.b")


def test_who_waits_for_none_gets_none() -> None:
    """No response was asked for."""
    silent = flux.Request(topic="a.b", nodeid=NODEID_UPSTREAM, matchtag=0)
    with pytest.raises(UnsayableError) as told:
        FluxTranslation("flux", "cmb1").translate(silent.encode(), from_opener=True)
    assert told.value.answer is None


def test_what_is_no_message_goes_no_further() -> None:
    """The reason names the field and nothing that the sender chose."""
    with pytest.raises(UnsayableError, match="no message of flux"):
        FluxTranslation("flux", "cmb1").translate([b"\x8e\x01secret"], from_opener=True)
