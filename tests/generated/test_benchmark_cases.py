"""What the benchmarks compare is the same work: every way to read a case gives the values of its message."""

from __future__ import annotations

import msgspec
import pytest

from specwire.generated.errors import DecodeError
from tests.benchmarks import kaitai_style
from tests.benchmarks.cases import CASES
from tests.benchmarks.run import UNCHECKED, Other, Result, builds, missed
from tests.benchmarks.unchecked import unchecked


@pytest.mark.parametrize("name", CASES)
def test_every_way_reads_the_same(name: str) -> None:
    case = CASES[name]
    message = case.message(builds(case.package)["pure"])
    frames = message.encode()
    for module in builds(case.package).values():
        assert module.decode(frames) == case.message(module)
    assert msgspec.structs.astuple(unchecked(case.package).decode(frames)) == msgspec.structs.astuple(message)
    # Raises where a class in this style reads something else.
    assert (kaitai_style.reader(name, message, frames) is None) == (name not in kaitai_style.STYLES)


def test_the_variant_without_checks_has_none() -> None:
    """An operation that there is none of, and an octet too many."""
    codec = builds("filemq")["pure"]
    good = codec.Cheezburger(1, 1, "/a", 0, (), b"").encode()
    bad = [good[0][:11] + b"\x07" + good[0][12:] + b"x", b""]
    with pytest.raises(DecodeError):
        codec.decode(bad)
    assert unchecked("filemq").decode(bad).operation == 7


def test_a_goal_that_is_missed_is_named() -> None:
    slow = Result("flux request", "pure", 1.0, 18.0, 1.0, 52.0)
    costly = Other("flux request", UNCHECKED, 1.0, 0.5)
    assert [str(row) for row in missed([slow], [costly])] == [
        "flux request, pure decode, x Construct: 18.0, wanted 36: missed by 50 %",
        "flux request, cost of the checks in percent: 100.0, wanted 20: missed by 400 %",
    ]
