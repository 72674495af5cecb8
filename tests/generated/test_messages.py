"""What programs rely on in a message: fixed, comparable, picklable, with the specification's names and order."""

from __future__ import annotations

import inspect
import pickle
from enum import IntFlag
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.messages import Message
from tests.cases import each_case
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import fields_of, message_layout
from tests.generated.builds import package
from tests.generated.vectors import PACKAGES, recorded


def classes_of(name: str) -> list[str]:
    """The names of the message classes of a package, by its layout."""
    layout = import_module(f"specwire.generated.{name}.layout").LAYOUT
    return [message.class_name for message in layout.messages]


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_contract_of_every_message(name: str, build: str, data: st.DataObject) -> None:
    message = data.draw(strategies.messages(package(name, build)))
    values = message.to_dict()
    twin = type(message)(**values)
    assert twin == message
    assert hash(twin) == hash(message)
    assert repr(twin) == repr(message)
    assert pickle.loads(pickle.dumps(message)) == message
    assert message.replace() == message
    assert list(values) == list(type(message).__match_args__)
    for field, value in values.items():
        with pytest.raises(AttributeError):
            setattr(message, field, value)
        assert message.replace(**{field: value}) == message
    with pytest.raises(AttributeError):
        message.other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        message.replace(no_such_field=1)


@pytest.mark.parametrize("name", PACKAGES)
@each_case("class_name", classes_of)
def test_fields_are_in_wire_order(name: str, class_name: str, build: str) -> None:
    module = package(name, build)
    class_ = module.MESSAGES[class_name]
    entry = message_layout(module, class_name)
    assert list(class_.__match_args__) == [field.attribute for field in fields_of(entry)]
    assert (class_.NAME, class_.PROTOCOL, class_.__name__) == (entry.name, name, class_name)
    assert issubclass(class_, Message)
    assert getattr(module, class_name) is class_
    assert class_.__module__ == module.__name__
    parameters = inspect.signature(class_).parameters
    assert list(parameters) == list(class_.__match_args__)


