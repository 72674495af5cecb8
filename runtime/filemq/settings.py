"""Settings of ``specwire filemq serve`` and ``subscribe``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from specwire.runtime.filemq.access import (
    PASSWORD_VARIABLE,
    check_client_security,
    check_server_security,
    load_clients,
    load_passwords,
    read_key,
)
from specwire.runtime.filemq.codec import DIALECTS, FILEMQ, find_dialect
from specwire.runtime.filemq.names import check_pattern
from specwire.runtime.filemq.policy import InboxRules, PublicationRules
from specwire.runtime.filemq.publication import DEFAULT_RULES, Publication
from specwire.runtime.kernel.settings import Setting
from specwire.runtime.kernel.settings_groups import (
    FIRST_MESSAGE_BOUND,
    LOG_FORMAT,
    UNFINISHED_BOUND,
    CaptureSettings,
    MetricsSettings,
    check_connecting,
    check_file,
    check_folder,
    check_listening,
    check_secret_key,
)
from specwire.runtime.log.form import LogForm
from specwire.runtime.transport.inflow import InflowBounds
from specwire.runtime.transport.router import MAX_FRAME_OCTETS

if TYPE_CHECKING:
    from specwire.runtime.filemq.digeststore import DigestStore

BOUNDS = InflowBounds(message_octets=MAX_FRAME_OCTETS, legal_octets=MAX_FRAME_OCTETS)
"""Each command of a client is one frame."""

DAY_S = 24 * 3600.0
_INBOX = InboxRules()
_DIALECTS = ", ".join(f"{dialect.name} ({dialect.title})" for dialect in DIALECTS.values())


def read_publication(
    text: str,
    *,
    alone: bool,
    digests: DigestStore | None = None,
    rules: PublicationRules = DEFAULT_RULES,
) -> Publication:
    """Return the publication that ``FOLDER`` or ``FOLDER=/PATH`` means; raises ValueError."""
    name, separator, path = text.rpartition("=/")
    has_path = bool(separator) and not Path(text).is_dir()
    folder = Path(name if has_path else text)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    if not has_path:
        path = "" if alone else folder.resolve().name
    return Publication(folder.resolve(), f"/{path}", digests=digests, rules=rules)


def _check_folder_text(text: str) -> None:
    read_publication(text, alone=False)


def _check_server_key(text: str) -> None:
    read_key(text, Path())


class PeerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of servers and subscribers."""

    protocol: Annotated[
        str, Setting(help=f"Wire format of the other side: {_DIALECTS}.", value="NAME", check=find_dialect)
    ] = FILEMQ.name
    capture: CaptureSettings = CaptureSettings()
    quiet: Annotated[
        bool, Setting(help="Log peers and refusals, but no single files, and show no bars.", reload=True)
    ] = False
    json: Annotated[
        bool, Setting(help="At the end, write the status with all counters to standard output as JSON.")
    ] = False
    report_every: Annotated[
        float,
        Meta(ge=0),
        Setting(
            help="Time between two lines of counters in the log; 0 for none.",
            value="SECONDS",
            rare=True,
            reload=True,
        ),
    ] = 600
    status: Annotated[bool, Setting(help="Answer `specwire filemq status`.", rare=True)] = True
    metrics: MetricsSettings = MetricsSettings()
    log_format: Annotated[LogForm, LOG_FORMAT] = LogForm.TEXT


