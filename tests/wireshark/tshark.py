"""Run tshark with the dissectors that are generated here, and read what it shows.

tshark's own XML holds characters that XML does not have; they are replaced before it is read.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from specwire.generator import ir
from specwire.generator.emit.wireshark import EMITTER

NEEDS_TSHARK = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="needs tshark, which is not installed"
)
PATIENCE_S = 120
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True)
class Shown:
    """What tshark shows of one packet."""

    packet: ElementTree.Element

    def layers(self) -> list[str]:
        """Return the names of the protocols in it, from ZMTP on."""
        names = [proto.get("name", "") for proto in self.packet.findall("proto")]
        return names[names.index("zmtp") :] if "zmtp" in names else []

    def values(self, name: str) -> list[str]:
        """Return what is shown for a field, each time that it is there."""
        return [field.get("show", "") for field in self._fields(name)]

    def octets(self, name: str) -> list[str]:
        """Return the octets of a field in hexadecimal, each time that it is there."""
        return [field.get("value", "") for field in self._fields(name)]

    def labels(self, name: str) -> list[str]:
        """Return the lines of a field in the tree."""
        return [field.get("showname", field.get("show", "")) for field in self._fields(name)]

    @property
    def faults(self) -> list[str]:
        """What is said to be malformed, in sentences."""
        return self.values("_ws.expert.message")

    def _fields(self, name: str) -> list[ElementTree.Element]:
        return [field for field in self.packet.iter("field") if field.get("name") == name]


def write_dissectors(folder: Path, protocols: Iterable[ir.Protocol]) -> list[Path]:
    """Write the dissectors of the protocols; return their paths."""
    paths: list[Path] = []
    for protocol in protocols:
        files = EMITTER.emit(protocol)
        assert not isinstance(files, str)
        for name, text in files.items():
            paths.append(folder / name)
            paths[-1].write_text(text, encoding="utf-8")
    return paths


def tshark(capture: Path, dissectors: Sequence[Path], *options: str) -> str:
    """Return what tshark prints of a capture.

    Raises:
        AssertionError: it, or a dissector, says that something is wrong.
    """
    scripts = [part for path in dissectors for part in ("-X", f"lua_script:{path}")]
    run = subprocess.run(
        ["tshark", "-r", str(capture), *scripts, *options],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    told = run.stderr.decode("utf-8", "replace")
    printed = run.stdout.decode("utf-8", "replace")
    assert run.returncode == 0 and "Lua" not in told, told
    assert "Lua Error" not in printed, printed[printed.index("Lua Error") :][:500]
    return printed


def dissect(capture: Path, dissectors: Sequence[Path], *options: str) -> list[Shown]:
    """Return what tshark shows of each packet."""
    text = _NO_XML.sub("?", tshark(capture, dissectors, "-T", "pdml", *options))
    return [Shown(packet) for packet in ElementTree.fromstring(text).findall("packet")]
