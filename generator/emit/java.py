"""Emitter of ``Decode.java``: a Spark function that decodes captured messages inside the JVM.

The class contains the layout of the messages as data; ``support/java`` decodes by it and reports
faults. Most messages also have a method that reads a valid message several times as fast
(``java_reading``). Rows are those of ``columns.py``: the columns of each message in wire order,
without implied fields. The layout contains only what decoding needs, not what strict decoding
checks.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.java_layout import message_call, selection_calls
from specwire.generator.emit.java_reading import readings, tag_statements
from specwire.generator.emit.java_source import (
    Call,
    comment,
    imported,
    java_string,
    method_name,
    package_name,
)
from specwire.generator.emit.python import announcing_bits
from specwire.generator.emit.write import Emitter, notice, render
from specwire.generator.passes.shapes import takes_sender

SUPPORT = (
    "Constant", "Cursor", "Decoder", "Field", "Frame", "Function", "Json", "Keyword", "ListOf", "Message", "Octets", "Padding", "Pairs", "Part",
    "Presence", "Protocol", "Rest", "Selector", "Shape", "Size", "Span", "Stack", "Struct", "Tag", "Text", "Union",
    "Unsigned",
)  # fmt: skip
"""Classes of which a layout consists."""

SPARK = (
    "org.apache.spark.sql.catalyst.InternalRow",
    "org.apache.spark.sql.catalyst.util.ArrayData",
    "org.apache.spark.unsafe.types.UTF8String",
)

SENDER = (
    "",
    "    /** Decodes one message whose sender is unknown. */",
    "    public static InternalRow invoke(ArrayData frames) {",
    "        return invoke(frames, null);",
    "    }",
    "",
    "    /** Decodes a message of one frame whose sender is unknown. */",
    "    public static InternalRow invoke(byte[] frame) {",
    "        return invoke(frame, null);",
    "    }",
    "",
    "    @Override",
    "    protected boolean takesSender() {",
    "        return true;",
    "    }",
)
"""Additional methods of a function that accepts the sender."""


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a protocol's decoder."""
    methods = {message.class_name: method_name(message.class_name) for message in protocol.messages}
    kind, selection = selection_calls(protocol)
    whole = Call(
        f"Protocol.{kind}",
        (
            java_string(protocol.name), java_string(protocol.edition), f"0x{announcing_bits(protocol):02x}", *selection,
            *(f"{name}()" for name in methods.values()),
        ),
    )  # fmt: skip
    made = Call("new Decoder", (whole,))
    layout = "\n".join(made.lines(1, "private static final Decoder DECODER = ", ";"))
    by_sender = takes_sender(protocol)
    bodies = [
        (name, "\n".join(message_call(message, protocol).lines(2, "return ", ";")))
        for message, name in zip(protocol.messages, methods.values(), strict=True)
    ]
    quick = [
        (f"read{reading.message.class_name}", reading.told, reading.statements)
        for reading in readings(protocol)
    ]
    known = {"java.util.List", *SPARK, *(f"specwire.generated.java.{name}" for name in SUPPORT)}
    sources = [layout, *(body for _, body in bodies), "Cursor Decoder Function InternalRow Message"]
    sources += ["ArrayData UTF8String" if by_sender else "ArrayData"]
    return render(
        "decode.java.j2",
        title=comment(protocol.edition)[0],
        notice=comment(notice(protocol)),
        package=package_name(protocol.name),
        imports=imported(known, sources),
        sender_parameter=", UTF8String sender" if by_sender else "",
        more=SENDER if by_sender else (),
        layout=layout,
        tags=tag_statements(protocol),
        quick=quick,
        messages=bodies,
    )


EMITTER = Emitter("Decode.java", emit)
