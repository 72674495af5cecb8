"""The command ``specwire``: a root, and a module for each sub-command, imported when called.

A sub-command is ``specwire.runtime.cli.<name>`` (``import_`` for ``import``), which exposes either
``app`` (a `typer.Typer`) or ``command`` (a function, whose exit statuses are told by
`EXIT_STATUSES`). `COMMANDS` holds the name and the help line of each, so that ``specwire --help``
imports none of them and ``specwire decode`` does not wait for Spark.

What a user can cause ends with a sentence on standard error and no stack trace: exit status 2 for
usage and bad input, 1 for a job that failed, 130 for an interrupt. A fault of our own keeps its
trace.
"""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping, Sequence
from errno import ENOSPC
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import specwire
from specwire.runtime.cli.console import CommandError, print_error
from specwire.runtime.cli.usage import UsageError, describe_usage_error, tidy

COMMANDS: Mapping[str, str] = {
    "run": "Do the whole job once: generate, transfer, capture, decode on Spark, report.",
    "generate": "Write the generated packages from the grammars, or check that they are current.",
    "check": "Report what is wrong with a grammar and its profile, and what was assumed.",
    "explain": "Say what a diagnostic code means, and what to write instead.",
    "show": "Print what a step of the generator makes of a document or a protocol.",
    "schema": "Print a protocol's schema for Spark or Arrow.",
    "decode": "Decode messages: from hexadecimal, hex dumps, packet captures and capture folders.",
    "encode": "Encode messages from their fields, to hexadecimal or a capture folder.",
    "import": "Make a grammar and profile of a published document, or bring them up to a new edition.",
    "update": "Bring a protocol and its package to a new edition, and report who must act.",
    "diff": "Report what changed between two editions of a protocol, and who can still read whom.",
    "match": "Say whether a text matches a rule of a grammar, and where it stops.",
    "filemq": "Publish folders over FILEMQ, or subscribe to them.",
    "flux": "Run an instance of Flux brokers, and talk to it.",
    "norfab": "Run a NORFAB broker and workers, and give jobs to them.",
    "zre": "Join a ZRE network, and talk to its peers.",
    "keys": "Make the CURVE keys of a peer.",
    "bridge": "Let clients that speak one dialect use a server that speaks another.",
    "capture": "Record what two peers say, and look after captures.",
    "config": "Check the settings of servers, print them, write an example or a systemd unit.",
    "peer": "Hold random valid conversations with a peer, and tell what it does against the machine.",
    "replay": "Play a recorded side against a live peer, and compare the answers.",
    "pipeline": "Decode captures on Spark into typed tables and a report.",
    "doctor": "Say what this machine can do with specwire, and what to do where it cannot.",
}

USER_ERRORS: Mapping[str, int] = {
    "specwire.generator.diagnostics.SpecError": 2,
    "specwire.generator.revisions.RevisionError": 2,
    "specwire.generator.targets.TargetError": 2,
    "specwire.generated.errors.CodecError": 2,
    "specwire.runtime.capture.errors.CaptureError": 2,
    "specwire.runtime.package_search.PackageError": 2,
    "specwire.runtime.spark.errors.InputError": 2,
    "specwire.runtime.spark.errors.PipelineError": 1,
    "specwire.runtime.transport.errors.TransportError": 1,
}
"""Exit status of errors whose text is meant for the user, by full name: nothing is imported."""

EXTRAS: Mapping[str, str] = {
    "lark": "compile",
    "ruff": "compile",
    "jinja2": "compile",
    "construct": "constructs",
    "zmq": "peers",
    "numpy": "arrow",
    "pyarrow": "arrow",
    "yaml": "norfab",
    "pandas": "spark",
    "pyspark": "spark",
    "grpc": "connect",
    "hypothesis": "testing",
    "prometheus_client": "metrics",
    "aiohttp": "metrics",
    "railroad": "docs",
    "grandalf": "docs",
}
"""Libraries that a plain installation lacks, and the extra that brings each."""

EXIT_STATUSES = "Exit status: 0; 2 for usage and bad input."
"""What the help of a command says where its module has no text of its own under this name."""

_OF_THE_ROOT = {"install_completion", "show_completion"}


class LazyGroup(TyperGroup):
    """The root group: lists every command, imports the one that is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, line in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line, short_help=line))

    # Any, because typer carries a private copy of click and exports none of these types.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the called command's name, the command itself instead of its line, and its arguments."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder and load_command(str(name)), rest


def load_command(name: str) -> Any:
    """Import the module of the sub-command `name` and return it as a command that typer can run."""
    # A module cannot be called `import`; its name ends with an underscore then.
    module = import_module(f"specwire.runtime.cli.{name}{'_' if keyword.iskeyword(name) else ''}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False)
        app.command(name, epilog=getattr(module, "EXIT_STATUSES", EXIT_STATUSES))(module.command)
    app.rich_markup_mode = None
    command = get_command(app)
    command.name = name
    command.params = [p for p in command.params if p.name not in _OF_THE_ROOT]
    tidy(command)
    return command


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="With --version: also the Python, and which packages run in C."),
    ] = False,
) -> None:
    """Turn published protocol specifications into working software, and run it."""
    if version:
        _print_version(verbose=verbose)
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        ctx.fail("Missing command.")


def _print_version(*, verbose: bool) -> None:
    sys.stdout.write(f"specwire {specwire.__version__}\n")
    if verbose:
        from specwire.runtime.doctor.programs import examine_codecs, examine_python

        for finding in (examine_python(), examine_codecs()):
            sys.stdout.write(f"{finding.name}: {finding.found}\n")
            if finding.advice:
                sys.stdout.write(f"  {finding.advice}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with `arguments` (default: the process's own); always ends by SystemExit."""
    try:
        words = None if arguments is None else list(arguments)
        sys.exit(app(words, prog_name="specwire", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        sys.exit(130)
    except typer.Abort:
        sys.exit(1)
    except Exception as error:
        told = explain(error)
        if told is None:
            raise
        status, sentence = told
        print_error(sentence)
        sys.exit(status)


def explain(error: Exception) -> tuple[int, str] | None:
    """Return the exit status and the text for an error that the user can fix, None for a fault of ours."""
    if isinstance(error, UsageError):
        # The error of a group that is called without a command holds the help of the group.
        is_help = type(error).__name__ == "NoArgsIsHelpError"
        return 2, str(error) if is_help else describe_usage_error(error)
    if isinstance(error, CommandError):
        return error.status, f"specwire: {error}"
    if isinstance(error, ModuleNotFoundError):
        library = (error.name or "").partition(".")[0]
        extra = EXTRAS.get(library)
        return (1, f"specwire: this needs {library}: pip install 'specwire[{extra}]'") if extra else None
    if isinstance(error, OSError) and error.filename is None and error.errno == ENOSPC:
        sys.stdout = None  # or Python tries again at its end, and says so
        return 1, f"specwire: standard output: {error.strerror}"
    if isinstance(error, OSError) and error.filename is not None:
        return 2, f"specwire: {error.filename}: {error.strerror}"
    for cls in type(error).__mro__:
        status = USER_ERRORS.get(f"{cls.__module__}.{cls.__qualname__}")
        if status is not None:
            # Diagnostics begin with their place, as a compiler's do.
            return status, str(error) if cls.__name__ == "SpecError" else f"specwire: {error}"
    return None


if __name__ == "__main__":
    main()
