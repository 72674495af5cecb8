"""Handlers of a machine: for each side of a dialog, a method for every message that it receives.

A handler is a `typing.Protocol`. So when a regenerated package needs another method, the type
checker reports the hand-written classes that lack it. It is generic over the context that a program
passes with the message (the time, the peer), and over the return type of its methods (actions, an
awaitable).

If all sides of a dialog receive the same messages, they share one handler, named after the dialog.
An example is a connection on which either side may send requests. Otherwise a handler is named
after its role. A role that takes part in several dialogs has one handler for each, named after role
and dialog: a broker has one for its clients and one for its workers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.emit.python import paragraph, sentence
from specwire.generator.ir.dialogs import Dialog
from specwire.generator.ir.names import enum_name, snake_case

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_ -]*")


@dataclass(frozen=True, slots=True)
class Method:
    """Method for one message, for the template."""

    name: str
    message: str
    doc: str


@dataclass(frozen=True, slots=True)
class Handler:
    """Protocol class and its dispatch function; every attribute is Python source."""

    name: str
    function: str
    doc: str
    refusal: str
    """Error text for a message that the dialog does not allow for this side."""
    methods: tuple[Method, ...]


def handlers(protocol: ir.Protocol, roles: Mapping[str, str]) -> tuple[Handler, ...]:
    """Return the handlers of a protocol in the order of its dialogs; `roles` gives the name of each letter."""
    speaking = [letter for dialog in protocol.dialogs for letter in dialog.roles]
    found: dict[str, Handler] = {}
    for dialog in protocol.dialogs:
        for side in _sides(dialog, protocol):
            messages = _received(protocol, dialog, side)
            if not messages:
                continue
            words = [_word(side[0], roles)] if len(side) == 1 else []
            if len(side) > 1 or speaking.count(side[0]) > 1:
                words.append(dialog.name)
            title = _free("-".join(words), found)
            called = (
                f"the {words[0]}" if len(side) == 1 else "either side" if len(side) == 2 else "every side"
            )
            found[title] = _handler(title, dialog, called, messages)
    return tuple(found.values())


def _sides(dialog: Dialog, protocol: ir.Protocol) -> list[tuple[str, ...]]:
    """Return the letters of the roles of each handler."""
    received = [_received(protocol, dialog, (letter,)) for letter in dialog.roles]
    if len(received) > 1 and all(found == received[0] for found in received):
        return [dialog.roles]
    return [(letter,) for letter in dialog.roles]


def _received(protocol: ir.Protocol, dialog: Dialog, side: Sequence[str]) -> list[ir.Message]:
    """Return the messages that another role may send to one of `side`, in the order of the specification."""
    labels = (label.partition(":") for label in dialog.labels)
    classes = {name for sender, _, name in labels if any(sender != letter for letter in side)}
    return [message for message in protocol.messages if message.class_name in classes]


def _called(side: Sequence[str], roles: Mapping[str, str]) -> str:
    """Return the receiver in words: ``the server``, or the letter if the role has no name."""
    if len(side) > 1:
        return "either side" if len(side) == 2 else "every side"
    word = _word(side[0], roles)
    return word if word == side[0] else f"the {word}"


def _word(letter: str, roles: Mapping[str, str]) -> str:
    """Return the name of a role if it can be part of an identifier, else its letter."""
    return roles[letter] if _NAME.fullmatch(roles[letter]) else letter


def _handler(title: str, dialog: Dialog, side: str, messages: Sequence[ir.Message]) -> Handler:
    return Handler(
        name=f"{enum_name(title)}Handler",
        function=f"dispatch_to_{snake_case(title)}",
        doc=paragraph(f"Handler of the messages that {side} can receive in dialog {dialog.name}.", 4),
        refusal=f"dialog {dialog.name} has no such message for {side}",
        methods=tuple(
            Method(f"on_{snake_case(message.name)}", message.class_name, _doc(message))
            for message in messages
        ),
    )


def _doc(message: ir.Message) -> str:
    """Return the first sentence of a message's documentation."""
    meaning = sentence(message.doc.partition(". ")[0]) or "See the class of the message."
    return paragraph(f"{message.name}: {meaning}", 8)


def _free(title: str, taken: Mapping[str, object]) -> str:
    number = 2
    free = title
    while any(enum_name(free) == enum_name(other) for other in taken):
        free = f"{title}-{number}"
        number += 1
    return free
