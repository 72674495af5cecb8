"""Payload policies: content goes, everything else stays, and what cannot be read is all content."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated import cmb1_json, filemq, flux, norfab_ascii, zre
from specwire.runtime.capture.limits import Limits
from specwire.runtime.capture.payload import make_reducer, redacted_fields, reduce_octets
from specwire.runtime.capture.policy import KEEP, Payload, parse_payload
from specwire.runtime.capture.tap import Tap
from specwire.runtime.packages import add_packages
from tests.runtime.own_packages import QUOTE, SUBSCRIBE, write_package

CUT, HASH, OMIT = Payload("cut", 3), Payload("hash"), Payload("omit")
SECRET = b"secret content"

CONTENT: Mapping[str, frozenset[str]] = {
    "filemq": frozenset({"chunk"}),
    "libfilemq": frozenset({"chunk"}),
    "flux": frozenset({"payload"}),
    "cmb1": frozenset({"payload"}),
    "cmb1_json": frozenset({"payload", "json"}),
    "norfab": frozenset({"body", "more"}),
    "norfab_ascii": frozenset({"body", "more"}),
    "zre": frozenset({"content"}),
}
"""The fields with content of each protocol."""


@pytest.mark.parametrize("protocol", sorted(CONTENT))
def test_the_profiles_name_the_fields_with_content(protocol: str) -> None:
    """Of each protocol; a message has those that it has a field for."""
    found = redacted_fields(protocol)
    assert found is not None
    assert {name for names in found.values() for name in names} == CONTENT[protocol]
    for name, cls in import_module(f"specwire.generated.{protocol}").MESSAGES.items():
        assert set(found.get(name, ())) == CONTENT[protocol] & set(cls.__match_args__)


def test_a_package_of_the_users_names_its_own(tmp_path: Path) -> None:
    """Also for a tap's writer, which is another process; without `redact` every frame is content."""
    assert redacted_fields("zmtp") is None and redacted_fields("ticker") is None
    add_packages(write_package(tmp_path / "wire", more='redact = ["QUOTE.symbol"]\n'))
    assert redacted_fields("ticker") == {"Quote": ("symbol",)}
    limits = Limits(payload=Payload("omit"))
    with Tap.open(tmp_path / "capture", protocol="ticker", name="t", limits=limits) as tap:
        for frames in (SUBSCRIBE, QUOTE):
            tap.record(sender="S", peer="p", conversation="1", frames=frames)
    (segment,) = (tmp_path / "capture").glob("*.parquet")
    assert pq.read_table(segment)["frames"].to_pylist() == [SUBSCRIBE, [b"\x02\x00" + QUOTE[0][6:]]]


def reduce(protocol: str, policy: Payload, frames: list[bytes]) -> tuple[bytes, ...]:
    """Return the frames as a capture has them."""
    reducer = make_reducer(protocol, policy)
    return tuple(frames) if reducer is None else reducer(frames)


@pytest.mark.parametrize("word", ["keep", "cut:0", "cut:256", "hash", "omit"])
def test_a_policy_is_written_as_it_is_read(word: str) -> None:
    """So the metadata of a segment can be given back as an option."""
    assert str(parse_payload(word)) == word


@pytest.mark.parametrize("word", ["", "drop", "cut", "cut:", "cut:-1", "cut:1k", "KEEP", "hash:1"])
def test_what_is_no_policy(word: str) -> None:
    """The sentence shows those that there are."""
    with pytest.raises(ValueError, match="write keep, cut:OCTETS, hash or omit"):
        parse_payload(word)


def test_keeping_costs_nothing() -> None:
    """No message is even looked at."""
    assert all(make_reducer(protocol, KEEP) is None for protocol in (*CONTENT, "unknown"))


MESSAGES: list[tuple[str, Any, str]] = [
    (
        "filemq",
        filemq.Cheezburger(sequence=5, operation=1, filename="/a", offset=9, headers=(), chunk=SECRET),
        "chunk",
    ),
    ("flux", flux.Request(topic="a.b", payload=SECRET, nodeid=3, matchtag=7), "payload"),
    ("flux", flux.Response(routes=("x",), topic="a.b", payload=SECRET, errnum=0, matchtag=7), "payload"),
    ("cmb1_json", cmb1_json.Request(topic="a.b", json=SECRET.decode(), nodeid=3, matchtag=7), "json"),
    (
        "norfab_ascii",
        norfab_ascii.PostWorker(header="NFPB01", client_address=b"\x01c", uuid="u", body=SECRET),
        "body",
    ),
    ("zre", zre.Shout(version=2, sequence=1, group="g", content=(SECRET, SECRET)), "content"),
]


@pytest.mark.parametrize(("protocol", "message", "field"), MESSAGES, ids=[one[0] for one in MESSAGES])
@pytest.mark.parametrize("policy", [CUT, HASH, OMIT], ids=str)
def test_content_goes_and_the_rest_stays(protocol: str, message: Any, field: str, policy: Payload) -> None:
    """The message decodes, and differs in its content alone."""
    frames = reduce(protocol, policy, message.encode())
    assert SECRET not in b"".join(frames)
    decoded = import_module(f"specwire.generated.{protocol}").decode(list(frames))
    assert decoded.replace(**{field: getattr(message, field)}) == message
    left = getattr(decoded, field)
    assert all(len(part) < 80 for part in (left if isinstance(left, tuple) else [left]))


def test_a_digest_says_octets_and_length() -> None:
    """The SHA-256 of three octets is the standard's own example (FIPS 180-2, B.1)."""
    assert reduce_octets(HASH, b"abc") == (
        b"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3"
    )


@pytest.mark.parametrize("policy", [CUT, HASH, OMIT], ids=str)
def test_messages_without_content_are_the_same_octets(policy: Payload) -> None:
    """An empty content too: in FILEMQ it ends a file."""
    for message in (
        filemq.Nom(credit=5),
        filemq.Cheezburger(sequence=5, operation=1, filename="/a", offset=9, headers=(), chunk=b""),
    ):
        assert reduce("filemq", policy, message.encode()) == tuple(message.encode())


def test_what_does_not_decode_is_all_content() -> None:
    """So is every message of a protocol whose content nobody has named."""
    broken = [b"\xaa\xa3\x77secret", b""]
    for protocol in ("filemq", "unheard"):
        assert reduce(protocol, OMIT, broken) == (b"", b"")
        assert reduce(protocol, CUT, broken) == (b"\xaa\xa3\x77", b"")
        assert reduce(protocol, HASH, broken)[0].startswith(b"sha256:")


@pytest.mark.parametrize("protocol", sorted(CONTENT))
@settings(max_examples=40)
@given(data=st.data())
def test_any_message_decodes_without_its_content(protocol: str, data: st.DataObject) -> None:
    """Whatever can be sent; what is no content is as it was, and what cannot be decoded is taken, too."""
    package = import_module(f"specwire.generated.{protocol}")
    message = data.draw(package.strategies.messages())
    policy = data.draw(st.sampled_from([CUT, HASH, OMIT]))
    left = package.decode(list(reduce(protocol, policy, message.encode())))
    content = {name: getattr(message, name) for name in CONTENT[protocol] if hasattr(message, name)}
    decoded = package.decode(message.encode())
    assert left.replace(**{name: getattr(decoded, name) for name in content}) == decoded
    broken = data.draw(package.strategies.mutated_frames())
    assert len(reduce(protocol, OMIT, broken)) == len(broken)
