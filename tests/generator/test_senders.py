"""No back end returns a message that the given sender does not send, as the profile declares."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.builds import PURE
from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.layout import ProtocolLayout, Shape
from specwire.generated.refusal import explain_decode
from specwire.generated.shapes import class_of
from specwire.generator import ir
from specwire.generator.compare.ir_file import read_ir
from specwire.generator.emit.java import EMITTER as JAVA
from specwire.generator.emit.reference.telling import told_by
from specwire.generator.emit.wireshark.layout import protocol_table
from specwire.generator.packages import package_files
from specwire.generator.passes.shapes import role_letters, takes_sender
from tests.examples import examples
from tests.generated.column_agreement import column_build, row_by_row
from tests.generated.column_rows import batch_of
from tests.generated.java_rows import compile_decoders, rows_of
from tests.generator.clone import EXPECTED, GRAMMAR, PROFILE, SENDERS, SYNCED, TWO, clone
from tests.generator.compiling import compiled
from tests.generator.test_native_compile import compiled as compiled_natively
from tests.house.repository import has_compiler

NAME = "clone_of_senders"
FRAMES = pa.list_(pa.binary())
CASES = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck)
)  # fmt: skip
each_case = pytest.mark.parametrize(
    ("frames", "sender", "expected"), EXPECTED, ids=[f"{len(f)}-{f[0]!r}-{s}" for f, s, _ in EXPECTED]
)


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> ir.Protocol:
    return clone(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def package(protocol: ir.Protocol, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Import the generated package, compiled if a compiler is available."""
    home = tmp_path_factory.mktemp("packages")
    folder = home / NAME
    folder.mkdir()
    for path, text in package_files([protocol]).items():
        (folder / Path(path).name).write_text(text, encoding="utf-8")
    if has_compiler() and os.environ.get(PURE) != "1":
        compiled_natively(folder / "_native.pyx", NAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.syspath_prepend(str(home))
        yield importlib.import_module(NAME)
        for loaded in [one for one in sys.modules if one.split(".")[0] == NAME]:
            del sys.modules[loaded]


def outcome(decode: Any, frames: Sequence[Any], sender: str | None, **more: Any) -> str:
    """Return the class of the message, or the end of the error."""
    try:
        return type(decode(frames, sender=sender, **more)).__name__
    except DecodeError as error:
        return f"{error.expected}, found {error.found}"


@each_case
def test_codec(package: ModuleType, frames: list[bytes], sender: str | None, expected: str) -> None:
    for build in (package, package.codec):
        assert outcome(build.decode, frames, sender) == expected
        assert outcome(build.decode, frames, sender, strict=True) == expected
        assert outcome(build.decode, [bytearray(frame) for frame in frames], sender) == expected


def test_an_omitted_sender_is_an_unknown_sender(package: ModuleType) -> None:
    assert type(package.decode(SYNCED)).__name__ == "Kvsync"
    with pytest.raises(DecodeError, match="a sender: P for Put or S for Give"):
        package.decode(TWO)


def test_the_compiled_codec_decodes_every_valid_message(package: ModuleType) -> None:
    """It passes other frames to the pure codec, which this test removes."""
    if not package.ACCELERATED:
        pytest.skip("the package is not compiled here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package.codec, "decode", None)
        for frames, sender, expected in EXPECTED:
            if "found" not in expected:
                assert outcome(package.decode, frames, sender) == expected


@each_case
def test_slow_path_agrees(
    package: ModuleType, frames: list[bytes], sender: str | None, expected: str
) -> None:
    error = explain_decode(package.layout.LAYOUT, frames, sender=sender)
    assert error.expected.startswith("frames that both" if "found" not in expected else "a sender: ")


@pytest.mark.parametrize("build", ["numpy", "compiled"])
def test_columns(package: ModuleType, build: str) -> None:
    rows, senders, expected = zip(*EXPECTED, strict=True)
    with column_build(build):
        batch = package.columns.decode(pa.array(rows, FRAMES), pa.array(senders, pa.string()))
        alone = package.columns.decode(pa.array(rows, FRAMES))
    assert batch.column("_message").to_pylist() == [None if "found" in text else text for text in expected]
    for error, text in zip(batch.column("_error").to_pylist(), expected, strict=True):
        assert error is None if "found" not in text else text in error["text"]
    for name in batch.schema.names:
        assert batch.column(name).to_pylist() == row_by_row(package, rows, senders).column(name).to_pylist()
    unknown = {id(frames): text for frames, sender, text in EXPECTED if sender is None}
    assert alone.column("_message").to_pylist() == [
        None if "found" in unknown[id(frames)] else unknown[id(frames)] for frames in rows
    ]


def test_java(protocol: ir.Protocol, tmp_path: Path) -> None:
    source = tmp_path / "demo" / "Decode.java"
    source.parent.mkdir()
    text = JAVA.emit(protocol)
    assert isinstance(text, str)
    source.write_text(text, encoding="utf-8")
    classes = compile_decoders([source], tmp_path / "classes")
    rows = rows_of(classes, [("demo", sender, frames) for frames, sender, _ in EXPECTED])
    for row, (_, _, expected) in zip(rows, EXPECTED, strict=True):
        assert row["_message"] == (None if "found" in expected else expected)
        assert row["_error"] is None if "found" not in expected else expected in row["_error"]["text"]


def test_an_encoded_message_is_decoded_from_every_role_that_sends_it(package: ModuleType) -> None:
    """KVPUB may have the frames of KVSYNC, which no peer sends; NOTE may not have those of STOP, as the server sends both."""
    for classes in (package, package.codec):
        published = classes.Kvpub(key=b"k", uuid=b"\0", body=b"b")
        assert published.encode() == published.encode(strict=True) == SYNCED
        assert classes.decode(SYNCED, sender="P") == published
        note = classes.Note(topic=b"STOP", first=b"1", second=b"2", third=b"3")
        for strict in (False, True):
            with pytest.raises(EncodeError, match="expected what does not make it Stop"):
                note.encode(strict=strict)
    assert package.columns.encode(batch_of(package, [published])).to_pylist() == [SYNCED]
    with pytest.raises(EncodeError, match="expected what does not make it Stop"):
        package.columns.encode(batch_of(package, [note]))


def test_a_message_of_unknown_sender_must_not_look_like_one_that_needs_a_sender(tmp_path: Path) -> None:
    """A and B need a sender. The senders of C, which can have the frames of both, are unknown."""
    grammar = GRAMMAR_OF_THREE
    protocol = compiled(tmp_path, grammar, PROFILE_OF_THREE).protocol
    folder = tmp_path / "packages" / "three_shapes"
    folder.mkdir(parents=True)
    for path, text in package_files([protocol]).items():
        (folder / Path(path).name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder.parent))
        module = importlib.import_module("three_shapes")
        assert module.C(kind=b"y", body=b"b").encode() == [b"y", b"b"]
        with pytest.raises(EncodeError, match=r"C\.kind.*expected what does not make it A"):
            module.C(kind=b"x", body=b"b").encode()
        with pytest.raises(DecodeError, match="a sender: P for A or S for B, found none"):
            module.decode([b"x", b"b"])
    del sys.modules["three_shapes"]


GRAMMAR_OF_THREE = """
demo = *( A / B / C )
A    = word body
B    = word body
C    = kind body
word = "x"      ; a ZeroMQ frame
kind = *OCTET   ; a ZeroMQ frame
body = *OCTET   ; a ZeroMQ frame
"""
PROFILE_OF_THREE = """
name = "demo"
[roles.P]
name = "peer"
socket = "DEALER"
[roles.S]
name = "server"
socket = "ROUTER"
[message.A]
senders = ["P"]
[message.B]
senders = ["S"]
"""


def test_strategies(package: ModuleType) -> None:
    drawn = package.strategies

    @CASES
    @given(st.sampled_from("PS").flatmap(lambda role: st.tuples(st.just(role), drawn.messages(sender=role))))
    def check_messages(row: tuple[str, Any]) -> None:
        role, sent = row
        assert package.decode(sent.encode(), sender=role) == sent

    @CASES
    @given(drawn.malformed_frames())
    def check_malformed(frames: list[bytes]) -> None:
        for sender in SENDERS:
            with pytest.raises(DecodeError):
                package.decode(frames, sender=sender)

    check_messages()
    check_malformed()


def test_constructs_know_no_sender(package: ModuleType) -> None:
    """`parse` takes no sender: like `decode` without one, it returns the message with most constant octets."""
    constructs: Any = importlib.import_module(f"{NAME}.constructs")
    for frames, sender, expected in EXPECTED:
        if sender is None and "found" not in expected:
            assert constructs.parse(frames)[0] == expected


def test_wireshark_table(protocol: ir.Protocol) -> None:
    """Dissectors identify senders by their sockets; messages of an undeclared role may come from any sender."""
    names = [message.class_name for message in protocol.messages]
    table: Any = protocol_table(protocol)
    assert {names[row["message"] - 1]: row["senders"] for row in table["shapes"]} == {
        "Put": ("P",), "Give": ("S",), "Kvpub": ("P",), "Kvsync": ("S",), "Note": ("P", "S"), "Stop": ("S",), "Open": (),
    }  # fmt: skip
    roles = tuple(role for role in protocol.roles if role.letter != "S")
    table = protocol_table(msgspec.structs.replace(protocol, roles=roles))
    assert {names[row["message"] - 1] for row in table["shapes"] if row["senders"]} == {"Put", "Kvpub"}


def test_reference_names_the_sender_where_nothing_else_tells(protocol: ir.Protocol) -> None:
    roles = {role.letter: role.name for role in protocol.roles}
    told = {message.name: told_by(message, roles) for message in protocol.messages}
    assert told["PUT"] == ("2 frames, sent by peer",)
    assert told["KVSYNC"] == ("3 frames, frame 2 is 00",)


def test_shapes_of_the_ir(protocol: ir.Protocol) -> None:
    shapes = {message.name: message.shapes for message in protocol.messages}
    assert {name: [shape.senders for shape in found] for name, found in shapes.items()} == {
        "PUT": [("P",)], "GIVE": [("S",)], "KVPUB": [("P",)], "KVSYNC": [("S",)], "NOTE": [("P", "S")],
        "STOP": [("S",)], "OPEN": [()],
    }  # fmt: skip
    assert {name for name, found in shapes.items() if any(shape.needs_sender for shape in found)} == {
        "PUT",
        "GIVE",
    }
    assert takes_sender(protocol) and role_letters(protocol) == ("P", "S", "M")


def test_ir_of_version_2_is_upgraded(protocol: ir.Protocol) -> None:
    """In version 2, only shapes that need a sender have senders."""
    old = msgspec.to_builtins(protocol)
    old["ir_version"] = 2
    for message in old["messages"]:
        for shape in message["shapes"]:
            if not shape.pop("needs_sender"):
                shape["senders"] = ()
    assert read_ir(msgspec.json.encode(old)) == protocol


def test_without_messages_that_need_a_sender_decode_takes_none(tmp_path: Path) -> None:
    """Then no back end uses the senders: only octets tell KVPUB and KVSYNC apart."""
    grammar = "\n".join(line for line in GRAMMAR.split("\n") if not line.startswith("GIVE"))
    protocol = compiled(
        tmp_path,
        grammar.replace(" / GIVE", ""),
        PROFILE.replace(' "GIVE",', "").replace('[message.GIVE]\nsenders = ["S"]\n', ""),
    ).protocol
    assert not takes_sender(protocol)
    files = {Path(path).name: text for path, text in package_files([protocol]).items()}
    assert "sender" not in files["codec.py"] and "'P'" not in files["layout.py"]
    table: Any = protocol_table(protocol)
    assert not any(row["senders"] for row in table["shapes"])


@CASES
@given(data=st.data())
def test_a_sender_never_gets_what_it_does_not_send(
    package: ModuleType, protocol: ir.Protocol, data: Any
) -> None:
    senders = {message.class_name: message.senders for message in protocol.messages}
    frames = data.draw(package.strategies.frames() | package.strategies.mutated_frames())
    for role in "PSM":
        for decode in (package.decode, package.codec.decode):
            found = outcome(decode, frames, role)
            if senders.get(found):
                assert role in senders[found]


def test_layouts_of_version_0_1_packages_still_work() -> None:
    """Only their shapes that need a sender have senders, and their layouts have no roles."""
    old = ProtocolLayout(
        "demo", "Demo", (), (), 0,
        (
            ("Sync", Shape((("00", True),), 2, 2)),
            ("Put", Shape((), 2, 2, ("P",))),
            ("Give", Shape((), 2, 2, ("S",))),
        ),
    )  # fmt: skip
    assert old.takes_sender
    assert [class_of(old, [b"\0", b"b"], sender) for sender in SENDERS] == ["Sync"] * 5
    assert [class_of(old, TWO, sender) for sender in "PS"] == ["Put", "Give"]
    for sender in ("M", "X", None):
        with pytest.raises(LookupError):
            class_of(old, TWO, sender)
