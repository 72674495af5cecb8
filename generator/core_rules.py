"""The core rules of RFC 5234 appendix B.1, which every grammar may use without defining them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from specwire.generator.abnf import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.syntax import Element

CORE_GRAMMAR = """\
ALPHA  = %x41-5A / %x61-7A
BIT    = "0" / "1"
CHAR   = %x01-7F
CR     = %x0D
CRLF   = CR LF
CTL    = %x00-1F / %x7F
DIGIT  = %x30-39
DQUOTE = %x22
HEXDIG = DIGIT / "A" / "B" / "C" / "D" / "E" / "F"
HTAB   = %x09
LF     = %x0A
LWSP   = *(WSP / CRLF WSP)
OCTET  = %x00-FF
SP     = %x20
VCHAR  = %x21-7E
WSP    = SP / HTAB
"""


@cache
def core_rules() -> Mapping[str, Element]:
    """Return the definition of each core rule by its name in capitals."""
    source = Source("RFC 5234 appendix B.1", CORE_GRAMMAR)
    rulelist = parse_grammar(source, dialect="rfc5234", diagnostics=Diagnostics())
    return MappingProxyType({rule.name: rule.definition for rule in rulelist.rules})
