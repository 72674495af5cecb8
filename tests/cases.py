"""Many small cases in one test, of which every one that fails is told of by name, not only the first.

A test costs pytest and its workers some milliseconds, whatever it does; where thousands of cases take microseconds
each, they are made one test for each package or grammar. `each_case` fills in the last arguments of such a test:

    @pytest.mark.parametrize("name", PACKAGES)
    @each_case("class_name", classes_of)          # classes_of(name) gives the cases
    def test_copies(name: str, class_name: str) -> None: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

FAILURES = (Exception, pytest.fail.Exception)


def each_case(
    arguments: str, cases: Callable[..., Iterable[Any]], *, named: Callable[[Any], str] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test once for each case.

    Args:
        arguments: names of the arguments that make a case, with commas between.
        cases: gives them, as tuples where there are several arguments; it may take other arguments of the test.
        named: gives the name of a case.
    """
    names = [name.strip() for name in arguments.split(",")]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature, taken = inspect.signature(test), inspect.signature(cases).parameters

        @wraps(test)
        def together(**given: Any) -> None:
            every = list(cases(**{name: given[name] for name in taken}))
            assert every, "there is no case"
            failed: dict[str, BaseException] = {}
            for number, case in enumerate(every):
                values = (case,) if len(names) == 1 else case
                try:
                    test(**given, **dict(zip(names, values, strict=True)))
                except FAILURES as error:
                    name = named(case)
                    error.add_note(f"case {number}: {name}")
                    failed[f"{number}: {name}"] = error
            if failed:
                told = f"{len(failed)} of {len(every)} cases: {', '.join(failed)}"
                raise BaseExceptionGroup(told, list(failed.values()))

        outer = [parameter for parameter in signature.parameters.values() if parameter.name not in names]
        together.__signature__ = signature.replace(parameters=outer)  # type: ignore[attr-defined]
        return together

    return decorate
