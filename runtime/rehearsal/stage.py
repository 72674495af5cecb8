"""What all conversations of a rehearsal share."""

from __future__ import annotations

import random
from dataclasses import dataclass

from specwire.runtime.rehearsal.drawing import Deck
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.manner import Budget, Manner
from specwire.runtime.rehearsal.tally import Tally


@dataclass(frozen=True, slots=True)
class Stage:
    """The protocol, our side, what is dealt, how it is held, and what was found.

    Attributes:
        role: the letter of our side.
        dice: decides whatever is left to chance, by the seed.
    """

    language: Language
    role: str
    deck: Deck
    dice: random.Random
    manner: Manner
    budget: Budget
    tally: Tally
