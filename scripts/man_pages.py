"""Manual pages of the command line, written from its help: ``make man``.

``python scripts/man_pages.py build/man`` writes ``specwire.1``, a page for each group of commands
(``specwire-filemq.1``) and one for each command (``specwire-filemq-serve.1``). The input is the
commands that the program runs, so a page and ``--help`` agree. Pages are ASCII: other characters
are written as groff escapes, so ``man``, ``groff -man`` and ``mandoc`` show them without a choice
of encoding.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from typer.main import get_command

from specwire import __version__
from specwire.runtime.cli import main as root

PROGRAM = "specwire"

_OF_GROUPS = "that of the command; 2 for a command that does not exist."
"""Exit status of the program and of its groups, whose help has none."""

_LAYOUT = (".nh", ".ad l")
"""Neither hyphens nor stretched spaces, so that commands and options can be copied and searched."""

_ESCAPES = {
    "\\": r"\e",
    "-": r"\-",
    "'": r"\[aq]",
    "`": r"\[ga]",
    "^": r"\[ha]",
    "~": r"\[ti]",
    '"': r"\[dq]",
}


@cache
def commands() -> dict[str, Any]:
    """Return the program, its groups and its commands by their words: ``specwire filemq serve``."""
    program: Any = get_command(root.app)
    program.params = [option for option in program.params if "completion" not in option.name]
    found = {PROGRAM: program}
    for name in root.COMMANDS:
        found.update(_tree(root.load_command(name), f"{PROGRAM} {name}"))
    return found


def page_name(words: str) -> str:
    """Return the name of the manual page of a command: ``specwire-filemq-serve``."""
    return words.replace(" ", "-")


def write_page(words: str) -> str:
    """Return the manual page of a command as roff."""
    return "".join(f"{line}\n" for line in _lines(words, commands()[words]))


def write_pages(folder: Path) -> int:
    """Write all pages to `folder`, and remove those of commands that no longer exist; return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {folder / f"{page_name(words)}.1": write_page(words) for words in commands()}
    for path, text in pages.items():
        path.write_text(text, encoding="ascii")
    for stale in {*folder.glob(f"{PROGRAM}*.1")} - pages.keys():
        stale.unlink()
    return len(pages)


def _tree(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _tree(below, f"{words} {name}")


def _lines(words: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=words)
    paragraphs = [" ".join(text.split()) for text in (command.help or "").split("\n\n")]
    parameters = [parameter for parameter in command.get_params(context) if not parameter.hidden]
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    options = [parameter for parameter in parameters if parameter.param_type_name == "option"]
    below = _below(words)

    yield f'.TH "{_escape(page_name(words).upper())}" 1 "" "{PROGRAM} {__version__}" "{PROGRAM} manual"'
    yield from _LAYOUT
    yield ".SH NAME"
    yield f"{_escape(page_name(words))} \\- {_text(_summary(paragraphs[0]))}"
    yield ".SH SYNOPSIS"
    pieces = chain.from_iterable(argument.get_usage_pieces(context) for argument in arguments)
    rest = ["COMMAND", "[ARGUMENTS]"] if below else pieces
    yield " ".join([f"\\fB{_escape(words)}\\fR", "[OPTIONS]", *map(_escape, rest)])
    yield ".SH DESCRIPTION"
    for number, paragraph in enumerate(paragraphs):
        yield from ([".PP"] if number else [])
        yield _text(paragraph)
    if below:
        yield ".SH COMMANDS"
        for child in below:
            yield from _item(f"\\fB{_escape(child.removeprefix(f'{words} '))}\\fR", _first_line(child))
    elif arguments:
        yield ".SH ARGUMENTS"
        for argument in arguments:
            yield from _item(f"\\fI{_escape(argument.metavar)}\\fR", argument.get_help_record(context)[1])
    yield ".SH OPTIONS"
    for option in options:
        spelling, about = option.get_help_record(context)
        yield from _item(_option(spelling), about)
    yield ".SH EXIT STATUS"
    yield from _statuses(" ".join((command.epilog or _OF_GROUPS).split()).removeprefix("Exit status: "))
    yield ".SH SEE ALSO"
    yield ",\n".join(f"\\fB{_escape(page_name(other))}\\fR(1)" for other in _related(words))


def _below(words: str) -> list[str]:
    """Return the commands directly below a group."""
    return [other for other in commands() if other.rpartition(" ")[0] == words]


def _related(words: str) -> list[str]:
    """Return the pages above, beside and below, each once; beside only within a group."""
    above = words.split(" ")
    parents = [" ".join(above[:count]) for count in range(1, len(above))]
    beside = _below(parents[-1]) if len(parents) > 1 else []
    return [other for other in (*parents, *beside, *_below(words)) if other != words]


def _first_line(words: str) -> str:
    """Return the line that the help of the group above has for a command."""
    top = words.removeprefix(f"{PROGRAM} ")
    return root.COMMANDS.get(top) or " ".join((commands()[words].help or "").partition("\n\n")[0].split())


def _summary(paragraph: str) -> str:
    """Return the first sentence as the section NAME has it: without a full stop, and with a small letter."""
    sentence = re.split(r"(?<=[.:]) (?=[A-Z])", paragraph)[0].rstrip(".:")
    return sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]


def _option(spelling: str) -> str:
    """Return ``-r, --rank NUMBER`` as roff: names bold, the value italic."""
    *names, last = re.split(r", | / ", spelling)
    last, _, value = last.partition(" ")
    bold = ", ".join(f"\\fB{_escape(name)}\\fR" for name in (*names, last))
    return bold + (f" \\fI{_escape(value)}\\fR" if value else "")


def _statuses(text: str) -> Iterator[str]:
    """Yield a row for each status of ``0; 1 where …; 2 for …``, or the text where it has another form."""
    parts = [re.fullmatch(r"(\d+),? ?(.*)", part) for part in text.rstrip(".").split("; ")]
    if not all(parts):
        yield _text(text[:1].upper() + text[1:])
        return
    for part in parts:
        assert part is not None
        yield from _item(f"\\fB{part[1]}\\fR", (part[2][:1].upper() + part[2][1:] or "Success") + ".")


def _item(term: str, about: str) -> Iterator[str]:
    yield ".TP"
    yield term
    yield _text(" ".join(about.split()))


def _text(words: str) -> str:
    """Return a line of text as roff; what stands in backquotes is bold."""
    pieces = re.split(r"`([^`]+)`", words)
    shown = "".join(
        f"\\fB{_escape(piece)}\\fR" if n % 2 else _escape(piece) for n, piece in enumerate(pieces)
    )
    return f"\\&{shown}" if shown.startswith((".", "\\[aq]")) else shown


def _escape(words: str) -> str:
    return "".join(_ESCAPES.get(letter) or _ascii(letter) for letter in words)


def _ascii(letter: str) -> str:
    return letter if letter.isascii() else f"\\[u{ord(letter):04X}]"


def main(arguments: Sequence[str]) -> int:
    """Write the pages to the folder that is named; return the exit status."""
    if len(arguments) != 1:
        print("usage: python scripts/man_pages.py FOLDER", file=sys.stderr)
        return 2
    print(f"{write_pages(Path(arguments[0]))} pages in {arguments[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
