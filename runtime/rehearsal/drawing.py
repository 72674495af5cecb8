"""Messages made up by the strategies of a package, so that one seed makes the same up again.

Hypothesis draws for tests, not for conversations: so messages of a class are drawn some at a time, shuffled, and dealt
one by one. Equal seeds give equal messages with the same version of hypothesis.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy, sampled_from

from specwire.runtime.rehearsal.language import Language

AT_ONCE = 24
"""Messages of a class drawn together: so few that a conversation does not falter meanwhile."""

ROUNDS = 8
"""How often they are dealt, each time in another order, before others are drawn: drawing takes longer than talking."""

Givens = Mapping[str, Mapping[str, list[Any]]]
"""By class name and field, the values of which one is taken instead of a drawn one."""


class Deck:
    """Deals messages of any class.

    Args:
        role: whose habits the messages have.
        number: the seed.
        givens: what is not to be drawn.
        strict: deal only what keeps to the letter of the specification.
    """

    def __init__(
        self, language: Language, role: str, number: int, *, givens: Givens, strict: bool = True
    ) -> None:
        self._own = language.habits.own_fields.get(role, {})
        self._strategies = language.package.strategies
        self._givens, self._strict = givens, strict
        self._dice = random.Random(number)
        self._makers = {_made_by(maker): maker for maker in vars(self._strategies).values()}
        self._left: dict[str, list[Any]] = {}
        self._drawn: dict[str, tuple[int, list[Any]]] = {}

    def deal(self, name: str) -> Any:
        """Return a message of the class `name`."""
        left = self._left.setdefault(name, [])
        if not left:
            left += self._shuffle(name)
        return left.pop()

    def prepare(self, names: Iterable[str]) -> None:
        """Draw messages of these classes now, so that the first of each does not keep the other side waiting."""
        for name in sorted(names):
            self._left[name] = [*self._left.get(name, ()), *self._shuffle(name)]

    def _shuffle(self, name: str) -> list[Any]:
        """Return messages in a new order: those of the round before, or others."""
        rounds, drawn = self._drawn.get(name, (ROUNDS, []))
        if rounds == ROUNDS:
            rounds, drawn = 0, self._draw(self._makers[name], self._givens.get(name, {}))
        self._drawn[name] = (rounds + 1, drawn)
        return self._dice.sample(drawn, len(drawn))

    def _draw(self, maker: Callable[..., SearchStrategy[Any]], fixed: Mapping[str, list[Any]]) -> list[Any]:
        fields = inspect.signature(maker).parameters
        known: dict[str, Any] = {name: value for name, value in self._own.items() if name in fields}
        known |= {name: sampled_from(values) for name, values in fixed.items()}
        return draw_many(maker(strict=self._strict, **known), AT_ONCE, self._dice.getrandbits(32))


def draw_many(strategy: SearchStrategy[Any], count: int, number: int) -> list[Any]:
    """Return at most `count` values, at least one; fewer where there are no more."""
    drawn: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        phases=(Phase.generate,),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        drawn.append(value)

    collect()
    return drawn


def _made_by(maker: object) -> str:
    """Return the class of which a function of the module draws messages; empty for anything else."""
    made = str(getattr(maker, "__annotations__", {}).get("return", ""))
    return (
        made.removeprefix("SearchStrategy[").removesuffix("]") if made.startswith("SearchStrategy[") else ""
    )
