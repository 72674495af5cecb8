"""E1xx: syntax errors. E1xx and W1xx: notation of ZeroMQ specifications that RFC 5234 does not allow."""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator.codes.row import Code

SYNTAX = (
    Code(
        "E100",
        "No rule",
        "The text contains only comments and white space.",
        "; to do\n",
        'greeting = "hello"\n',
    ),
    Code(
        "E101",
        "An unexpected character",
        "ABNF does not allow this character or word here.",
        "a = b - c\n",
        "a = b c\n",
    ),
    Code(
        "E102",
        "A line outside every rule",
        "The line neither begins a rule nor continues the rule above it. Indent continuation lines deeper "
        "than the rule.",
        'a = "x"\nand more\n',
        'a = "x"\n    "and more"\n',
    ),
    Code("E120", "A rule without a definition", "Nothing follows the '='.", "a =\n", 'a = "x"\n'),
    Code(
        "E121",
        "An empty alternative",
        "There is no element before or after a '/'.",
        'a = "x" /\n',
        'a = [ "x" ]\n',
    ),
    Code(
        "E122",
        "Brackets that do not match",
        "A bracket is never closed, or is closed by another kind of bracket.",
        'a = ( "x"\n',
        'a = ( "x" )\n',
    ),
    Code(
        "E123",
        "A repetition without an element",
        "No element follows the repeat count.",
        "a = 4\n",
        "a = 4OCTET\n",
    ),
    Code(
        "E124",
        "A string that is never closed",
        "A string must end on the line on which it begins.",
        'a = "x\n',
        'a = "x"\n',
    ),
    Code(
        "E125",
        "A prose value that is never closed",
        "A prose value must end with '>' on the line on which it begins.",
        "a = <words\n",
        "a = <words>\n",
    ),
    Code(
        "E126",
        "Not a number",
        "The text after '%x', '%d' or '%b' is not a number of that base.",
        "a = %xZZ\n",
        "a = %xAA\n",
    ),
    Code(
        "E127", "A rule defined with ':'", "ABNF defines a rule with '=' alone.", 'a ::= "x"\n', 'a = "x"\n'
    ),
    Code(
        "E128",
        "A character that is not in ABNF",
        "ABNF is ASCII, except in comments. Typographic dashes and quotes often come from a word processor.",
        "a = \u201cx\u201d\n",
        'a = "x"\n',
    ),
    Code(
        "E129",
        "Not UTF-8",
        "The file contains octets that are not UTF-8, or is not a text file.",
        "a = \udcff\n",
        "a = %xFF\n",
    ),
    Code(
        "E130",
        "A value beyond the last character",
        "A number value is at most 10FFFF, the last character of Unicode.",
        "a = %xFFFFFFFF\n",
        "a = %xFF.FF.FF.FF\n",
    ),
    Code(
        "E131", "A range in reverse order", "The lower value comes first.", "a = %x5A-41\n", "a = %x41-5A\n"
    ),
    Code(
        "E132",
        "A repetition in reverse order",
        "The lower count comes first.",
        "a = 4*2OCTET\n",
        "a = 2*4OCTET\n",
    ),
    Code(
        "E133",
        "A repeat count with too many digits",
        "A repeat count has at most 20 digits.",
        "a = 1*100000000000000000000000OCTET\n",
        "a = 1*OCTET\n",
    ),
    Code(
        "E134",
        "No white space between elements",
        "The elements of a concatenation are separated by white space.",
        'a = "x""y"\n',
        'a = "x" "y"\n',
    ),
    Code(
        "E135",
        "White space after a repeat count",
        "A repeat count comes directly before its element.",
        "a = 4 OCTET\n",
        "a = 4OCTET\n",
    ),
    Code(
        "E136",
        "A range of strings",
        "A range goes from one character to another.",
        'a = "AB"-"CD"\n',
        "a = %x41-5A\n",
    ),
    Code(
        "E137",
        "A character that is not allowed in a string",
        "Strings are printable ASCII. Write other octets as number values.",
        'a = "caf\u00e9"\n',
        'a = "caf" %xC3.A9\n',
    ),
    Code(
        "E138",
        "Groups nested too deeply",
        "Groups are nested at most 64 levels deep.",
        f'a = {"(" * 70}"x"{")" * 70}\n',
        'a = "x"\n',
    ),
    Code(
        "E139",
        "A grammar too large",
        "A grammar has at most 10,000 rules, 100,000 lines and 2,000,000 characters, and a rule at most "
        "100,000 "
        "characters. These limits are ten times the largest published grammars.",
        f"a = {'OCTET ' * 20_000}\n",
        "a = 20000OCTET\n",
    ),
)
"""Errors in either dialect."""

