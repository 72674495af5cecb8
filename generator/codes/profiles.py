"""E5xx: faults of profile.toml, and entries that do not fit the grammar."""

from __future__ import annotations

from specwire.generator.codes.row import Code

_GRAMMAR = "A = %x01 x\nx = 2OCTET\n"
_NAME = 'name = "demo"\n'
_C = '[roles.C]\nname = "client"\nsocket = "DEALER"\n'


def _row(code: str, title: str, meaning: str, wrong: str, right: str) -> Code:
    """Return a row whose examples are profiles of a correct grammar."""
    return Code(code, title, meaning, _GRAMMAR, _GRAMMAR, wrong, right)


PROFILES = (
    _row("E501", "Not TOML", "The profile is not a valid TOML file.", 'name = "demo\n', _NAME),
    _row(
        "E502",
        "An unknown key or a value of the wrong type",
        "docs/reference/grammars.md lists the keys of a profile.",
        _NAME + 'titel = "Demo"\n',
        _NAME + 'title = "Demo"\n',
    ),
    _row(
        "E503",
        "An invalid protocol name",
        "A protocol name consists of lower-case letters, digits and '_', and begins with a letter.",
        'name = "My-Protocol"\n',
        _NAME,
    ),
    _row(
        "E504",
        "A base that cannot be extended",
        "There is no protocol of that name, or it extends this one.",
        _NAME + 'base = "nowhere"\n',
        _NAME,
    ),
    Code(
        "E505",
        "No grammar",
        "The folder has no grammar.abnf, or the file cannot be read.",
        "",
        _GRAMMAR,
        _NAME,
        _NAME,
    ),
    _row(
        "E506",
        "An erratum that corrects nothing",
        "The grammar does not contain the rule or the text that the erratum corrects.",
        _NAME + '[[errata]]\nrule = "x"\nwas = "8OCTET"\nnow = "4OCTET"\nwhy = "The prose says so."\n',
        _NAME + '[[errata]]\nrule = "x"\nwas = "2OCTET"\nnow = "4OCTET"\nwhy = "The prose says so."\n',
    ),
    _row(
        "E507",
        "A message without a rule",
        "`messages` lists a name that is not a rule, or lists a rule twice.",
        _NAME + 'messages = ["B"]\n',
        _NAME + 'messages = ["A"]\n',
    ),
    Code(
        "E508",
        "No message",
        "Neither the profile nor the grammar defines which rules are messages.",
        "x = 2OCTET\n",
        _GRAMMAR,
        _NAME,
        _NAME,
    ),
    _row(
        "E509",
        "An answer with an unknown message",
        "`answers` and `unexpected` must name messages of the protocol.",
        _NAME + _C + '[unexpected]\nC = "B"\n',
        _NAME + _C + '[unexpected]\nC = "A"\n',
    ),
    _row(
        "E510",
        "An invalid value",
        "The value has the right type but is not allowed here.",
        _NAME + "[timers]\nheartbeat = -1.0\n",
        _NAME + "[timers]\nheartbeat = 1.0\n",
    ),
    _row(
        "E511",
        "A profile entry for something undefined",
        "The profile names a rule, a message, a field or a role that does not exist.",
        _NAME + '[types.y]\nunit = "octets"\n',
        _NAME + '[types.x]\nunit = "octets"\n',
    ),
    _row(
        "E512",
        "A default that does not fit",
        "The field cannot hold the value.",
        _NAME + "[types.x]\ndefault = 65536\n",
        _NAME + "[types.x]\ndefault = 65535\n",
    ),
    _row(
        "E513",
        "Rules or errata without a text",
        "The text of an erratum or of [[rules]] is empty, or does not hold one rule per line.",
        _NAME + '[[rules]]\nwhy = "The prose says so."\ntext = ""\n',
        _NAME,
    ),
)
