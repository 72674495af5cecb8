"""Status: many answers at once, and as text."""

from __future__ import annotations

import subprocess
import sys

from specwire.runtime.cli.status_asking import describe_status
from tests.runtime.kernel.test_status import house


def test_status_as_text() -> None:
    """One line for a field, a table for structs; names of peers cannot forge lines."""
    assert [*describe_status(house())] == [
        "name     house",
        "warm     yes",
        "came     3",
        "left     2",
        "by day   Monday=4",
        "rooms",
        "  room     open doors",
        "  kitchen  1",
        "  hall\\n   1,200",
        "visit s  3 values, 21.500 in all",
        "cellar",
        "  room        cellar",
        "  open doors  0",
    ]


MANY_ANSWERS = """
import sys, threading
from pathlib import Path

import msgspec

from specwire.runtime.cli import status_asking
from specwire.runtime.transport.status_folder import Address

sys.setswitchinterval(1e-6)
inner = int
body = "1"
for number in range(40):
    inner = msgspec.defstruct(f"Level{number}", [("name", "str"), ("inner", inner)])
    body = '{"name":"x","inner":%s}' % body
together = threading.Barrier(8)

def answer(path, *, timeout_s):
    together.wait()
    return body.encode()

status_asking.ask_status = answer
addresses = [Address("peer", number, Path(str(number))) for number in range(8)]
print(len(status_asking.ask_all(addresses, ["peer"], inner)))
"""


def test_many_answers_at_once() -> None:
    """msgspec crashes where several threads are the first to use a struct that holds structs."""
    ran = subprocess.run([sys.executable, "-c", MANY_ANSWERS], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "8\n"), ran.stderr
