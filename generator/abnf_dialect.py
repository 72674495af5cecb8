"""What ZeroMQ specifications write that RFC 5234 does not allow, and what it means.

Each addition has a number. Reading with dialect ``rfc5234`` reports it as an error, E1xx; with dialect
``zeromq`` as a warning, W1xx of the same number, that says how it was read. Additions that concern names
(rules defined twice, ``FRAME`` never defined) are found later, by `specwire.generator.passes.resolve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from specwire.generator.diagnostics import Diagnostics, Span

Dialect = Literal["rfc5234", "zeromq"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """An addition: its code is E or W and `code`; `rule` cites the RFC, `read` says what we take it for.

    `rule` is None where the RFC allows the text and gives it a meaning that its author did not intend.
    """

    code: str
    message: str
    rule: str | None
    read: str


class Extension(Enum):
    """The additions to RFC 5234; ``{0}`` in a sentence is the text as written."""

    BAR = Meaning(
        "103",
        "'|' is not an ABNF operator",
        "RFC 5234 section 3.2 writes alternatives with '/'; record it in profile.toml",
        "read as '/', which RFC 5234 section 3.2 writes",
    )
    ROLE = Meaning(
        "104",
        "'{0}' marks who sends a message, which ABNF has no notation for",
        "a rule name is letters, digits and '-' (RFC 5234 section 2.1)",
        "read as the message and the role that sends it",
    )
    UNDERSCORE = Meaning(
        "105",
        "rule name '{0}' holds '_'",
        "a rule name is letters, digits and '-' (RFC 5234 section 2.1)",
        "'_' and '-' in names are read alike",
    )
    C_HEX = Meaning(
        "106",
        "'{0}' is not how ABNF writes a hexadecimal value",
        "write '%x' in place of '0x' (RFC 5234 section 2.3)",
        "read as '%x' in place of '0x'",
    )
    BARE_HEX = Meaning(
        "107",
        "'{0}' does not say its base",
        "write '%x', '%d' or '%b' (RFC 5234 section 2.3)",
        "read as hexadecimal, '%x'",
    )
    QUOTED_VALUE = Meaning(
        "108",
        "'{0}' puts quotes into a number value",
        'write the number of the character, or the text as "…" (RFC 5234 section 2.3)',
        "read as the octets of the quoted characters",
    )
    STRING_RANGE = Meaning(
        "109",
        "'{0}' is a range of strings",
        "write the range in numbers, such as %x41-5A (RFC 5234 section 3.4)",
        "read as the range of the two characters",
    )
    PERCENT_NAME = Meaning(
        "110",
        "'%' stands before the rule name in '{0}'",
        "write the name alone; '%' begins a number value (RFC 5234 section 2.3)",
        "read as the rule of that name",
    )
    LOOSE_REPEAT = Meaning(
        "111",
        "white space between '{0}' and the element it repeats",
        "write the repeat directly before its element (RFC 5234 section 3.6)",
        "read as if they stood together",
    )
    REPEATED_OPTION = Meaning(
        "112",
        "an option inside a repetition, either of which may be empty",
        None,
        "read as a repeated group, '*( … )'",
    )
    MARGIN_ALTERNATIVE = Meaning(
        "113",
        "'{0}' goes on with a rule but is not indented",
        "indent the line: a rule goes on only in indented lines (RFC 5234 section 2.2)",
        "read as one more alternative of the rule above",
    )
    UNEVEN_RULE = Meaning(
        "114",
        "rule '{0}' does not begin in the column of the others",
        "begin every rule in the same column (RFC 5234 section 2.2)",
        "read as a rule of its own",
    )
    GAP = Meaning(
        "115",
        "a rule goes on after an empty line or a comment at the margin",
        "indent the comment or take out the line: either ends the rule (RFC 5234 section 4)",
        "read as part of the rule above",
    )


def report_extension(
    extension: Extension, span: Span, *, dialect: Dialect, diagnostics: Diagnostics, written: str = ""
) -> None:
    """Add the error or the warning, as the dialect has it, that `extension` is used at `span`."""
    meaning = extension.value
    message = meaning.message.format(written)
    if dialect == "zeromq":
        diagnostics.warning(f"W{meaning.code}", span, message, meaning.read)
    elif meaning.rule:
        diagnostics.error(f"E{meaning.code}", span, message, meaning.rule)
