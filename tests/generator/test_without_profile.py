"""A published grammar alone, nothing declared: ZRE's gives the layout that its package has and reads its vectors.

So do small specifications of the family that nobody has seen: what they mean on the wire was worked out by hand.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generator import ir
from specwire.generator.diagnostics import SpecError
from specwire.generator.documents.importing import import_document
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import Compilation, compile_protocol
from tests.generator.compiling import compiled
from tests.generator.documents import write_document
from tests.generator.test_layouts import generated

VECTORS = Path(__file__).parents[1] / "vectors" / "zre-rfc36.json"
ZRE = Path(__file__).parents[2] / "grammars" / "zre"


def wire_layout(protocol: ir.Protocol) -> list[dict[str, Any]]:
    """What a peer can see: messages, tags and parts, without words, defaults and who sends what."""
    shown: list[dict[str, Any]] = []
    for message in protocol.messages:
        parts = msgspec.to_builtins(message.parts)
        for part in parts:
            for field in part.get("fields", [part.get("field")]):
                for key in ("doc", "unit", "default", "required", "line"):
                    field.pop(key)
        shown.append({"name": message.name, "tags": message.tags, "parts": parts})
    return shown


def test_zre_compiles_from_its_grammar_alone(tmp_path: Path) -> None:
    """The same messages, octet for octet; no layout had to be assumed."""
    folder = tmp_path / "zre"
    folder.mkdir()
    shutil.copyfile(ZRE / "grammar.abnf", folder / "grammar.abnf")
    bare, declared = compile_protocol(folder), compile_protocol(ZRE)
    assert wire_layout(bare.protocol) == wire_layout(declared.protocol)
    assert [message.class_name for message in bare.protocol.messages] == [
        "Hello", "Whisper", "Shout", "Join", "Leave", "Ping", "PingOk",
    ]  # fmt: skip
    assert not [warning for warning in bare.warnings if warning.code.startswith("W4")]


def assumed(compilation: Compilation) -> list[str]:
    return [f"{found.code} {found.span}" for found in compilation.warnings if found.code.startswith("W4")]


def test_zre_reads_and_writes_its_vectors_without_a_profile(tmp_path: Path) -> None:
    folder = tmp_path / "zre"
    folder.mkdir()
    shutil.copyfile(ZRE / "grammar.abnf", folder / "grammar.abnf")
    with generated(tmp_path / "packages", compile_protocol(folder).protocol) as package:
        for vector in json.loads(VECTORS.read_text("utf-8")):
            frames = [bytes.fromhex(frame) for frame in vector["frames_hex"]]
            message = package.decode(frames)
            assert fold(type(message).__name__) == fold(vector["name"].partition("-")[0])
            for name, value in vector["fields"].items():
                assert plain(getattr(message, name)) == value, (vector["name"], name)
            assert message.encode() == frames


def fold(name: str) -> str:
    return name.replace("_", "").lower()


def plain(value: Any) -> Any:
    """A field's value as the vectors write it: octets in hexadecimal, pairs as a dictionary."""
    match value:
        case bytes():
            return value.hex()
        case ((str(), str()), *_):
            return dict(value)
        case tuple():
            return [plain(item) for item in value]
    return value


LINK = """
link       = greeting *( message / command )
greeting   = signature revision kind
signature  = %xFF padding %x7F
padding    = 8OCTET
revision   = %x01
kind       = pair / push
pair       = %d0
push       = %d8
message    = *more-part last-part
more-part  = ( %x01 short-size / %x03 long-size ) body
last-part  = ( %x00 short-size / %x02 long-size ) body
command    = command-size %d4 %s"PING" body
command-size = %x04 short-size / %x06 long-size
short-size = OCTET
long-size  = 8OCTET
body       = *OCTET
"""


