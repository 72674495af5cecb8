"""Classes for the messages and records of a protocol, without a package: the naive interpreter encodes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from specwire.generated.layout import ProtocolLayout
from specwire.generated.unfit import explain_encode
from specwire.generator import ir
from specwire.generator.emit.layout import EMITTER
from tests.generator import interpreter
from tests.generator.interpreter import Refused
from tests.generator.test_layouts import contents_of


def laid_out(of: ir.Protocol) -> ProtocolLayout:
    """Return the layout of a protocol as its package has it."""
    source = EMITTER.emit(of)
    assert isinstance(source, str)
    found: dict[str, Any] = {}
    exec(compile(source, "layout.py", "exec"), found)  # noqa: S102
    layout: ProtocolLayout = found["LAYOUT"]
    return layout


def named(of: ir.Protocol, class_name: str) -> ir.Message:
    """Return the message of a class."""
    (found,) = (message for message in of.messages if message.class_name == class_name)
    return found


def stand_ins(of: ir.Protocol) -> Any:
    """Return classes for messages and records that take any attributes."""
    names = {message.class_name: message.name for message in of.messages}

    def encode(self: Any, *, strict: bool = False) -> list[bytes]:
        try:
            return interpreter.encode(of, named(of, type(self).__name__), contents_of(of, self))
        except Refused:
            raise explain_encode(laid_out(of), self, strict) from None

    class Classes(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            own = {"NAME": names.get(name, name), "encode": encode}
            return self.setdefault(name, type(name, (SimpleNamespace,), own))

        def __getattr__(self, name: str) -> Any:
            return self[name]

    return Classes()
