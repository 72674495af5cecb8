"""Strategies without a package: what is drawn can be sent, and adapts to what the caller passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from specwire.generated.strategies import Drawing
from specwire.generator import ir
from tests.examples import examples
from tests.generator import interpreter, layouts
from tests.generator.stand_ins import laid_out, named, stand_ins
from tests.generator.test_layouts import contents_of, without_implied
from tests.generator.value_cases import CASES, Case

RANDOM = settings(
    max_examples=examples(40),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
by_name = {case.name: case for case in CASES}


def drawn(of: ir.Protocol, class_name: str, **given: Any) -> st.SearchStrategy[Any]:
    """Draw messages of a class."""
    classes = stand_ins(of)
    fields = {field.attribute: ... for field in named(of, class_name).fields}
    drawing = Drawing(laid_out(of), classes, {})
    return drawing.messages(classes[class_name], {"strict": False, **fields, **given})


def check(of: ir.Protocol, message: Any) -> None:
    """A message can be sent, and is received as it was."""
    frames = message.encode()
    layout, contents = interpreter.decode(of, frames)
    assert layout.class_name == type(message).__name__
    assert without_implied(of, layout, contents) == contents_of(of, message)


@pytest.mark.parametrize("case", CASES, ids=list(by_name))
def test_what_is_drawn_of_a_case_can_be_sent(case: Case) -> None:
    for message in case.protocol.messages:

        @RANDOM
        @given(drawn(case.protocol, message.class_name))
        def check_drawn(one: Any) -> None:
            check(case.protocol, one)

        check_drawn()


@RANDOM
@given(layouts.more, st.data())
def test_what_is_drawn_of_any_layout_can_be_sent(of: ir.Protocol, data: st.DataObject) -> None:
    for message in of.messages:
        check(of, data.draw(drawn(of, message.class_name)))


def every(of: ir.Protocol, condition: Callable[[Any], bool], **given_values: Any) -> None:
    @RANDOM
    @given(drawn(of, "Message1", **given_values))
    def check_drawn(one: Any) -> None:
        assert condition(one), one
        check(of, one)

    check_drawn()


def test_a_number_adapts_to_what_it_announces() -> None:
    """If the caller passes the value, the number says that it is present; if None, that it is not."""
    options, numbers = by_name["options"].protocol, by_name["numbers"].protocol
    every(options, lambda m: m.flags & 0x80 == 0x80 and m.extra == 5, extra=5)
    every(options, lambda m: m.flags & 0x80 == 0 and m.extra is None, extra=None)
    every(numbers, lambda m: m.signed == -1 and m.d == 7, c=3, d=7)
    every(numbers, lambda m: m.digits in (10, 12) and m.signed != -1, a=1, c=None)


def test_values_adapt_to_a_number() -> None:
    options, packet = by_name["options"].protocol, by_name["packet"].protocol
    every(options, lambda m: m.extra is not None, flags=0x80)
    every(options, lambda m: m.extra is None, flags=0x7F)
    every(packet, lambda m: m.profile is not None and m.more is not None, extension=b"a")
    every(packet, lambda m: m.profile is None and m.extension is None, more=None)


def test_values_before_a_trailer_adapt_to_each_other() -> None:
    trailing = by_name["trailing"].protocol
    every(trailing, lambda m: m.a is not None, b=b"x")
    every(trailing, lambda m: m.b is None, a=None)


def test_every_presence_is_drawn() -> None:
    """Also that of numbers that are rarely drawn by chance."""
    numbers, options = by_name["numbers"].protocol, by_name["options"].protocol
    for name in "abcde":
        check_found(numbers, name, lambda value: value is not None)
    check_found(options, "noreply", lambda value: value is True)
    check_found(options, "noreply", lambda value: value is False)
    check_found(options, "prefix", lambda value: value is None)
    check_found(options, "more", lambda value: value is None)


def check_found(of: ir.Protocol, name: str, condition: Callable[[Any], bool]) -> None:
    """A value of a field for which a condition holds is drawn."""
    quick = settings(RANDOM, max_examples=2000)
    find(drawn(of, "Message1"), lambda message: condition(getattr(message, name)), settings=quick)


def test_values_inside_each_other_are_drawn_up_to_the_limit() -> None:
    chain = by_name["chain"].protocol
    quick = settings(RANDOM, max_examples=2000)
    found = find(drawn(chain, "Message1"), lambda m: m.link.following is not None, settings=quick)
    assert found.link.following.following is None
