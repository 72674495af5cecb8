"""Bombs: short grammars whose rules use each other so often that they expand to a huge number of fields.

Each level of a bomb uses the next level in one of the `BODIES`, which most of them do twice: in sequence, nested, as
alternatives, repeated. Messages use the first levels in one of the `USES`. A dialog may be built the same way.
`draw_bomb` makes its choices through `Choose`, so that hypothesis and a seeded `random.Random` can both draw.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

Item = TypeVar("Item")
MAX_LEVELS = 40
MAX_MESSAGES = 50

BODIES = (
    "{r} {r}", "{r} {r} {r}", "*{r} *{r}", "*{r}", "1*{r} {r}", "( {r} / %x01 ) {r}", "( {r} / %x01 )", "{r} / %x01 {r}",
    "( %x01 {r} / %x02 {r} )", "%x01 {r} {r} / %x02 {r}", "%x01 {r} / %x02 {r} / %x03 {r} {r}", "[ {r} ] {r}", "{r} [ {r} ]",
    "3{r}", "2*4{r} {r}", "size *{r}", "size *( {r} {r} )", "size *( %x01 {r} / %x02 {r} )", "*( {r} / %x03 {r} )",
    "( ( {r} ) ( {r} ) )", "*( *( *( {r} ) ) )", "( %x01 ( {r} / %x02 ( {r} / %x03 ) ) )", "{r}", "{r} OCTET {r}", "name {r} {r}",
    "short-size {r} {r}", "( short / long ) {r} {r}", "{r} %x00 {r}", "%x04 {r} %x04 {r}", "{r} / {r} / {r}", "number-2 *{r} {r}",
    "[ {r} [ {r} ] ]", '"A" {r} / "B" {r}', "flags {r} {r}", "16( {r} {r} )", "*4{r} {r}", "1*( 1*( 1*{r} ) )",
)  # fmt: skip
ENDS = (
    "OCTET", "*OCTET", "%x00", "1*VCHAR", "FRAME", '"x"', "2OCTET ; a number", "size *OCTET", "%x01 OCTET / %x02 2OCTET", "%x30-39",
    "VCHAR / %x20", "*( %x01 / %x02 )", '""', "0OCTET", "size *( name OCTET )", "<words>", "JSON", "one / two", "OCTET ; ZeroMQ frame",
)  # fmt: skip
SOUND_BODIES = ("{r} {r}", "{r} OCTET {r}", "size *{r}", "size *( {r} {r} )", "( %x01 {r} / %x02 {r} )", "name {r} {r}", "{r}", "%x01 {r} {r} / %x02 {r}", "size *( %x01 {r} / %x02 {r} )", "{r} %x00 {r}", '"A" {r} / "B" {r}', "{r} {r} {r}")  # fmt: skip
SOUND_ENDS = ("OCTET", "2OCTET ; a number", "%x00", "size *OCTET", "name", "one / two", "16OCTET", "%x30-39", "%x01 OCTET / %x02 2OCTET", "size *( name OCTET )", '"word"')  # fmt: skip
SOUND_USES = ("r0", "r0 r1", "size *r0", "name r0 OCTET", "( %x01 r0 / %x02 r1 )", "r1 name r0")
USES = ("r0", "r0 r1", "[ r0 ]", "*r0", "3r0", "2*5r0", "( r0 / r1 )", "size *r0", "name r0 OCTET", "( %x01 r0 / %x02 r1 )", "FRAME r0", "r0 ; ZeroMQ frame")  # fmt: skip
DIALOG_BODIES = ("{d} {d}", "{d} / {d}", "*{d} {d}", "[ {d} ] {d}", "1*{d}", "*( {d} / C:m0 {d} )", "3{d}", "2*4{d}", "C:m0 {d} / S:m1 {d}", "{d}", "1*( {d} {d} )", "*( {d} ) *( {d} )")  # fmt: skip
DIALOG_ENDS = ("C:m0 S:m1", "C:m0", "*( C:m0 S:m1 )", "C:m0 / S:m1", "[ C:m0 ]")
VALUES = """size = OCTET
name = size *VCHAR
number-2 = 2OCTET
short = %x04 OCTET
long = %x06 8OCTET
short-size = OCTET
flags = OCTET
flag-r1 = %x01
one = %x01
two = %x02
"""
COMMENTS = ("", "", "", " ; ZeroMQ frame", " ; a number", " ; name=value")
PROFILES = (
    "",
    "messages",
    'messages\n[types.r3]\ntype = "octets"\n',
    "messages\n[types.r2]\nframe = true\n",
    'messages\n[types.size]\nscope = "rest"\n',
    "messages\n[stream]\nunits = true\n",
)


@dataclass(frozen=True, slots=True)
class Bomb:
    """Grammar and profile; an empty profile means that there is no file."""

    grammar: str
    profile: str


@dataclass(frozen=True, slots=True)
class Choose:
    """Source of random choices. `number` returns an integer between two bounds, both included."""

    number: Callable[[int, int], int]

    def one(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[self.number(0, len(items) - 1)]

    def chance(self, of: int) -> bool:
        """Return True with a probability of one in `of`."""
        return self.number(1, of) == 1


def draw_bomb(choose: Choose) -> Bomb:
    """Return a bomb of 1 to 40 levels with 1 to 50 messages."""
    levels = choose.number(1, MAX_LEVELS if choose.chance(3) else 10)  # small bombs are near the bounds
    sound = choose.chance(2)  # most unsound bombs have no layout
    few = [choose.one(SOUND_BODIES if sound else BODIES) for _ in range(choose.number(1, 4))]
    messages = choose.number(2, MAX_MESSAGES) if choose.chance(2) else 1
    dialog = choose.chance(5)
    lines: list[str] = []
    if dialog:
        bodies = [choose.one(DIALOG_BODIES) for _ in range(choose.number(1, 3))]
        depth = choose.number(1, MAX_LEVELS if choose.chance(2) else 8)
        lines += [f"d{n} = {bodies[n % len(bodies)].format(d=f'd{n + 1}')}\n" for n in range(depth)]
        lines.append(f"d{depth} = {choose.one(DIALOG_ENDS)}\n")
        messages = max(messages, 2)
    for number in range(messages):
        use = choose.one(SOUND_USES if sound else USES).replace("r1", f"r{choose.number(0, levels)}")
        if not choose.chance(3):
            use = use.replace("r0", f"r{min(levels, number % 5)}")
        lines.append(f"m{number} = %x{number:02X} {use}\n")
    lines += [
        f"r{n} = {choose.one(few).format(r=f'r{n + 1}')}{'' if sound else choose.one(COMMENTS)}\n"
        for n in range(levels)
    ]
    lines.append(f"r{levels} = {choose.one(SOUND_ENDS if sound else ENDS)}\n")
    listed = ", ".join(f'"m{number}"' for number in range(messages))
    profile = choose.one(PROFILES).replace("messages", f"messages = [{listed}]", 1)
    return Bomb("".join(lines) + VALUES, f'name = "demo"\n{profile}' if profile else "")


def seeded_bomb(seed: int) -> Bomb:
    """Return the bomb of a seed."""
    return draw_bomb(Choose(random.Random(seed).randint))


@st.composite
def bombs(draw: st.DrawFn) -> Bomb:
    """Draw a bomb."""
    return draw_bomb(Choose(lambda low, high: draw(st.integers(low, high))))