def test_a_stream_with_short_and_long_sizes(tmp_path: Path) -> None:
    """ZMTP-like: sizes in one octet up to 255, in eight beyond; the first octet says which, and what follows."""
    compilation = compiled(tmp_path, LINK)
    assert assumed(compilation) == []
    long = bytes(range(256))
    octets = b"".join((
        b"\xff" + bytes(8) + b"\x7f" + b"\x01" + b"\x08",
        b"\x01\x02hi",
        b"\x02" + (256).to_bytes(8, "big") + long,
        b"\x00\x00",
        b"\x04\x06" + b"\x04PING" + b"?",
    ))  # fmt: skip
    with generated(tmp_path / "packages", compilation.protocol) as package:
        sent = [
            package.Greeting(kind=8),
            package.MorePart(body=b"hi"),
            package.LastPart(body=long),
            package.LastPart(body=b""),
            package.Command(body=b"?"),
        ]
        assert b"".join(map(package.stream.frame, sent)) == octets
        for step in (1, 7, len(octets)):
            decoder = package.stream.StreamDecoder(max_octets=1000)
            received = [
                one for at in range(0, len(octets), step) for one in decoder.feed(octets[at : at + step])
            ]
            decoder.eof()
            assert received == sent


OLDER_LINK = """
link        = greeting *( more-part / last-part )
greeting    = %xFF padding %x7F %x01 kind identity
padding     = 8OCTET
kind        = %x00 / %x08
identity    = last-short body
more-part   = ( more-short / more-long ) body
last-part   = ( last-short / last-long ) body
more-short  = %x01 OCTET
more-long   = %x03 8OCTET
last-short  = %x00 OCTET
last-long   = %x02 8OCTET
body        = *OCTET
"""


def test_sizes_that_only_their_shape_tells(tmp_path: Path) -> None:
    """The same without a word about sizes: each is an assumption, and a flags octet stands before the length."""
    compilation = compiled(tmp_path, OLDER_LINK)
    assert [code.split()[0] for code in assumed(compilation)] == ["W402"] * 3
    long = bytes(range(256))
    octets = b"".join((
        b"\xff" + bytes(8) + b"\x7f\x01\x08" + b"\x00\x02me",
        b"\x01\x02hi",
        b"\x03" + (256).to_bytes(8, "big") + long,
        b"\x00\x00",
    ))  # fmt: skip
    with generated(tmp_path / "packages", compilation.protocol) as package:
        sent = [
            package.Greeting(kind=8, body=b"me"),
            package.MorePart(body=b"hi"),
            package.MorePart(body=long),
            package.LastPart(body=b""),
        ]
        assert b"".join(map(package.stream.frame, sent)) == octets
        decoder = package.stream.StreamDecoder(max_octets=1000)
        assert [one for octet in octets for one in decoder.feed(bytes([octet]))] == sent
        decoder.eof()


TRADE = """# Trade Protocol

A REQUEST command consists of 4 or more frames:

```
REQUEST command
---------------
Frame 0: Empty (zero bytes)
Frame 1: "TRADE1" (six bytes, representing Trade/Client v1)
Frame 2: Service name (printable string)
Frames 3+: Request body (opaque binary)
```

A REPLY command consists of 4 or more frames:

```
REPLY command
-------------
Frame 0: Empty (zero bytes)
Frame 1: "TRADE1" (six bytes, representing Trade/Client v1)
Frame 2: Service name (printable string)
Frames 3+: Reply body (opaque binary)
```

A READY command consists of 4 frames:

```
READY command
-------------
Frame 0: Empty (zero bytes)
Frame 1: "TRADEW" (six bytes, representing Trade/Worker v1)
Frame 2: 0x01 (one byte, representing READY)
Frame 3: Service name (printable string)
```

A HEARTBEAT command consists of 3 frames:

```
HEARTBEAT command
-----------------
Frame 0: Empty (zero bytes)
Frame 1: "TRADEW" (six bytes, representing Trade/Worker v1)
Frame 2: 0x04 (one byte, representing HEARTBEAT)
```

## Trade/Client

```
Repeat:
    C: REQUEST
    B: REPLY
    ...
```

## Trade/Worker

```
W: READY
Repeat:                 Repeat:
    B: HEARTBEAT            W: HEARTBEAT
    ...                     ...
```
"""


