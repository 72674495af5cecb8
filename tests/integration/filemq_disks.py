"""Disks that misbehave, for tests: another user than root, a mount of a test, a limit of the system."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
WATCHES = "/proc/sys/user/max_inotify_watches"


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter; pytest's own are for one user."""
    with tempfile.TemporaryDirectory(prefix="specwire-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            for path in folder.rglob("*"):
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o755)


def as_nobody() -> list[str]:
    """Return a command that runs another as a user who is not root; skips if that user cannot start this Python."""
    if os.geteuid() != 0:
        return []
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if fault := _fault_in(*command, sys.executable, "-c", ""):
        pytest.skip(f"another user cannot start this Python: {fault}")
    return command


def give_to_nobody(folder: Path) -> None:
    """Let a user who is not root own a tree, if this one is root."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def run_as_nobody(folder: Path, story: Callable[[], None]) -> None:
    """Run `story` in a child process that is not root and owns `folder`; root may read what nobody else may."""
    if os.geteuid() != 0:
        story()
        return
    give_to_nobody(folder)

    def become_nobody() -> None:
        os.environ["HOME"] = str(folder)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)

    _run_in_child(become_nobody, story)


def run_with_own_mounts(story: Callable[[], None]) -> None:
    """Run `story` in a child process that may mount, where nobody else sees it; skips where the system refuses."""
    if fault := _fault_in(
        "unshare", *(() if os.geteuid() == 0 else ("-Ur",)), "-m", "mount", "-t", "tmpfs", "x", "/mnt"
    ):
        pytest.skip(f"no mount namespace here: {fault}")
    _run_in_child(_leave_mounts, story)


def _leave_mounts() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWNS | (CLONE_NEWUSER if user else 0)):
        raise OSError(ctypes.get_errno(), "unshare")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    run("mount", "--make-rprivate", "/")


def _run_in_child(prepare: Callable[[], None], story: Callable[[], None]) -> None:
    child = os.fork()
    if not child:
        status = 1
        try:
            prepare()
            story()
            status = 0
        except BaseException:  # noqa: BLE001  # it is shown, and the status tells the parent
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the story failed, see its traceback in standard error"


def run(*command: str | Path) -> None:
    """Run a command of the system, which must succeed."""
    subprocess.run(list(map(str, command)), check=True)


def limit_watches(number: int) -> list[str]:
    """Return a command that runs another with so many inotify watches; skips where the system refuses."""
    if fault := _fault_in("unshare", "-Ur", "sh", "-c", f"echo {number} > {WATCHES}"):
        pytest.skip(f"no user namespace here: {fault}")
    return ["unshare", "-Ur", "sh", "-c", f'echo {number} > {WATCHES}; exec "$@"', "sh"]


def _fault_in(*command: str) -> str | None:
    """Return why a command cannot be run here, None where it can."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return (done.stderr.strip() or "it fails") if done.returncode else None