class ServeSettings(PeerSettings, frozen=True, kw_only=True):
    """Publish folders, and send every change to the clients that subscribed."""

    folders: Annotated[
        tuple[str, ...],
        Setting(
            help="Folders to publish. A single one is published at /, several each at its own name.",
            value="FOLDER[=/PATH]",
            argument=True,
            paths_end="",
            check=_check_folder_text,
        ),
    ]
    endpoint: Annotated[
        str,
        Setting(
            help="Endpoint to listen on; port * takes any free port.",
            value="ENDPOINT",
            check=check_listening,
        ),
    ] = "tcp://127.0.0.1:5670"
    curve: Annotated[
        Path | None,
        Setting(
            help=(
                "Encrypt, and prove the server's identity, with this secret key (.key_secret; "
                "`specwire keys` generates one)."
            ),
            value="FILE",
            reload=True,
            check=check_secret_key,
        ),
    ] = None
    clients: Annotated[
        Path | None,
        Setting(
            help=(
                "With --curve: admit only the clients in this TOML file, each with a table [NAME], "
                "its key and its paths."
            ),
            value="FILE",
            reload=True,
            check=load_clients,
        ),
    ] = None
    plain: Annotated[
        Path | None,
        Setting(
            help=(
                "Ask for the passwords in this TOML file, which has a table [NAME] with password "
                "and paths for each user. Not encrypted."
            ),
            value="FILE",
            reload=True,
            check=load_passwords,
        ),
    ] = None
    insecure: Annotated[
        bool, Setting(help="Listen on addresses that other machines can reach, even without --curve.")
    ] = False
    accept_empty: Annotated[
        bool,
        Setting(
            help=(
                "Withdraw the files that the first walk does not find, although a folder that held "
                "files is empty, or lies on another device than before. Without it they stay "
                "listed."
            ),
            reload=True,
        ),
    ] = False
    dry_run: Annotated[
        bool, Setting(help="Print the files that would be published, and end. Nothing is changed.")
    ] = False
    empty_folders: Annotated[
        bool, Setting(help="Publish empty folders, too. Subscribers with --preserve create them.")
    ] = False
    ignore: Annotated[
        tuple[str, ...],
        Setting(
            help=(
                "Do not publish files that match this pattern, as in a .gitignore in each folder. "
                "Repeatable. Files that become ignored are withdrawn like deleted ones."
            ),
            value="PATTERN",
            reload=True,
            check=check_pattern,
        ),
    ] = ()
    settle: Annotated[
        float,
        Meta(ge=0),
        Setting(
            help="Publish a growing file when it has not changed for this time; 0 for at once.",
            value="SECONDS",
            rare=True,
        ),
    ] = 1.0
    message_octets: Annotated[int, Meta(ge=1), FIRST_MESSAGE_BOUND] = BOUNDS.message_octets
    undelivered_octets: Annotated[int, Meta(ge=1), UNFINISHED_BOUND] = BOUNDS.undelivered_octets
    digests: Annotated[
        Path | None,
        Setting(
            help=(
                "Keep the digests of the published files in this folder, so that a restart does not "
                "read the files again. Default: the user's cache folder."
            ),
            value="FOLDER",
            rare=True,
            writes=True,
            check=check_folder,
        ),
    ] = None
    no_digests: Annotated[
        bool, Setting(help="Keep no digests: read every file at each start.", rare=True)
    ] = False

    def __post_init__(self) -> None:
        check_server_security(curve=self.curve, clients=self.clients, plain=self.plain)
        if self.no_digests and self.digests is not None:
            raise ValueError("digests and no-digests exclude each other")


