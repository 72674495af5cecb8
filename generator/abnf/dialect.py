"""Notation of ZeroMQ specifications that RFC 5234 does not allow, and its meaning.

Each extension has a number. The dialect ``rfc5234`` reports an error, E1xx. The dialect ``zeromq`` reports a
warning with the same number, W1xx, that states how the notation is read. Extensions that concern names (rules
defined twice, ``FRAME`` without a rule) are found later, by `specwire.generator.passes.resolve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from specwire.generator.diagnostics import Diagnostics, Span

Dialect = Literal["rfc5234", "zeromq"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """An extension: the number of its code, the message, the rule of the RFC, and how it is read.

    `rule` is the help of the error and `read` the help of the warning. `rule` is None if the RFC
    allows the text, but with a meaning that the author did not intend.
    """

    code: str
    message: str
    rule: str | None
    read: str


class Extension(Enum):
    """The extensions of RFC 5234; ``{0}`` in a message is the text as written."""

    BAR = Meaning(
        "103",
        "'|' is not an ABNF operator",
        "write alternatives with '/' (RFC 5234 section 3.2); record the correction in profile.toml",
        "'|' is read as '/' (RFC 5234 section 3.2)",
    )
    ROLE = Meaning(
        "104",
        "'{0}' marks the sender of a message, for which ABNF has no notation",
        "a rule name consists of letters, digits and '-' (RFC 5234 section 2.1)",
        "'{0}' is read as a message and the role that sends it",
    )
    UNDERSCORE = Meaning(
        "105",
        "rule name '{0}' contains '_'",
        "a rule name consists of letters, digits and '-' (RFC 5234 section 2.1)",
        "'_' in a name is read as '-'",
    )
    C_HEX = Meaning(
        "106",
        "'{0}' is not a hexadecimal value in ABNF",
        "write '%x' instead of '0x' (RFC 5234 section 2.3)",
        "'0x' is read as '%x'",
    )
    BARE_HEX = Meaning(
        "107",
        "number value '{0}' has no base",
        "write '%x', '%d' or '%b' (RFC 5234 section 2.3)",
        "the number is read as hexadecimal, '%x'",
    )
    QUOTED_VALUE = Meaning(
        "108",
        "number value '{0}' contains quotes",
        'write the number of the character, or the text as "…" (RFC 5234 section 2.3)',
        "the value is read as the octets of the quoted characters",
    )
    STRING_RANGE = Meaning(
        "109",
        "'{0}' is a range of strings",
        "write the range in numbers, such as %x41-5A (RFC 5234 section 3.4)",
        "the range is read as the range of the two characters",
    )
    PERCENT_NAME = Meaning(
        "110",
        "the rule name in '{0}' has a '%' in front of it",
        "write only the name; '%' begins a number value (RFC 5234 section 2.3)",
        "'{0}' is read as the rule of that name",
    )
    LOOSE_REPEAT = Meaning(
        "111",
        "white space between '{0}' and the element it repeats",
        "write the repeat directly before its element (RFC 5234 section 3.6)",
        "the white space is ignored",
    )
    REPEATED_OPTION = Meaning(
        "112",
        "an option inside a repetition is ambiguous: both may be empty",
        None,
        "the option is read as a group: '*( … )'",
    )
    MARGIN_ALTERNATIVE = Meaning(
        "113",
        "'{0}' continues a rule but is not indented",
        "indent the line: only indented lines continue a rule (RFC 5234 section 2.2)",
        "the line is read as another alternative of the rule above",
    )
    UNEVEN_RULE = Meaning(
        "114",
        "rule '{0}' does not begin in the same column as the other rules",
        "begin every rule in the same column (RFC 5234 section 2.2)",
        "the line is read as a new rule",
    )
    GAP = Meaning(
        "115",
        "a rule continues after an empty line or a comment at the margin",
        "indent the comment or remove the empty line: both end a rule (RFC 5234 section 4)",
        "the line is read as part of the rule above",
    )


def report_extension(
    extension: Extension, span: Span, *, dialect: Dialect, diagnostics: Diagnostics, written: str = ""
) -> None:
    """Report `extension`: an error in dialect ``rfc5234``, a warning in dialect ``zeromq``."""
    meaning = extension.value
    message = meaning.message.format(written)
    if dialect == "zeromq":
        diagnostics.warning(f"W{meaning.code}", span, message, meaning.read.format(written))
    elif meaning.rule:
        diagnostics.error(f"E{meaning.code}", span, message, meaning.rule)
