"""Emitter of ``Decode.java``: a Spark function that decodes captured messages inside the JVM.

The class holds the plan of the protocol as data: each operation is an object of a class of ``support/java``, which
reads octets, writes values into a row, and reports faults. Rows are those of ``columns.py``. Checks that only strict
decoding makes are omitted. A protocol with a checksum that a Python function computes has no such decoder.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator import ir
from specwire.generator.emit.java_operations import PythonChecksum, message_call
from specwire.generator.emit.java_source import (
    Call,
    comment,
    imported,
    java_list,
    java_string,
    method_name,
    package_name,
)
from specwire.generator.emit.tables import columns
from specwire.generator.emit.write import Emitter, notice, render
from specwire.generator.passes.shapes import takes_sender
from specwire.generator.plan.layouts import layout_of
from specwire.generator.support import layout
from specwire.generator.support.lowering import lower

SUPPORT = (
    "Bits", "Checksum", "Choose", "Coding", "Count", "Decoder", "Enclosed", "Expect", "Extent", "Field", "Flags",
    "Frame", "Frames", "Function", "Keep", "Loop", "Mark", "Message", "Nest", "Number", "Operation", "Optional",
    "Pad", "Presence", "Present", "Protocol", "Region", "Selector", "Shape", "Sized", "Split", "Store", "Struct",
    "Tag", "TakeOctets", "TakeText", "TakeUuid", "Verify", "When", "Word",
)  # fmt: skip
"""Classes of which a plan consists."""

SPARK = (
    "org.apache.spark.sql.catalyst.InternalRow",
    "org.apache.spark.sql.catalyst.util.ArrayData",
    "org.apache.spark.unsafe.types.UTF8String",
)


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a protocol's decoder; empty if Java cannot decode the protocol."""
    whole = layout_of(protocol)
    plan = lower(whole)
    methods = [method_name(message.class_name) for message in plan.messages]
    decoder = Call("new Decoder", (_protocol(whole, methods),))
    try:
        calls = [
            message_call(
                message, plan.records, whole.messages[number], columns(protocol.messages[number], protocol)
            )
            for number, message in enumerate(plan.messages)
        ]
    except PythonChecksum:
        return ""
    bodies = [
        (name, "\n".join(call.lines(2, "return ", ";"))) for name, call in zip(methods, calls, strict=True)
    ]
    source = "\n".join(decoder.lines(1, "private static final Decoder DECODER = ", ";"))
    known = {"java.util.List", *SPARK, *(f"specwire.generated.java.{name}" for name in SUPPORT)}
    by_sender = takes_sender(protocol)
    used = ["ArrayData Decoder Function InternalRow Message", "UTF8String" if by_sender else ""]
    return render(
        "decode.java.j2",
        title=comment(protocol.edition)[0],
        notice=comment(notice(protocol)),
        package=package_name(protocol.name),
        imports=imported(known, [source, *(body for _, body in bodies), *used]),
        by_sender=by_sender,
        decoder=source,
        messages=bodies,
    )


def _protocol(whole: layout.ProtocolLayout, methods: Sequence[str]) -> Call:
    """Return the expression for a protocol: what distinguishes its messages, and the methods that make them."""
    if whole.shapes:
        rows = java_list(_shape(name, shape) for name, shape in whole.shapes)
        kind, selection = "ofShapes", [java_list(map(java_string, whole.roles)), rows]
    elif any(message.patterns for message in whole.messages):
        kind, selection = "ofPatterns", []
    else:
        selectors = (
            Call("new Selector", (str(frame), "Selector.ALL" if octets is None else str(octets)))
            for frame, octets in whole.selectors
        )
        kind, selection = "ofTags", [java_list(selectors)]
    names = (java_string(whole.protocol), java_string(whole.edition), f"0x{whole.announcing:02x}")
    call = Call(f"Protocol.{kind}", (*names, *selection, *(f"{method}()" for method in methods)))
    call = call.followed(".folded()") if whole.folded else call
    return call.followed(f".nested({whole.max_depth})") if whole.max_depth else call


def _shape(class_name: str, shape: layout.Shape) -> Call:
    heads = (
        Call("new Shape.Head", (java_string(octets), str(whole).lower())) for octets, whole in shape.frames
    )
    return Call(
        "new Shape",
        (
            java_string(class_name), str(shape.least), str(-1 if shape.most is None else shape.most),
            java_list(map(java_string, shape.senders)), str(shape.needs_sender).lower(), *heads,
        ),
    )  # fmt: skip


EMITTER = Emitter("Decode.java", emit)
