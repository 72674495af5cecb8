"""`specwire config systemd`: a unit that runs a server as a service, with its configuration."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from specwire.runtime.cli.config_faults import fail_with
from specwire.runtime.cli.config_sections import SECTIONS, check_section, load_section
from specwire.runtime.cli.console import fail, output
from specwire.runtime.kernel.settings_sources import ConfigurationError, read_found

FILE = Path("/etc/specwire/specwire.toml")
STATE = Path("/var/lib/specwire")
"""What systemd makes of ``StateDirectory=specwire``."""

INSTANCES: Mapping[str, str] = {"norfab.worker": "--name %i"}
"""Sections of which a machine runs several: the unit is a template, and this tells its instances apart."""

NOT_RELOADED = ("pipeline.watch",)
"""Sections of commands that SIGHUP ends."""

STOPPING = {
    "pipeline.watch": """\
# The watch stops its Java process itself after the current batch. The answers may take minutes.
KillMode=mixed
TimeoutStopSec=600
"""
}
"""What a section's unit says of its end, where that is not the same as for the others."""

UNIT = """\
# {name}: `specwire {command}` as a service.
# It reads {file}{again}.

[Unit]
Description=specwire {command}: {title}
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart={program} {command} --config {file}{instance}
{reload}Restart=on-failure
RestartSec=2
# A restart does not fix a faulty configuration.
RestartPreventExitStatus=2
{stopping}LimitNOFILE=65536

User=specwire
StateDirectory=specwire
CacheDirectory=specwire
# Several servers share these folders. Stopping one must not remove the sockets of the others.
RuntimeDirectory=specwire
RuntimeDirectoryPreserve=yes
WorkingDirectory=%S/specwire
Environment=XDG_DATA_HOME=%S XDG_CACHE_HOME=%C XDG_RUNTIME_DIR=%t/specwire
UMask=0077
{writing}
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateDevices=yes
PrivateTmp=yes
# libzmq reads the network interfaces over netlink when it binds, and aborts if it cannot.
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"""


def systemd(
    section: Annotated[
        str, typer.Argument(help=f"Server: {', '.join(SECTIONS)}.", metavar="SECTION", show_default=False)
    ],
    file: Annotated[Path, typer.Option("--config", metavar="FILE", help="What the server reads.")] = FILE,
    program: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The program specwire; default: the one that runs now.", show_default=False
        ),
    ] = None,
) -> None:
    """Write a unit for systemd to standard output. It may write the folders that FILE names."""
    check_section(section)
    file = file.absolute()
    if fault := next((each for each in map(_fault_in_word, (file, program)) if each), None):
        fail(fault)
    unit = unit_of(section, file, _program() if program is None else str(program.absolute()))
    output().print(unit, markup=False, soft_wrap=True, end="")


def unit_of(section: str, file: Path, program: str) -> str:
    """Return the text of a unit; raises CommandError where the file is there and cannot be used."""
    instance, reloads = INSTANCES.get(section, ""), section not in NOT_RELOADED
    writing = _written_by(section, file)
    return UNIT.format(
        name=f"specwire-{section.replace('.', '-')}{'@' if instance else ''}.service",
        command=section.replace(".", " "),
        title=load_section(section).title.rstrip("."),
        file=file,
        program=program,
        reload="ExecReload=/bin/kill -HUP $MAINPID\n" if reloads else "",
        again="; `systemctl reload` makes it read the file again" if reloads else "",
        instance=f" {instance}" if instance else "",
        stopping=STOPPING.get(section, "TimeoutStopSec=60\n"),
        writing=f"ReadWritePaths={' '.join(writing)}\n" if writing else "",
    )


def _written_by(section: str, file: Path) -> Sequence[str]:
    """Return the folders outside of the service's own that it writes to."""
    if not file.exists():
        return ()
    try:
        known = load_section(section)
        found = read_found(known, SECTIONS, file, {})
    except ConfigurationError as error:
        fail_with(error)
    folders = [found[each.key].value for each in known.settings if each.writes and each.key in found]
    outside = [folder for folder in folders if not folder.is_relative_to(STATE)]
    for folder in outside:
        if fault := _fault_in_word(folder):
            fail(fault)
    return [f"-{folder}" for folder in outside]


def _fault_in_word(path: Path | None) -> str | None:
    """Return why a unit cannot name a path, None where it can."""
    text = "" if path is None else os.fspath(path)
    if all(character.isprintable() and character not in " %$\\\"'" for character in text):
        return None
    return f"{text!r} has a character that means something else in a unit: give it another name"


def _program() -> str:
    found = shutil.which("specwire", path=os.path.dirname(sys.executable)) or shutil.which("specwire")
    return os.path.abspath(found) if found else f"{sys.executable} -m specwire"
