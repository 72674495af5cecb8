"""Machines for tests: emitted from the dialog rules of specifications, imported, and shown traces.

Each rule of a message is shortened to one octet: a session looks at a message's class and key only.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from specwire.generated.errors import Violation
from specwire.generated.session import DialogSession
from specwire.generator import ir
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.emit.files import format_sources
from specwire.generator.emit.machine import EMITTER
from specwire.generator.ir.dialogs import DialogSettings
from specwire.generator.ir.names import class_name
from specwire.generator.passes.dialog import build_dialogs
from specwire.generator.passes.resolve import resolve_names
from specwire.generator.targets import Target

FILEMQ = """
filemq-protocol = open-peering *use-peering [ close-peering ]
open-peering    = C:OHAI ( S:OHAI-OK / error )
use-peering     = C:ICANHAZ ( S:ICANHAZ-OK / error )
                / C:NOM
                / S:CHEEZBURGER
                / C:HUGZ S:HUGZ-OK
                / S:HUGZ C:HUGZ-OK
close-peering   = C:KTHXBAI / S:KTHXBAI
error           = S:SRSLY / S:RTFM / S:WAT
"""
FLUX = "flux = C:REQUEST *S:RESPONSE / S:EVENT / C:CONTROL\n"
NORFAB = """
client = [ C:OPEN B:OPEN ] *( C:POST *B:RESPONSE / C:GET *B:RESPONSE / B:EVENT )
worker = [ W:OPEN B:OPEN ] W:READY *( B:POST *W:RESPONSE / B:GET *W:RESPONSE / W:KEEPALIVE / B:KEEPALIVE )
         [ W:DISCONNECT / B:DISCONNECT ]
"""
STEPS = "d = *( C:ASK S:WAIT S:TELL / C:BID S:BID-OK )\n"

SETTINGS: dict[str, tuple[str, tuple[DialogSettings, ...]]] = {
    "filemq": (
        FILEMQ,
        (DialogSettings("peering", "filemq-protocol", ("C", "S"), error="error"),),
    ),
    "flux": (
        FLUX,
        (
            DialogSettings(
                "rpc",
                "flux",
                ("C", "S"),
                repeat=True,
                symmetric=True,
                key=("matchtag",),
                keyless={"matchtag": 0},
                unanswered={"flags": 4},
            ),
        ),
    ),
    "norfab": (
        NORFAB,
        (
            DialogSettings("client", "client", ("C", "B"), key=("uuid",)),
            DialogSettings("worker", "worker", ("W", "B"), key=("uuid",)),
        ),
    ),
    "steps": (STEPS, (DialogSettings("steps", "d", ("C", "S"), key=("tag",)),)),
    "silent": ("", ()),
}


@cache
def source_of(protocol: str) -> str:
    """Return the formatted source of the machine of one of `SETTINGS`."""
    text, settings = SETTINGS[protocol]
    messages = list(dict.fromkeys(re.findall(r"[CSBW]:([A-Z][A-Z-]*)", text)))
    rules = (text or "nothing = %x00\n") + "".join(f"{message} = %x01\n" for message in messages)
    diagnostics = Diagnostics()
    rulelist = parse_grammar(Source("input.abnf", rules), dialect="zeromq", diagnostics=diagnostics)
    grammar = resolve_names([rulelist], diagnostics=diagnostics)
    classes = {message: class_name(message) for message in messages}
    dialogs = build_dialogs(grammar, settings, classes, diagnostics)
    diagnostics.raise_errors()
    described = ir.Protocol(
        ir_version=ir.IR_VERSION,
        name=protocol,
        title=protocol.upper(),
        edition="test",
        source="",
        digest="0" * 64,
        roles=(ir.Role("C", "client", "DEALER"),),
        messages=(),
        selectors=(),
        rules=(),
        flags=(),
        enums=(),
        constants=(),
        timers=(("heartbeat", 1.0),) if dialogs else (),
        answers=(),
        unexpected=(),
        dialogs=dialogs,
    )
    return format_sources(Target("machine", EMITTER).emit(described))["machine.py"]


@cache
def machine(protocol: str) -> ModuleType:
    """Import the machine of one of `SETTINGS`, from a file that is gone when this returns."""
    name = f"machine_of_{protocol}"
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.py")
        path.write_text(source_of(protocol), encoding="utf-8")
        spec = spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Fields:
    """Whatever key fields a message of the test has."""

    matchtag: int = 1
    flags: int = 0
    uuid: str = "u"
    tag: int = 1


def message(name: str, **fields: Any) -> object:
    """Return a message of the class `name`, or that the grammar's `name` has."""
    return type(class_name(name) if name.isupper() else name, (Fields,), {})(**fields)


def watch(session: DialogSession, trace: str, **fields: Any) -> list[Violation]:
    """Show `session` a trace such as ``C:OHAI S:OHAI-OK``; return what it finds."""
    labels = (label.partition(":") for label in trace.split())
    found = (session.observe(sender, message(name, **fields)) for sender, _, name in labels)
    return [violation for violation in found if violation is not None]
