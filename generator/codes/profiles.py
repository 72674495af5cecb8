"""E5xx: profile.toml, and whether it fits the grammar."""

from __future__ import annotations

from specwire.generator.codes.row import Code

_GRAMMAR = "A = %x01 x\nx = 2OCTET\n"
_NAME = 'name = "demo"\n'
_C = '[roles.C]\nname = "client"\nsocket = "DEALER"\n'


def _row(code: str, title: str, meaning: str, wrong: str, right: str) -> Code:
    """A row whose examples are profiles of a grammar without fault."""
    return Code(code, title, meaning, _GRAMMAR, _GRAMMAR, wrong, right)


PROFILES = (
    _row("E501", "Not TOML", "The profile cannot be read.", 'name = "demo\n', _NAME),
    _row("E502", "An unknown key, or a value of the wrong kind", "The keys of a profile are listed in docs/reference/grammars.md.", _NAME + 'titel = "Demo"\n', _NAME + 'title = "Demo"\n'),
    _row("E503", "A name that cannot name a package", "A protocol is called by lower-case letters, digits and '_', a letter first.", 'name = "My-Protocol"\n', _NAME),
    _row("E504", "A base that cannot be stood on", "There is no such protocol, or it stands on this one.", _NAME + 'base = "nowhere"\n', _NAME),
    Code("E505", "No grammar", "The folder has no grammar.abnf, or it cannot be read.", "", _GRAMMAR, _NAME, _NAME),
    _row(
        "E506", "An erratum that mends nothing", "The rule or the text that it mends is gone.",
        _NAME + '[[errata]]\nrule = "x"\nwas = "8OCTET"\nnow = "4OCTET"\nwhy = "The prose says so."\n',
        _NAME + '[[errata]]\nrule = "x"\nwas = "2OCTET"\nnow = "4OCTET"\nwhy = "The prose says so."\n',
    ),
    _row("E507", "A message without its rule", "`messages` lists what is no rule, or lists a rule twice.", _NAME + 'messages = ["B"]\n', _NAME + 'messages = ["A"]\n'),
    Code("E508", "No message", "Neither the profile nor the grammar says which rules are messages.", "x = 2OCTET\n", _GRAMMAR, _NAME, _NAME),
    _row(
        "E509", "An answer of a message that is none", "`answers` and `unexpected` name messages of the protocol.",
        _NAME + _C + '[unexpected]\nC = "B"\n', _NAME + _C + '[unexpected]\nC = "A"\n',
    ),
    _row("E510", "A value that cannot be meant", "The value has the right kind, and makes no sense.", _NAME + "[timers]\nheartbeat = -1.0\n", _NAME + "[timers]\nheartbeat = 1.0\n"),
    _row("E511", "A profile that speaks of nothing", "It names a rule, a message, a field or a role that does not exist.", _NAME + '[types.y]\nunit = "octets"\n', _NAME + '[types.x]\nunit = "octets"\n'),
    _row("E512", "A default that does not fit", "The field cannot hold the value.", _NAME + "[types.x]\ndefault = 65536\n", _NAME + "[types.x]\ndefault = 65535\n"),
    _row("E513", "Rules or errata without a text", "An erratum or [[rules]] is empty, or not one rule a line.", _NAME + '[[rules]]\nwhy = "The prose says so."\ntext = ""\n', _NAME),
)  # fmt: skip
