"""Stages for tests: a side that makes its part up, with a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from specwire.runtime.rehearsal.conversation import Improviser
from specwire.runtime.rehearsal.drawing import Deck
from specwire.runtime.rehearsal.givens import read_givens
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.manner import Budget, Manner
from specwire.runtime.rehearsal.stage import Stage
from specwire.runtime.rehearsal.tally import Tally

TALK = Manner(messages=40, rate=100.0, window=4, patience_s=1.0)


def stage_of(
    protocol: str,
    role: str,
    seed: int = 1,
    manner: Manner = TALK,
    given: Sequence[str] = (),
    *,
    strict: bool = False,
) -> Stage:
    """Return a stage for one side of a protocol."""
    language = Language(import_module(f"specwire.generated.{protocol}"))
    deck = Deck(language, role, seed, givens=read_givens(language, given), strict=strict)
    return Stage(language, role, deck, random.Random(seed), manner, Budget(manner), Tally())


def only_dialog(stage: Stage) -> str:
    """Return the first dialog in which a side speaks."""
    return stage.language.choose_dialogs(stage.role, None)[0]


def open_conversation(stage: Stage, dialog: str | None = None, now: float = 0.0) -> Improviser:
    """Return a conversation that begins now."""
    number = stage.tally.conversations + 1
    return Improviser(stage, dialog or only_dialog(stage), number=number, now=now)


class Desk:
    """One conversation, and a test that says by hand what the other side says."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.conversation = open_conversation(stage)
        self.now = 0.0

    def said(self) -> list[Any]:
        """Let time pass until something is said, and return it decoded; frames where they are no message."""
        for _ in range(100):
            frames = self.conversation.act(self.now)
            if frames or self.conversation.over:
                return [self._read(said) for said in frames]
            self.now = max(self.now, self.conversation.wakes_at())
        raise AssertionError("nothing is said")

    def tell(self, *messages: Any) -> None:
        """Be the other side."""
        for message in messages:
            frames = message if isinstance(message, list) else message.encode()
            self.conversation.hear(frames, self.now)

    def _read(self, frames: list[bytes]) -> Any:
        return frames if self.stage.language.fault_in(frames) else self.stage.language.decode(frames)