_DIALECT = (
    Code("103", "'|' between alternatives", "'|' is read as '/'.", 'a = "x" | "y"\n', 'a = "x" / "y"\n'),
    Code(
        "104",
        "A role in front of a name",
        "'C:HELLO' is read as the message HELLO, sent by C.",
        'a = C:b\nb = "x"\n',
        'a = b\nb = "x"\n',
    ),
    Code("105", "'_' in a name", "'_' and '-' are read as the same character.", 'a_b = "x"\n', 'a-b = "x"\n'),
    Code(
        "106", "A hexadecimal value in C notation", "'0x' is read as '%x'.", "a = 0xFF.FF\n", "a = %xFF.FF\n"
    ),
    Code(
        "107",
        "A number value without a base",
        "The number is read as hexadecimal.",
        "a = %00\n",
        "a = %x00\n",
    ),
    Code(
        "108",
        "Quotes inside a number value",
        "The value is read as the octets of the quoted characters.",
        "a = %d'M'\n",
        "a = %d77\n",
    ),
    Code(
        "109",
        "A range of one-character strings",
        "The range is read as a range of the two characters.",
        'a = "A"-"Z"\n',
        "a = %x41-5A\n",
    ),
    Code(
        "110",
        "'%' in front of a name",
        "The name is read as the rule of that name.",
        'a = %b-c\nb-c = "x"\n',
        'a = b-c\nb-c = "x"\n',
    ),
    Code(
        "111",
        "White space after '*'",
        "'*' is read as applying to the next element.",
        "a = * OCTET\n",
        "a = *OCTET\n",
    ),
    Code(
        "112",
        "An option inside a repetition",
        "Both the option and the repetition may be empty, so the option is read as a plain group.",
        "a = *[ OCTET ]\n",
        "a = *OCTET\n",
    ),
    Code(
        "113",
        "An alternative at the margin",
        "The line is read as another alternative of the rule above.",
        'a = "x"\n/ "y"\n',
        'a = "x"\n  / "y"\n',
    ),
    Code(
        "114",
        "A rule in another column",
        "The line is read as a new rule.",
        'a = "x"\n  b = "y"\n',
        'a = "x"\nb = "y"\n',
    ),
    Code(
        "115",
        "A rule that continues after a gap",
        "The line is read as part of the rule above.",
        'a = "x"\n\n    "y"\n',
        'a = "x"\n    "y"\n',
    ),
)
_ONLY_READ = {"112"}
"""Notation that the RFC allows, but with a meaning that the author did not intend."""


def _both(row: Code) -> Iterator[Code]:
    """Yield the error of dialect ``rfc5234`` and the warning of dialect ``zeromq`` for one row."""
    if row.code not in _ONLY_READ:
        meaning = "RFC 5234 does not allow this notation. The dialect zeromq does."
        yield Code(f"E{row.code}", row.title, meaning, row.wrong, row.right)
    yield Code(f"W{row.code}", row.title, row.meaning, row.wrong, row.right)


DIALECT = tuple(code for row in _DIALECT for code in _both(row))
"""Each is an error (E) in dialect ``rfc5234`` and a warning (W) of the same number in dialect ``zeromq``."""