def test_messages_of_a_package_are_in_the_order_of_the_specification(
    cmb1: Any, cmb1_json: Any, filemq: Any, flux: Any, libfilemq: Any, norfab: Any, norfab_ascii: Any
) -> None:
    assert list(filemq.MESSAGES) == [
        "Ohai", "OhaiOk", "Icanhaz", "IcanhazOk", "Nom", "Cheezburger", "Hugz", "HugzOk", "Kthxbai", "Srsly", "Rtfm", "Wat",
    ]  # fmt: skip
    assert list(libfilemq.MESSAGES) == list(filemq.MESSAGES)[:-1]
    assert list(flux.MESSAGES) == ["Request", "Response", "Event", "Control"]
    assert list(cmb1.MESSAGES) == list(cmb1_json.MESSAGES) == ["Request", "Response", "Event", "Keepalive"]
    legs = ["PostClient", "PostWorker", "ResponseClient", "ResponseWorker", "GetClient", "GetWorker"]
    assert list(norfab.MESSAGES)[:10] == ["Open", "Ready", "Keepalive", "Disconnect", *legs]
    assert {"StreamClient", "PutWorker"} <= set(norfab_ascii.MESSAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_tables_cannot_be_changed(name: str, build: str) -> None:
    module = package(name, build)
    for table in (module.MESSAGES, module.UNEXPECTED):
        with pytest.raises(TypeError):
            table["Other"] = None


def test_constants_of_the_grammar_are_class_variables(filemq: Any, flux: Any, norfab: Any) -> None:
    assert (filemq.Ohai.protocol, filemq.Ohai.version, filemq.Ohai.id_) == ("FILEMQ", 2, 1)
    assert filemq.Ohai.signature == b"\xaa\xa3"
    assert filemq.Ohai() == filemq.Ohai()
    assert filemq.Ohai().to_dict() == {}
    assert repr(filemq.Ohai()) == "Ohai()"
    assert (flux.Request.magic, flux.Request.version, flux.Request.id_) == (0x8E, 1, 1)
    assert flux.Event.unused == bytes(4)
    assert norfab.Ready.header == "NFPW01"


def test_defaults_are_those_of_the_specification(filemq: Any, flux: Any, libfilemq: Any, norfab: Any) -> None:
    request = flux.Request(topic="kvs.get", payload=b'{"key":"a"}\0', nodeid=flux.NODEID_ANY, matchtag=7)
    assert request == flux.Request((), "kvs.get", b'{"key":"a"}\0', 0, 0xFFFFFFFF, 0, 0xFFFFFFFF, 7)
    assert (flux.Request().routes, flux.Response().routes, flux.Event().routes) == ((), (), ())
    assert flux.Control().routes is None
    assert (flux.Response().errnum, flux.Event().sequence, flux.Control().type_) == (0, 0, 0)
    assert filemq.Icanhaz("/") == filemq.Icanhaz(path="/", options=(), cache=())
    assert norfab.PostClient("s", "t", "u", b"").more == ()
    # Written with five frames, read with three to five.
    assert norfab.Disconnect("NFPB01").encode() == [b"", b"NFPB01", b"\x03", b"", b""]
    assert libfilemq.Nom(credit=1).sequence == 0


def test_sentinels_and_error_numbers(cmb1: Any, cmb1_json: Any, flux: Any) -> None:
    for module in (flux, cmb1, cmb1_json):
        assert (module.NODEID_ANY, module.USERID_UNKNOWN, module.MATCHTAG_NONE) == (0xFFFFFFFF, 0xFFFFFFFF, 0)
        assert (module.ENOSYS, module.EHOSTUNREACH) == (38, 113)
    assert (flux.ENOENT, flux.EEXIST, flux.ENODATA, flux.EPROTO) == (2, 17, 61, 71)


def test_keyword_only_class_matches_by_position(cmb1: Any) -> None:
    """A field with a default before one without makes a class keyword-only; patterns still have an order."""
    match cmb1.Request(topic="a", routes=(b"x",), matchtag=3):
        case cmb1.Request(routes, topic, payload, flags):
            assert (routes, topic, payload, flags) == ((b"x",), "a", None, 0)
        case _:
            raise AssertionError("no match")
    with pytest.raises(TypeError):
        cmb1.Request((b"x",), "a")


def test_position_matches_too(filemq: Any) -> None:
    match filemq.Nom(7):
        case filemq.Nom(credit):
            assert credit == 7


def test_names_that_python_keeps_get_an_underscore_here_only(flux: Any) -> None:
    message = flux.Control(type_=1, status=2)
    assert message.to_dict()["type_"] == 1
    assert flux.constructs.parse(message.encode())[1]["type"] == 1


def test_flags(flux: Any) -> None:
    """`flags` has the bits that announce nothing; `wire_flags` the whole octet."""
    header = bytes.fromhex("8e0101cb") + bytes(16)
    message = flux.decode([b"", b"t", b"p", header])
    assert isinstance(message, flux.Request)
    assert (message.flags, message.wire_flags) == (0xC0, 0xCB)
    assert type(message.flags) is int
    assert type(message.wire_flags) is int
    assert message.encode()[-1] == header
    assert flux.Request(topic="a", flags=flux.Flags.STREAMING).encode()[-1][3] == 0x49
    assert issubclass(flux.Flags, IntFlag)
    assert [(bit.name, bit.value) for bit in flux.Flags] == [
        ("TOPIC", 1), ("PAYLOAD", 2), ("NORESPONSE", 4), ("ROUTE", 8), ("UPSTREAM", 16), ("PRIVATE", 32), ("STREAMING", 64),
        ("USER1", 128),
    ]  # fmt: skip


def test_unknown_flags_are_kept(build: str) -> None:
    """CMB1 has no name for 0x80."""
    cmb1 = package("cmb1", build)
    assert 0x80 not in [bit.value for bit in cmb1.Flags]
    assert cmb1.decode(cmb1.Request(topic="a", flags=0x80).encode()).flags == 0x80


def test_decoding_builds_no_enum(build: str) -> None:
    for name in ("flux", "cmb1", "filemq"):
        for vector in recorded(name)[1:40]:
            for value in package(name, build).decode(vector.frames).to_dict().values():
                assert type(value) in (int, str, bytes, tuple, type(None))


def test_enumerations_name_values(filemq: Any) -> None:
    assert (filemq.Operation.CREATE, filemq.Operation.DELETE) == (1, 2)


def test_dictionaries_keep_order_and_repeats(filemq: Any) -> None:
    options = (("b", "1"), ("a", "2"), ("b", "1"))
    message = filemq.Icanhaz("/", options=options)
    assert filemq.decode(message.encode()) == message
    assert isinstance(hash(message), int)


def test_message_base_is_no_message() -> None:
    with pytest.raises(TypeError):
        Message().encode()


@pytest.mark.parametrize(
    "frames", [iter([b"\xaa\xa3\x09"]), {}, None, 5], ids=["iterator", "dict", "None", "number"]
)
def test_what_is_no_sequence_of_frames_is_the_callers_mistake(frames: Any, filemq: Any) -> None:
    """Not a fault of the traffic: an iterator could be read only once, so it is not read at all."""
    with pytest.raises(TypeError, match="a sequence of frames wanted"):
        filemq.decode(frames)
