"""Packages of imported documents with gaps, generated with the profile that the import wrote.

The octets are derived by hand from the text of the documents in tests/golden/import.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.documents.editions import compile_document
from tests.generator.packages import imported
from tests.golden_files import GOLDEN

NUMBER = bytes(7) + b"\x07"
MARK = bytes(range(16))

CASES: dict[str, list[tuple[str, list[bytes], str, str | None]]] = {
    "missing-names/document.md": [
        (
            "an undefined name with a size",
            [b"\xbe\x01\x04\x05\0\0\0\x07"],
            "MagicAlive(flags=5, state=7)",
            None,
        ),
        (
            "a defined one",
            [b"\xbe\x01\x01\x05\xff\xff\xff\xff"],
            "MagicOpen(flags=5, place=4294967295)",
            None,
        ),
    ],
    "zproto-slips/document.bnf": [
        (
            "the signature, a list and a dictionary",
            [b"\xaa\xac\x01\0\0\0\x01\0\0\0\x02ab\0\0\0\x01\x01k\0\0\0\x01v"],
            "Put(tags=('ab',), properties=(('k', 'v'),))",
            None,
        ),
    ],
    "endless-length/document.md": [
        ("a short length", [b"\x03abc"], "Record(content=b'abc')", None),
        ("a long one", [b"\xff\0\0\0\0\0\0\x01\0" + bytes(256)], f"Record(content={bytes(256)!r})", None),
    ],
    "text-slips/document.md": [
        ("a signed number", [b"cmd=heat degrees=-5\n"], "CHeat(degrees='-5')", None),
        (
            "both options",
            [b"cmd=heat_result rc=0 note=all\twell\n"],
            "SHeat(rc='0', note='all\\twell')",
            None,
        ),
        ("no option", [b"cmd=heat_result\n"], "SHeat(rc=None, note=None)", None),
        ("a constant", [b"\n"], "SCool()", None),
    ],
    "senders-in-sentences/document.md": [
        ("from the client", [b"ASK", b"a"], "Ask(shelf='a')", "C"),
        ("from one port", [b"k", NUMBER, b"", b"v"], "Item(key='k', number=7, value=b'v')", "S"),
        ("from the other", [b"k", NUMBER, b"", b"v"], "Change(key='k', number=7, mark=(), value=b'v')", "N"),
        (
            "with a mark",
            [b"k", NUMBER, MARK, b""],
            f"Change(key='k', number=7, mark=({MARK!r},), value=b'')",
            "N",
        ),
        ("from either", [b"TICK", b""], "Tick()", "N"),
    ],
}


@pytest.mark.parametrize("document", CASES)
def test_octets_derived_by_hand(tmp_path: Path, document: str) -> None:
    protocol = compile_document(GOLDEN / "import" / document).protocol
    with imported(tmp_path, [protocol], "codec") as [package]:
        for what, frames, expected, sender in CASES[document]:
            message = package.decode(frames, sender=sender) if sender else package.decode(frames)
            assert repr(message) == expected, what
            assert list(message.encode()) == frames, what
