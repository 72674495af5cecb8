"""Comparison of single sentences with a compiled protocol: constants, sizes, senders, fields, names.

Names are compared as the grammar compares them. A name that is also an ordinary word counts only where
a sentence writes it as a name: in quotes or markup, in capitals, or next to a word such as ``field``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from specwire.generator import ir
from specwire.generator.documents.senders import SENDING
from specwire.generator.ir.names import fold
from specwire.generator.pipeline import Compilation

REQUIREMENT = re.compile(
    r"\b(?:MUST|SHALL|SHOULD|MAY|REQUIRED|RECOMMENDED|OPTIONAL|must|shall)\b(?: (?:NOT|not)\b)?"
)
"""Words of RFC 2119, ``must`` and ``shall`` also in lower case."""
_TERM = re.compile(
    r"(?:<tt>|[*`'\"]*)(?P<name>[A-Za-z][\w-]*)(?:</tt>|[*`'\"]*)[ \t]*(?:[:=]|-{1,2}|\u2013|\u2014)"
)
_NAME = re.compile(r"(?<![\w-])[A-Za-z][\w-]*\w(?![\w-])")
_MARK = r"(?:<tt>|[`'\"*\u2018\u201c])"
_OCTETS = re.compile(
    r"(?:%x[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f]{2})*|0x[0-9A-Fa-f]{2}\b)(?:[ ,]*(?:%x|0x)[0-9A-Fa-f]{2}\b)*"
)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "six": 6, "eight": 8, "ten": 10, "sixteen": 16}
_SIZE = re.compile(rf"\b(\d{{1,4}}|{'|'.join(_NUMBERS)})[- ](?:octets?|bytes?)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Shown:
    """Names of the compiled protocol, and what it shows about them."""

    compiled: Compilation

    @cached_property
    def rules(self) -> dict[str, str]:
        """Names of rules and messages as they are compared. The protocol's own name is no rule's."""
        protocol = self.compiled.protocol
        own = {fold(protocol.name), *map(fold, protocol.edition.split()[:1])}
        names = [rule.name for rule in self.compiled.grammar.rules]
        names += [message.name for message in protocol.messages]
        return {fold(name): name for name in names if fold(name) not in own}

    @cached_property
    def fields(self) -> list[ir.Field]:
        """Fields of all messages."""
        return [field for message in self.compiled.protocol.messages for field in message.fields]

    @cached_property
    def constants(self) -> set[bytes]:
        """Octets that the layouts fix."""
        types = [field.type for field in self.fields]
        return {type.octets for type in types if isinstance(type, ir.ConstantType)}

    def messages_in(self, text: str) -> list[ir.Message]:
        """Return the messages that a text names."""
        named = {fold(word) for word in _NAME.findall(text) if is_name(word, text)}
        return [message for message in self.compiled.protocol.messages if fold(message.name) in named]

    def sizes(self, name: str) -> set[int]:
        """Return the octets of the fields of a name that have a fixed size."""
        found = {_octets_of(field.type) for field in self.fields if fold(field.name) == fold(name)}
        return {size for size in found if size is not None}

    def rules_in(self, text: str) -> list[str]:
        """Return the rules that a text names."""
        names = self.rules
        return [
            names[fold(word)] for word in _NAME.findall(text) if fold(word) in names and is_name(word, text)
        ]

    def answers_unexpected(self, text: str) -> bool:
        """Whether a text states the reply to an unexpected message that the profile has, too."""
        replies = {reply for _, reply in self.compiled.protocol.unexpected}
        named = {message.class_name for message in self.messages_in(text)}
        return "unexpected" in text.lower() and bool(named) and named <= replies

    def compare(self, text: str) -> tuple[str, str]:
        """Return what of the protocol accounts for a sentence, and how the protocol differs from it.

        Both are empty if the sentence states nothing that can be compared.
        """
        for check in (self._constants, self._sizes, self._sender):
            reason, note = check(text)
            if reason or note:
                return reason, note
        return "", ""

    def _constants(self, text: str) -> tuple[str, str]:
        found = [_octets_in(match.group()) for match in _OCTETS.finditer(text)]
        unknown = [octets for octets in found if octets not in self.constants]
        # A single octet is often one of several values.
        wrong = next((octets for octets in unknown if len(octets) > 1), None)
        if wrong is not None:
            return "", f"no message has the constant octets {wrong.hex(' ').upper()}"
        return ("a constant", "") if found and not unknown else ("", "")

    def _sizes(self, text: str) -> tuple[str, str]:
        stated = [found.lower() for found in _SIZE.findall(text)]
        named = {name: sizes for name in self.rules_in(text) if (sizes := self.sizes(name))}
        if len(stated) != 1 or len(named) != 1:
            return "", ""
        ((name, sizes),) = named.items()
        size = _NUMBERS.get(stated[0]) or int(stated[0])
        return (
            ("a size", "")
            if sizes == {size}
            else ("", f"'{name}' has {_either(sizes)} octets in the grammar")
        )

    def _sender(self, text: str) -> tuple[str, str]:
        roles = {role.name.lower(): role.letter for role in self.compiled.protocol.roles}
        if not roles:
            return "", ""
        subject = re.search(
            rf"\b(?:the|an?|each|every)\s+({'|'.join(map(re.escape, roles))})\b", text, re.IGNORECASE
        )
        sending = SENDING.search(text, subject.end()) if subject else None
        messages = self.messages_in(text[sending.end() :]) if sending else []
        if subject is None or not messages:
            return "", ""
        for message in messages:
            if roles[subject[1].lower()] not in message.senders:
                return "", f"the {subject[1].lower()} cannot send {message.name} in the dialog"
        return "the sender of a message", ""

    def describes_field(self, text: str) -> bool:
        """Whether a text only describes a field that a message has: ``path - where the file is``."""
        term = None if REQUIREMENT.search(text) else _TERM.match(text)
        return term is not None and fold(term["name"]) in {fold(field.name) for field in self.fields}


def _octets_of(type: ir.Type) -> int | None:
    match type:
        case ir.ConstantType(octets=octets):
            return len(octets)
        case ir.IntegerType(octets=octets):
            return octets
        case ir.UuidType():
            return 16
    return None


def _octets_in(text: str) -> bytes:
    return bytes.fromhex("".join(re.findall(r"[0-9A-Fa-f]{2}", re.sub("0x|%x", " ", text))))


def is_name(word: str, text: str) -> bool:
    """Whether a sentence writes a word as a name."""
    if re.search(r"[-_\d]", word) or (word.isupper() and len(word) > 1):
        return True
    name = re.escape(word)
    before = r"\b(?:field|frame)\s+"
    after = r"\s+(?:field|frame|command|octets?|bytes?)\b"
    pattern = rf"{_MARK}{name}(?!\w)|(?<![\w-]){name}{after}|{before}{name}(?![\w-])"
    return re.search(pattern, text) is not None


def _either(sizes: Iterable[int]) -> str:
    return " or ".join(map(str, sorted(sizes)))
