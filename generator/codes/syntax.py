"""E1xx, faults of the syntax; and E1xx with W1xx, what ZeroMQ specifications write beyond RFC 5234."""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator.codes.row import Code

SYNTAX = (
    Code("E100", "No rule", "The text holds nothing but comments and blanks.", "; to do\n", 'greeting = "hello"\n'),
    Code("E101", "Not expected here", "A character or a word stands where ABNF allows none such.", "a = b - c\n", "a = b c\n"),
    Code(
        "E102", "A line outside of every rule",
        "The line neither begins a rule nor is it indented deeper than the rule above it.",
        'a = "x"\nand more\n', 'a = "x"\n    "and more"\n',
    ),
    Code("E120", "A rule without definition", "Nothing stands behind the '='.", "a =\n", 'a = "x"\n'),
    Code("E121", "An empty alternative", "Nothing stands between two '/', or beside one.", 'a = "x" /\n', 'a = [ "x" ]\n'),
    Code("E122", "Brackets that do not match", "A bracket is never closed, or closed by another kind.", 'a = ( "x"\n', 'a = ( "x" )\n'),
    Code("E123", "A repeat of nothing", "No element stands behind a repeat count.", "a = 4\n", "a = 4OCTET\n"),
    Code("E124", "A string that is never closed", "A string ends in the line in which it begins.", 'a = "x\n', 'a = "x"\n'),
    Code("E125", "A prose value that is never closed", "Words in '<' end with '>' in the same line.", "a = <words\n", "a = <words>\n"),
    Code(
        "E126", "Not a number", "Behind '%x', '%d' or '%b' stands what is no number of that base.",
        "a = %xZZ\n", "a = %xAA\n",
    ),
    Code("E127", "A rule defined with ':'", "ABNF writes '=' alone.", 'a ::= "x"\n', 'a = "x"\n'),
    Code(
        "E128", "A character that ABNF does not know",
        "Outside of comments ABNF is ASCII: a dash or a quote may come from a word processor.",
        "a = \u201cx\u201d\n", 'a = "x"\n',
    ),
    Code("E129", "Not UTF-8", "The file holds octets that are not UTF-8, or is no text at all.", "a = \udcff\n", "a = %xFF\n"),
    Code("E130", "A value beyond the last character", "Number values go up to 10FFFF.", "a = %xFFFFFFFF\n", "a = %xFF.FF.FF.FF\n"),
    Code("E131", "A range that runs backwards", "The lower value comes first.", "a = %x5A-41\n", "a = %x41-5A\n"),
    Code("E132", "A repeat that runs backwards", "The lower count comes first.", "a = 4*2OCTET\n", "a = 2*4OCTET\n"),
    Code("E133", "A repeat count too long to be meant", "Counts have at most 20 digits.", "a = 1*100000000000000000000000OCTET\n", "a = 1*OCTET\n"),
    Code("E134", "Elements without white space between", "The elements of a concatenation are set apart.", 'a = "x""y"\n', 'a = "x" "y"\n'),
    Code("E135", "White space behind a repeat count", "A count stands directly before its element.", "a = 4 OCTET\n", "a = 4OCTET\n"),
    Code("E136", "A range of strings", "A range goes from one character to another.", 'a = "AB"-"CD"\n', "a = %x41-5A\n"),
    Code(
        "E137", "A character that no string may hold", "Strings are printable ASCII; other octets are number values.",
        'a = "caf\u00e9"\n', 'a = "caf" %xC3.A9\n',
    ),
    Code("E138", "Groups nested too deep", "Groups inside groups go 64 deep at most.", f"a = {'(' * 70}\"x\"{')' * 70}\n", 'a = "x"\n'),
    Code(
        "E139", "A grammar too large",
        "A grammar has at most 10,000 rules, 100,000 lines and 2,000,000 characters, and a rule 100,000 characters: "
        "ten times what anybody published. Beyond that it is refused at once.",
        f"a = {'OCTET ' * 20_000}\n", "a = 20000OCTET\n",
    ),
)  # fmt: skip
"""Read to the letter of the RFC."""

_DIALECT = (
    Code("103", "'|' between alternatives", "It is read as '/'.", 'a = "x" | "y"\n', 'a = "x" / "y"\n'),
    Code("104", "A role in front of a name", "It is read as the message and who sends it.", 'a = C:b\nb = "x"\n', 'a = b\nb = "x"\n'),
    Code("105", "'_' in a name", "'_' and '-' are read alike.", 'a_b = "x"\n', 'a-b = "x"\n'),
    Code("106", "A hexadecimal value written as in C", "'0x' is read as '%x'.", "a = 0xFF.FF\n", "a = %xFF.FF\n"),
    Code("107", "A number value without its base", "It is read as hexadecimal.", "a = %00\n", "a = %x00\n"),
    Code("108", "Quotes inside a number value", "It is read as the octets of the characters.", "a = %d'M'\n", "a = %d77\n"),
    Code("109", "A range of one-character strings", "It is read as the range of the two characters.", 'a = "A"-"Z"\n', "a = %x41-5A\n"),
    Code("110", "'%' in front of a name", "It is read as the rule of that name.", 'a = %b-c\nb-c = "x"\n', 'a = b-c\nb-c = "x"\n'),
    Code("111", "White space behind '*'", "The repeat and what follows are read together.", "a = * OCTET\n", "a = *OCTET\n"),
    Code("112", "An option inside a repetition", "Either may be empty, so it is read as a repeated group.", "a = *[ OCTET ]\n", "a = *OCTET\n"),
    Code("113", "An alternative at the margin", "It is read as one more alternative of the rule above.", 'a = "x"\n/ "y"\n', 'a = "x"\n  / "y"\n'),
    Code("114", "A rule in another column", "It is read as a rule of its own.", 'a = "x"\n  b = "y"\n', 'a = "x"\nb = "y"\n'),
    Code("115", "A rule that goes on after a gap", "It is read as part of the rule above.", 'a = "x"\n\n    "y"\n', 'a = "x"\n    "y"\n'),
)  # fmt: skip
_ONLY_READ = {"112"}
"""What the RFC allows, with a meaning that its author did not intend."""


def _both(row: Code) -> Iterator[Code]:
    """The row as the error of dialect ``rfc5234`` and as the warning of dialect ``zeromq``."""
    if row.code not in _ONLY_READ:
        meaning = "RFC 5234 does not allow it; dialect zeromq reads it."
        yield Code(f"E{row.code}", row.title, meaning, row.wrong, row.right)
    yield Code(f"W{row.code}", row.title, row.meaning, row.wrong, row.right)


DIALECT = tuple(code for row in _DIALECT for code in _both(row))
"""Each is an error (E) where a grammar is read to the letter, and a warning (W) of the same number elsewhere."""
