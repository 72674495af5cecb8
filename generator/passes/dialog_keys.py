"""Checks that the keys of a dialog are fields of its messages.

A session matches a reply to its request by the values of the dialog's key. If a key is not a field of both
messages of an exchange, no reply ever matches and every reply is a violation.

    E310  a key, a keyless value or an unanswered bit that no message can hold
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.dialogs import Dialog, DialogSettings
from specwire.generator.profile.tables import LoadedProfile

Fields = Mapping[str, ir.Field]


def check_keys(
    dialogs: Sequence[Dialog],
    messages: Sequence[ir.Message],
    flags: Sequence[ir.FlagBit],
    loaded: LoadedProfile,
    diagnostics: Diagnostics,
) -> None:
    """Report entries of ``[[dialogs]]`` for fields that the messages do not have."""
    fields = {
        message.class_name: {field.name: field for field in message.fields if not field.constant}
        for message in messages
    }
    announcing = 0
    for flag in flags:
        announcing |= flag.value if flag.announces else 0
    by_name = {dialog.name: dialog for dialog in dialogs}
    for number, entry in enumerate(loaded.profile.dialogs):
        if entry.name in by_name:
            _Keys(by_name[entry.name], entry, number, fields, announcing, loaded, diagnostics).check()


@dataclass(frozen=True, slots=True)
class _Keys:
    """Checker of one dialog."""

    dialog: Dialog
    entry: DialogSettings
    number: int
    fields: Mapping[str, Fields]
    """The fields of each message class, by name."""
    announcing: int
    """The bits of the flags octet that announce frames; they are not fields of messages."""
    loaded: LoadedProfile
    diagnostics: Diagnostics

    def check(self) -> None:
        for index, name in enumerate(self.entry.key):
            if self._is_known(name, "key", index):
                self._check_pairs(name, index)
        for name, value in self.entry.keyless.items():
            if name in self.entry.key and any(name in fields for fields in self._spoken().values()):
                self._check_number(name, value, "keyless")
        for name, value in self.entry.unanswered.items():
            if self._is_known(name, "unanswered", name) and self._check_number(name, value, "unanswered"):
                self._check_bits(name, value)

    def _spoken(self) -> dict[str, Fields]:
        """The fields of the messages of this dialog, by label."""
        return {label: self.fields.get(label.partition(":")[2], {}) for label in self.dialog.labels}

    def _report(self, path: tuple[str | int, ...], message: str, help: str) -> None:
        place = self.loaded.place("dialogs", self.number, *path)
        self.diagnostics.error("E310", place, f"{message} in dialog '{self.dialog.name}'", help)

    def _is_known(self, name: str, *path: str | int) -> bool:
        known = dict.fromkeys(found for fields in self._spoken().values() for found in fields)
        if name in known:
            return True
        close = get_close_matches(name, known, n=1)
        listed = f"the fields are {', '.join([*known][:12])}" if known else "its messages have no fields"
        self._report(
            path, f"no message has a field '{name}'", f"did you mean '{close[0]}'?" if close else listed
        )
        return False

    def _check_pairs(self, name: str, index: int) -> None:
        """Report a request and a reply of which only one has the key."""
        spoken = self._spoken()
        for request, reply in self._pairs():
            if (name in spoken[request]) is (name in spoken[reply]):
                continue
            having, lacking = (request, reply) if name in spoken[request] else (reply, request)
            self._report(
                ("key", index),
                f"'{reply}' can never answer '{request}'",
                f"'{having}' has the key field '{name}', but '{lacking}' does not; name a field that both "
                "have",
            )

    def _pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each label that puts a token into a place, with each label that takes it from there."""
        reading = self.dialog.concurrent
        puts = [(start.label, start.place) for phase in reading.phases for start in phase.starts]
        puts += [(reply.label, reply.then) for reply in reading.replies]
        yield from dict.fromkeys(
            (label, reply.label) for label, place in puts for reply in reading.replies if reply.place == place
        )

    def _check_number(self, name: str, value: int, word: str) -> bool:
        types = [fields[name].type for fields in self._spoken().values() if name in fields]
        if not all(isinstance(type, ir.IntegerType) and 0 <= value < 256**type.octets for type in types):
            self._report(
                (word, name), f"field '{name}' cannot be {value}", "write an integer that the field can hold"
            )
            return False
        return True

    def _check_bits(self, name: str, value: int) -> None:
        types = [fields[name].type for fields in self._spoken().values() if name in fields]
        masked = any(isinstance(type, ir.IntegerType) and type.bitmask for type in types)
        if masked and value & self.announcing:
            self._report(
                ("unanswered", name),
                f"'{name}' never has bit 0x{value & self.announcing:02x}",
                "the bit announces a frame and is not part of the field; use another bit",
            )
