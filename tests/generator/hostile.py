"""Grammars that are too large, too deep, too repetitive or no text: what each is diagnosed as.

The tests look at the outcome, ``make bench`` at the time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

RULES = 100_000
BELOW = 9_990
"""Rules just below the bound: those grammars are read as a whole."""
PROFILE = 'messages = ["m"]\n'


@dataclass(frozen=True)
class Hostile:
    """A grammar, made when it is wanted, and the codes of the errors that it gives; none where it compiles."""

    grammar: Callable[[], str | bytes]
    errors: frozenset[str] = frozenset()
    profile: Callable[[], str] = lambda: PROFILE


def lines(count: int, line: str) -> str:
    """Return a message, and `count` rules, each of which may hold its number and the next."""
    return "m = %x01 r0\n" + "".join(line.format(n=n, next=n + 1) for n in range(count))


def cyclic(count: int) -> str:
    rules = (f"r{n} = r{(n + 1) % count} OCTET\n" for n in range(count))
    return "m = %x01 r0\n" + "".join(rules)


def errors(*codes: str) -> frozenset[str]:
    return frozenset(codes)


def alternatives(count: int) -> str:
    return "m = %x01 a\na = " + "\n/ ".join(f"%x{n % 251:02X}.{n % 241:02X}" for n in range(count)) + "\n"


TOO_LARGE: dict[str, Hostile] = {
    "100,000 rules": Hostile(lambda: lines(RULES - 2, "r{n} = 4OCTET\n"), errors("E139")),
    "100,000 rules with faults": Hostile(lambda: lines(RULES - 2, "r{n} = (OCTET\n"), errors("E139")),
    "a cycle of 99,000 rules": Hostile(lambda: cyclic(99_000), errors("E139")),
    "a rule of 100,000 alternatives": Hostile(lambda: alternatives(RULES), errors("E139")),
    "100,000 alternatives in lines of their own": Hostile(
        lambda: "m = %x01 a\na = %x00\n" + "  | %x01\n" * RULES, errors("E139")
    ),
    "a million brackets": Hostile(lambda: "m = %x01 " + "(" * 1_000_000 + "\n", errors("E139")),
    "100,000 groups inside groups": Hostile(
        lambda: "m = " + "(" * RULES + "OCTET" + ")" * RULES + "\n", errors("E139")
    ),
    "a number of a million digits": Hostile(lambda: "m = %x" + "F" * 1_000_000 + "\n", errors("E139")),
    "a comment of 10 MB": Hostile(lambda: "m = %x01 ; " + "x" * 10_000_000 + "\n", errors("E139")),
    "a line of 10 MB of elements": Hostile(lambda: "m = " + "OCTET " * 1_600_000 + "\n", errors("E139")),
    "a million quotes": Hostile(lambda: "m = " + '"' * 1_000_001 + "\n", errors("E139")),
    "a million empty lines": Hostile(lambda: "\n" * 1_000_000, errors("E139")),
    "a megabyte of NUL": Hostile(lambda: b"m = %x01 \0\n" + bytes(1_000_000), errors("E128", "E102")),
    "a megabyte of noise": Hostile(lambda: random.Random(1).randbytes(1_000_000), errors("E129")),
    "a megabyte of prose": Hostile(lambda: "once upon a time\n" * 60_000, errors("E102")),
    "50,000 tables of a profile": Hostile(
        lambda: "m = %x01\n", errors("E501"), lambda: "".join(f"[types.x{n}]\n" for n in range(50_000))
    ),
}
READ_AS_A_WHOLE: dict[str, Hostile] = {
    "9,990 rules": Hostile(lambda: lines(BELOW, "r{n} = 4OCTET\n")),
    "9,990 rules with faults": Hostile(lambda: lines(BELOW, "r{n} = (OCTET\n"), errors("E122")),
    "9,990 rules that nothing defines": Hostile(lambda: lines(BELOW, "r{n} = u{n} OCTET\n"), errors("E201")),
    "9,990 times the same rule": Hostile(lambda: lines(BELOW, "r0 = {n}OCTET\n"), errors("E202")),
    "a chain of 9,990 rules": Hostile(lambda: lines(BELOW, "r{n} = [ r{next} ] OCTET\n") + f"r{BELOW} = OCTET\n", errors("E413")),
    "a cycle of 9,990 rules": Hostile(lambda: cyclic(BELOW), errors("E412", "E413")),
    "60 rules that double each other": Hostile(lambda: lines(60, "r{n} = r{next} / r{next}\n") + "r60 = OCTET\n", errors("E413")),
    "9,990 lines that are no rule": Hostile(lambda: lines(BELOW, "junk\nr{n} = 4OCTET\n"), errors("E102")),
    "5,000 alternatives": Hostile(lambda: alternatives(5_000)),
    "groups inside groups": Hostile(lambda: "m = " + "(" * 49_000 + "OCTET" + ")" * 49_000 + "\n", errors("E138")),
    "options inside options": Hostile(lambda: "m = %x01 " + "[" * 60 + "x" + "]" * 60 + "\nx = OCTET\n", errors("E405")),
    "huge repeats": Hostile(lambda: "m = %x01 999999999999OCTET 1*999999999OCTET\n", errors("E414")),
    "a range beyond Unicode": Hostile(lambda: "m = %x01 *%x30-10FFFFFF\n", errors("E130")),
    "99,000 quotes": Hostile(lambda: "m = " + '"' * 99_000 + "\n", errors("E134")),
    "99,000 comments": Hostile(lambda: "; c\n" * 99_000 + "m = %x01 x\nx = OCTET\n"),
    "2,000 errata": Hostile(
        lambda: lines(2_000, "r{n} = | OCTET\n"),
        profile=lambda: PROFILE + "".join(
            f'[[errata]]\nrule = "r{n}"\nwas = "| OCTET"\nnow = "OCTET"\nwhy = "An operator too many."\n'
            for n in range(2_000)
        ),
    ),
}  # fmt: skip
HOSTILE = {**TOO_LARGE, **READ_AS_A_WHOLE}
