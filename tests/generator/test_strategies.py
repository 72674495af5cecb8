"""The emitter of strategies: names that are taken, fields that depend on each other, messages known by their sender."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError
from specwire.generator import ir
from specwire.generator.documents.importing import import_document
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import compile_protocol
from tests.examples import examples
from tests.generator.documents import write_document
from tests.generator.layouts import field, message, protocol
from tests.generator.test_layouts import generated, home
from tests.generator.test_without_profile import TRADE

__all__ = ("home",)

REST = ir.Length("rest")
CASES = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def named(number: int, class_name: str, *fields: ir.Field) -> ir.Message:
    head = field("head", ir.ConstantType(f"aaa1{number:02x}"))
    made = message(number, (ir.Frame("head", (head, *fields)),), f"aaa1{number:02x}")
    return msgspec.structs.replace(made, class_name=class_name)


def test_names_that_are_taken(home: Path) -> None:
    """A builtin, a function of the module, a field beside which the function of a record would be hidden."""
    peer = ir.RecordType("peer", "Peer", (field("port", ir.IntegerType(2)),))
    demo = protocol(
        (
            named(1, "Open"),
            named(2, "Messages"),
            named(3, "MutatedFrames"),
            named(4, "Decode"),
            named(5, "Hello", field("peer", peer), field("peers", ir.ListType(1, peer))),
        ),
        ir.Selector(0, 3),
    )
    with generated(home, demo) as package:
        drawn = package.strategies
        for function, class_name in (
            (drawn.open_, "Open"), (drawn.messages_, "Messages"), (drawn.mutated_frames_, "MutatedFrames"),
            (drawn.decode_, "Decode"), (drawn.hello, "Hello"), (drawn.peer_, "Peer"),
        ):  # fmt: skip
            check_class(function(), getattr(package, class_name))
        check_class(drawn.hello(peer=package.Peer(7)), package.Hello)


def check_class(strategy: st.SearchStrategy[object], expected: type) -> None:
    @settings(max_examples=3, database=None)
    @given(strategy)
    def check(drawn: object) -> None:
        assert type(drawn) is expected

    check()


def sized(forms: tuple[ir.SizeForm, ...], *fields: ir.Field) -> ir.Protocol:
    return protocol((named(1, "Sized", field("length", ir.SizeType(forms)), *fields),), ir.Selector(0, 3))


TEXTS = [field(name, ir.TextType(ir.Length("prefix", 1))) for name in ("one", "two")]
DEPENDENT = [
    sized((ir.SizeForm("", 1),), *TEXTS),
    sized((ir.SizeForm("f0", 1), ir.SizeForm("f1", 2)), field("body", ir.OctetsType(REST))),
    protocol(
        (
            named(
                1,
                "Tail",
                field("number", ir.IntegerType(1), optional=True),
                field("words", ir.ListType(0, ir.TextType(ir.Length("prefix", 1))), optional=True),
            ),
        ),
        ir.Selector(0, 3),
    ),
    protocol((named(1, "Short", field("text", ir.TextType(REST), optional=True)),), ir.Selector(0, 3)),
]


@pytest.mark.parametrize("demo", DEPENDENT, ids=range(len(DEPENDENT)))
def test_what_is_drawn_can_be_sent(home: Path, demo: ir.Protocol) -> None:
    """A size of one octet, one with two forms, fields that are left out from one of them on."""
    with generated(home, demo) as package:

        @CASES
        @given(package.strategies.messages())
        def check(drawn: object) -> None:
            assert package.decode(drawn.encode()) == drawn  # type: ignore[attr-defined]

        check()


def test_values_keep_their_limits(home: Path) -> None:
    """Fixed and largest sizes, padding, the end of a text, named values, the least number of items, a pattern."""
    demo = protocol(
        (
            named(
                1,
                "Limits",
                field("short", ir.TextType(ir.Length("prefix", 1))),
                field("name", ir.TextType(ir.Length("fixed", 8), padding="20")),
                field("line", ir.TextType(ir.Length("until", until="0d0a"), pattern=r"[\x21-\x7e]+")),
                field("end", ir.ConstantType("0d0a")),
                field("some", ir.OctetsType(ir.Length("prefix", 2), 1, 9)),
                field("kind", ir.IntegerType(1, enum="kind")),
                field("level", ir.IntegerType(2, signed=True)),
                field("pairs", ir.PairsType(0, ir.TextType(ir.Length("prefix", 1)), split="last", minimum=2)),
            ),
        ),
        ir.Selector(0, 3),
    )
    with generated(home, demo) as package:

        @CASES
        @given(package.strategies.limits(strict=True))
        def check(drawn: Any) -> None:
            assert len(drawn.short.encode()) <= 255
            assert len(drawn.name.encode()) <= 8 and not drawn.name.endswith(" ")
            assert drawn.line and all("!" <= letter <= "~" for letter in drawn.line)
            assert 1 <= len(drawn.some) <= 9
            assert drawn.kind in (1, 2, 200)
            assert -(2**15) <= drawn.level < 2**15
            assert len(drawn.pairs) >= 2 and not any("=" in value for _, value in drawn.pairs)

        check()


@pytest.fixture(scope="module")
def trade(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ir.Protocol]:
    """Messages that look the same and are told apart by who sends them."""
    root = tmp_path_factory.mktemp("trade")
    folder = root / "trade"
    write_imported(import_document(write_document(root, TRADE), "trade", folder=folder), folder)
    yield compile_protocol(folder).protocol


def test_messages_known_by_their_sender(home: Path, trade: ir.Protocol) -> None:
    with generated(home, trade) as package:
        drawn = package.strategies

        @CASES
        @given(
            st.sampled_from("CBW").flatmap(lambda role: st.tuples(st.just(role), drawn.messages(sender=role)))
        )
        def check_messages(row: tuple[str, object]) -> None:
            role, sent = row
            assert package.decode(sent.encode(), sender=role) == sent  # type: ignore[attr-defined]

        @CASES
        @given(drawn.malformed_frames())
        def check_malformed(frames: list[bytes]) -> None:
            for sender in ("C", "B", "W", None):
                with pytest.raises(DecodeError):
                    package.decode(frames, sender=sender)

        check_messages()
        check_malformed()
