"""Conversion of the grammar's names to Python names.

``ICANHAZ-OK`` is the class ``IcanhazOk`` and the Construct ``ICANHAZ_OK``; ``hash-count`` the field
``hash_count``. A name that means something else in Python or in a generated package (a keyword, a
builtin, a method of messages, a module) gets a trailing ``_`` there and only there.
"""

from __future__ import annotations

import builtins
import keyword
import re

METHODS = frozenset({"encode", "replace", "to_dict", "wire_flags"})
MODULES = frozenset({"codec", "columns", "constructs", "machine", "payloads", "schema", "strategies"})
PACKAGE_NAMES = frozenset(
    {
        "ACCELERATED",
        "Any",
        "AnyMessage",
        "Callable",
        "ClassVar",
        "DecodeError",
        "EDITION",
        "EncodeError",
        "Flags",
        "Frames",
        "Given",
        "IntEnum",
        "IntFlag",
        "KeywordOnly",
        "LAYOUT",
        "MAX_FRAMES",
        "MAX_OCTETS",
        "MESSAGES",
        "Mapping",
        "MappingProxyType",
        "Message",
        "OCTETS",
        "PureMessage",
        "PureRecord",
        "SearchStrategy",
        "Sequence",
        "StreamDecoder",
        "Struct",
        "StructError",
        "TYPE_CHECKING",
        "UNEXPECTED",
        "Violation",
        "answer",
        "decode",
    }
)
"""Names that a package and its codec define."""
_CONSTRUCT_NAMES = frozenset(
    {
        "Any",
        "AtLeast",
        "Divided",
        "FLAGS",
        "MESSAGES",
        "Mapping",
        "MappingProxyType",
        "Sequence",
        "Stack",
        "Trailing",
        "Unterminated",
        "Until",
        "build",
        "build_frames",
        "cs",
        "frame",
        "message",
        "parse",
        "parse_frames",
    }
)
"""Names in a package's constructs module besides the declarations."""
PARAMETERS = frozenset(
    {
        "as_octets",
        "bits_of",
        "frames",
        "index_of",
        "padded",
        "run_end",
        "self",
        "sized",
        "strict",
        "terminated",
        "unsigned",
        "view_of",
        "without_nul",
    }
)
"""Names that the methods of messages use themselves."""
_TAKEN = (
    PARAMETERS
    | frozenset(keyword.kwlist)
    | frozenset(keyword.softkwlist)
    | frozenset(dir(builtins))
    | METHODS
    | MODULES
)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[-_:\s]+", name) if word]


def snake_case(name: str) -> str:
    """Return the field name as Spark, JSON and errors show it."""
    return "_".join(word.lower() for word in _words(name))


def attribute(name: str) -> str:
    """Return the Python attribute for a field of that (snake case) name."""
    return f"{name}_" if name in _TAKEN else name


def class_name(rule: str) -> str:
    """Return the class for a message rule; a role in front (``C:request``) is not part of it."""
    bare = rule.rpartition(":")[2]
    name = "".join(word[:1].upper() + word[1:].lower() for word in _words(bare))
    return f"{name}_" if name in _TAKEN or name in PACKAGE_NAMES else name


def constant_name(name: str) -> str:
    """Return the module constant for a grammar name: ``nodeid-any`` is ``NODEID_ANY``."""
    return "_".join(word.upper() for word in _words(name))


def construct_name(rule: str) -> str:
    """Return the Construct declaration's name: the rule's spelling with ``-`` and ``:`` as ``_``."""
    name = re.sub(r"[-:]", "_", rule)
    taken = keyword.iskeyword(name) or name in dir(builtins) or name in _CONSTRUCT_NAMES
    return f"{name}_" if taken else name


def enum_name(rule: str) -> str:
    """Return the class for an enumeration rule: ``content-type`` is ``ContentType``."""
    return "".join(word.capitalize() for word in snake_case(rule).split("_"))


def fold(name: str) -> str:
    """Return a grammar name in the form in which names are compared: without case, ``_`` as ``-``."""
    return name.lower().replace("_", "-")