def test_frame_tables_whose_messages_are_known_by_their_shape_and_by_who_sends_them(tmp_path: Path) -> None:
    """Majordomo-like: request and reply look the same, and have a name where a worker's commands have a number."""
    folder = tmp_path / "trade"
    write_imported(import_document(write_document(tmp_path, TRADE), "trade", folder=folder), folder)
    compilation = compile_protocol(folder)
    assert {code.split()[0] for code in assumed(compilation)} <= {"W410"}
    asked = [b"", b"TRADE1", b"echo", b"hello", b"\x00\xff"]
    with generated(tmp_path / "packages", compilation.protocol) as package:
        for sender, name in (("C", "Request"), ("B", "Reply")):
            message = package.decode(asked, sender=sender)
            assert (type(message).__name__, message.service) == (name, "echo")
            assert message.encode() == asked
        assert package.Ready(service="echo").encode() == [b"", b"TRADEW", b"\x01", b"echo"]
        assert package.decode([b"", b"TRADEW", b"\x01", b"echo"]) == package.Ready(service="echo")
        assert package.decode([b"", b"TRADEW", b"\x04"]) == package.Heartbeat()
        refused: list[tuple[list[bytes], str | None]] = [
            (asked, None),
            (asked, "W"),
            ([b"", b"TRADEW", b"\x01"], None),
            ([b"", b"TRADEW", b"\x02", b"echo"], None),
            ([b"", b"TRADE1"], "C"),
        ]
        for frames, by in refused:
            with pytest.raises(DecodeError):
                package.decode(frames, sender=by)
        array = pa.array([asked, asked, asked, None], pa.list_(pa.binary()))
        rows = package.columns.decode(array, pa.array(["C", "B", "", None]))
        assert rows.column("_message").to_pylist() == ["Request", "Reply", None, None]
        assert [error and error["kind"] for error in rows.column("_error").to_pylist()] == [
            None, None, "tag", "frames",
        ]  # fmt: skip
        with pytest.raises(ValueError, match="1 senders of 4 messages"):
            package.columns.decode(array, pa.array(["C"]))


WORDS = """
store  = *( set / value / quit )
set    = %s"SET" SP key SP ttl CRLF data
value  = %s"VALUE" SP key CRLF
quit   = %s"QUIT" CRLF
key    = 1*VCHAR
ttl    = 1*DIGIT
data   = *OCTET
"""


def test_commands_in_words_with_blanks_between(tmp_path: Path) -> None:
    """A text ends where the constant behind it stands first: none of its characters can begin that."""
    compilation = compiled(tmp_path, WORDS)
    assert assumed(compilation) == []
    with generated(tmp_path / "packages", compilation.protocol) as package:
        stored = package.Set(key="a", ttl="60", data=b"x \r\n\x00")
        assert stored.encode() == [b"SET a 60\r\nx \r\n\x00"]
        assert package.decode(stored.encode()) == stored
        assert package.decode([b"VALUE k\r\n"]) == package.Value(key="k")
        assert package.decode([memoryview(b"QUIT\r\n")]) == package.Quit()
        for octets, place in (
            (b"SET a", ("key", 4)),
            (b"SET a 60\r", ("ttl", 6)),
            (b"VALUE \xff\r\n", ("key", 6)),
        ):
            with pytest.raises(DecodeError) as refused:
                package.decode([octets])
            assert ((refused.value.field, refused.value.offset), refused.value.kind) == (place, "text")
        for key in ("a b", " "):
            with pytest.raises(EncodeError) as unfit:
                package.Set(key=key, ttl="1", data=b"").encode()
            assert (unfit.value.field, unfit.value.kind) == ("key", "text")


def test_a_text_that_can_hold_what_follows_it(tmp_path: Path) -> None:
    """It ends where the last octets of the frame begin; before a value of any size it has no end."""
    compilation = compiled(tmp_path, 'A = "A" note SP\nnote = *( VCHAR / SP )\n')
    with generated(tmp_path / "packages", compilation.protocol) as package:
        assert package.decode([b"A b c "]) == package.A(note=" b c")
        assert package.A(note=" b c").encode() == [b"A b c "]
    with pytest.raises(SpecError) as caught:
        compiled(tmp_path, 'A = "A" note SP rest\nnote = *( VCHAR / SP )\nrest = *OCTET\n')
    assert [found.code for found in caught.value.diagnostics if found.code.startswith("E")] == ["E409"]


def test_a_message_that_is_whatever_frames_there_are(tmp_path: Path) -> None:
    compilation = compiled(tmp_path, "cargo = *item\nitem = FRAME\n", 'name = "demo"\nmessages = ["cargo"]\n')
    with generated(tmp_path / "packages", compilation.protocol) as package:
        for frames in ([], [b""], [b"a", b"", b"\x00"]):
            message = package.decode(frames)
            assert message == package.Cargo(item=tuple(frames))
            assert message.encode() == frames
