"""Cases that are tested together: none is left out, and each that fails is named."""

from __future__ import annotations

import pytest

from tests.cases import each_case

SEEN: list[tuple[str, int]] = []


def numbers(word: str) -> range:
    return range(len(word))


@pytest.mark.parametrize("word", ["a", "four"])
@each_case("number", numbers)
def test_each_is_called(word: str, number: int) -> None:
    SEEN.append((word, number))
    assert SEEN[-(number + 1) :] == [(word, n) for n in range(number + 1)]


def test_all_that_fail_are_named() -> None:
    """Also those after the first, and those of `pytest.raises`."""

    @each_case("dividend, divisor", lambda: [(4, 2), (1, 0), (3, 3), (5, 0)])
    def divides(dividend: int, divisor: int) -> None:
        if dividend == 5:
            with pytest.raises(KeyError):
                assert dividend
        assert dividend / divisor

    with pytest.raises(BaseExceptionGroup, match=r"^2 of 4 cases: 1: \(1, 0\), 3: \(5, 0\)") as caught:
        divides()
    assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError, pytest.fail.Exception]
    assert caught.value.exceptions[0].__notes__ == ["case 1: (1, 0)"]


def test_no_case_at_all_is_a_fault() -> None:
    @each_case("nothing", lambda: ())
    def never(nothing: object) -> None:
        raise AssertionError("called")

    with pytest.raises(AssertionError, match="there is no case"):
        never()


def test_a_skip_is_one() -> None:
    @each_case("number", lambda: [1])
    def skipped(number: int) -> None:
        pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception, match="not here"):
        skipped()