class SubscribeSettings(PeerSettings, frozen=True, kw_only=True):
    """Keep a folder equal to what a server publishes under the paths."""

    server: Annotated[
        str,
        Setting(help="Endpoint of the server.", value="SERVER", argument=True, check=check_connecting),
    ]
    paths: Annotated[
        tuple[str, ...], Setting(help="Virtual paths; / is everything.", value="PATH", argument=True)
    ]
    inbox: Annotated[
        Path,
        Setting(help="Folder that receives the files.", value="FOLDER", writes=True, check=check_folder),
    ]
    dry_run: Annotated[
        bool,
        Setting(help="Print the files that would be received and deleted, and end. Nothing is changed."),
    ] = False
    curve: Annotated[
        Path | None,
        Setting(
            help=(
                "Encrypt, and prove the client's identity, with this secret key (.key_secret; "
                "`specwire keys` generates one)."
            ),
            value="FILE",
            check=check_secret_key,
        ),
    ] = None
    server_key: Annotated[
        tuple[str, ...],
        Setting(
            help=(
                "With --curve: the public key that the server must prove, or its .key file. "
                "Repeatable, for a server that is about to change its key; the first one names the "
                "server in the inbox."
            ),
            value="KEY",
            paths_end=".key",
            check=_check_server_key,
        ),
    ] = ()
    user: Annotated[
        str | None,
        Setting(
            help=f"User name for a server that asks for passwords. The variable {PASSWORD_VARIABLE} or "
            "--password-file has the password.",
            value="NAME",
        ),
    ] = None
    password_file: Annotated[
        Path | None,
        Setting(help="File with the password of --user in its first line.", value="FILE", check=check_file),
    ] = None
    accept_deletions: Annotated[
        bool,
        Setting(
            help="Perform the deletions that are withheld, and all others until none came for ten minutes.",
            reload=True,
        ),
    ] = False
    ignore: Annotated[
        tuple[str, ...],
        Setting(
            help=(
                "Neither receive nor delete files that match this pattern, as in a .gitignore in "
                "the inbox. Repeatable."
            ),
            value="PATTERN",
            check=check_pattern,
        ),
    ] = ()
    origin: Annotated[
        str | None,
        Setting(
            help=(
                "Name of the server in the inbox. Only the server that sent a file may delete it. "
                "Without CURVE the name is the endpoint: after a move, give the old endpoint."
            ),
            value="TEXT",
            rare=True,
        ),
    ] = None
    preserve: Annotated[
        bool,
        Setting(
            help=(
                "Give files the modes and modification times that they have at the server, and "
                "create its empty folders."
            )
        ),
    ] = False
    check: Annotated[
        bool,
        Setting(
            help=(
                "Compare the SHA-1 of each file with the announced one while it arrives. Without "
                "it, large files arrive faster over a fast network; with --curve, changes on the "
                "way are detected in any case."
            ),
            rare=True,
        ),
    ] = True
    delete_share: Annotated[
        float,
        Meta(ge=0, le=1),
        Setting(
            help=(
                "Withhold deletions that would remove more than this share of the files within ten "
                "minutes. Ten files may always be deleted."
            ),
            value="SHARE",
            rare=True,
        ),
    ] = _INBOX.delete_share
    delete_files: Annotated[
        int,
        Meta(ge=0),
        Setting(
            help="Withhold deletions that would remove more than this number of files within ten minutes.",
            value="NUMBER",
            rare=True,
        ),
    ] = _INBOX.delete_files
    trash_days: Annotated[
        float,
        Meta(ge=0),
        Setting(
            help="Keep deleted and replaced files for this time in .specwire-inbox/trash; 0 to keep none.",
            value="DAYS",
            rare=True,
        ),
    ] = _INBOX.trash_s / DAY_S
    check_every: Annotated[
        float,
        Meta(ge=0.1),
        Setting(
            help=(
                "Time between two comparisons of the inbox with what was received. Files that "
                "differ are fetched again."
            ),
            value="SECONDS",
            rare=True,
        ),
    ] = _INBOX.check_s

    def __post_init__(self) -> None:
        check_client_security(
            curve=self.curve,
            server_key=self.server_key,
            user=self.user,
            password_file=self.password_file,
        )
        if self.dry_run and self.protocol != FILEMQ.name:
            raise ValueError(f"dry-run requires the protocol {FILEMQ.name}: {self.protocol} has no listings")

    @property
    def rules(self) -> InboxRules:
        """Rules of the inbox."""
        return InboxRules(
            delete_share=self.delete_share,
            delete_files=self.delete_files,
            accept_deletions=self.accept_deletions,
            trash_s=self.trash_days * DAY_S,
            check_s=self.check_every,
            ignore=self.ignore,
        )
