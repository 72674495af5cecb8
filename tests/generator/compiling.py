"""Compile a small protocol that a test writes down: its grammar, and a profile where it needs one."""

from __future__ import annotations

from pathlib import Path

from specwire.generator import ir
from specwire.generator.diagnostics import SpecError
from specwire.generator.pipeline import Compilation, compile_protocol


def write(folder: Path, grammar: str, profile: str = "", name: str = "demo") -> Path:
    """Write a protocol into `folder` and return its own folder; an empty profile is no file."""
    protocol = folder / name
    protocol.mkdir(parents=True, exist_ok=True)
    (protocol / "grammar.abnf").write_text(grammar, encoding="utf-8")
    if profile:
        (protocol / "profile.toml").write_text(profile, encoding="utf-8")
    return protocol


def compiled(folder: Path, grammar: str, profile: str = "") -> Compilation:
    """Return what a grammar compiles to."""
    return compile_protocol(write(folder, grammar, profile), shown="demo")


def faults(folder: Path, grammar: str, profile: str = "") -> list[str]:
    """Return code and place of every error, such as ``E409 demo/grammar.abnf:1:1``."""
    try:
        compiled(folder, grammar, profile)
    except SpecError as error:
        return [f"{d.code} {d.span}" for d in error.diagnostics if d.code.startswith("E")]
    return []


def layout(message: ir.Message) -> list[dict[str, ir.Type]]:
    """Return the parts of a message: the type of each field by its name."""
    return [
        {field.name: field.type for field in (part.fields if isinstance(part, ir.Frame) else (part.field,))}
        for part in message.parts
    ]
