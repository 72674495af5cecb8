"""Values that a person types or that JSON has, for fields of every type."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, ClassVar
from uuid import UUID

import msgspec
import pytest

from specwire.runtime.cli.console import CommandError
from specwire.runtime.cli.decode_message import plain
from specwire.runtime.cli.encode_values import Fields

NAME = "12345678-9abc-def0-1122-334455667788"


class Demo(msgspec.Struct):
    """A message with numbers of every type."""

    NAME: ClassVar[str] = "DEMO"
    PROTOCOL: ClassVar[str] = "demo"
    ratio: float
    fine: bool
    key: UUID
    keys: tuple[UUID, ...] = ()
    none: float | None = None


def fields() -> Fields:
    package: Any = SimpleNamespace(codec=SimpleNamespace(Demo=Demo), MESSAGES={"Demo": Demo})
    return Fields(package, "Demo")


def test_typed() -> None:
    texts = ["ratio=1.5", "fine=TRUE", f"key={NAME}", f"keys={NAME}", f"keys={NAME}", "none=-inf"]
    made = fields().from_texts(texts)
    key = UUID(NAME)
    assert made == {
        "ratio": 1.5, "fine": True, "key": key, "keys": (key, key), "none": -math.inf,
    }  # fmt: skip


def test_what_decode_writes_is_read() -> None:
    message = Demo(math.inf, False, UUID(NAME), (UUID(NAME),), 0.25)
    written = plain(msgspec.structs.asdict(message))
    assert written == {"ratio": "inf", "fine": False, "key": NAME, "keys": [NAME], "none": 0.25}
    assert Demo(**fields().from_object(written)) == message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ratio=x", "ratio: 'x' is no number"),
        ("fine=yes", "fine: 'yes' is neither true nor false"),
        ("key=12", "key: '12' is no UUID"),
        ('key:="12"', "key: '12' is no UUID"),
    ],
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        fields().from_texts([text])
