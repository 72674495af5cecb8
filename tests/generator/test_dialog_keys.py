"""Keys of a dialog are fields of its messages, by the names that a machine reads them by."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.emit.machine import emit
from tests.generator.compiling import compiled, faults

GRAMMAR = """\
talk  = *( C:ASK S:TELL / C:HI S:HO )
ASK   = %x01 class
TELL  = %x02 class
HI    = %x03
HO    = %x04
class = 4OCTET  ; a number in network order
"""
PROFILE = """\
name = "demo"
[roles.C]
name = "client"
socket = "DEALER"
[roles.S]
name = "server"
socket = "ROUTER"
[[dialogs]]
name = "talk"
rule = "talk"
roles = ["C", "S"]
"""


def test_machine_reads_a_key_by_its_attribute(tmp_path: Path) -> None:
    """The profile has the grammar's name; in Python a keyword gets an underscore."""
    protocol = compiled(tmp_path, GRAMMAR, f'{PROFILE}key = ["class"]\nkeyless = {{ class = 0 }}\n').protocol
    assert protocol.dialogs[0].key == ("class",)
    assert [field.attribute for field in protocol.messages[0].fields if not field.constant] == ["class_"]
    source = emit(protocol)
    assert 'key=("class_",)' in source
    assert 'keyless={"class_": 0}' in source


def test_exchange_whose_messages_lack_the_key_pairs_by_number(tmp_path: Path) -> None:
    """NORFAB's OPEN has no uuid, and needs none: neither request nor reply has the key."""
    assert faults(tmp_path, GRAMMAR, f'{PROFILE}key = ["class"]\n') == []


@pytest.mark.parametrize(
    "more",
    [
        'key = ["klass"]',
        'key = ["class"]\nkeyless = { class = 4294967296 }',
        'key = ["class"]\nkeyless = { class = -1 }',
        "unanswered = { klass = 1 }",
        "unanswered = { class = 4294967296 }",
    ],
)
def test_what_no_message_can_hold_is_told(tmp_path: Path, more: str) -> None:
    (fault,) = faults(tmp_path, GRAMMAR, f"{PROFILE}{more}\n")
    assert fault.startswith("E310 demo/profile.toml:")


@pytest.mark.parametrize(
    ("rule", "reply"), [("TELL  = %x02 class", "TELL  = %x02"), ("HI    = %x03", "HI    = %x03 class")]
)
def test_key_on_one_side_only_is_told(tmp_path: Path, rule: str, reply: str) -> None:
    assert rule in GRAMMAR
    grammar = GRAMMAR.replace(f"{rule}\n", f"{reply}\n")
    assert faults(tmp_path, grammar, f'{PROFILE}key = ["class"]\n') == ["E310 demo/profile.toml:12:8"]
