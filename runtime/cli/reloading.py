"""Reload at SIGHUP: a server applies the settings that can change while it runs.

The log names changed settings that need a restart. A configuration with a fault changes nothing.
Files that the configuration names, such as the list of clients or the keys, are always read again.

Without a configuration and without such files, SIGHUP has its default action: it ends the process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from specwire.runtime.cli.config_faults import describe_faults
from specwire.runtime.forking import handle_signal
from specwire.runtime.kernel.settings import show_value
from specwire.runtime.kernel.settings_sources import ConfigurationError, ServerConfiguration
from specwire.runtime.log.text import show

Apply = Callable[[Any], str | None]
"""Applies a new value; returns the text to log in place of the value, or None."""


class Reloading:
    """Handler of SIGHUP.

    Args:
        configured: the configuration as read at the start.
        say: writes a line of the server's log.
        appliers: functions that apply a setting, by parameter; others need a restart. A settings
            struct marks exactly these as `reload`.
        rereads: functions that read files again, called after the configuration was read.
    """

    def __init__(
        self,
        configured: ServerConfiguration,
        say: Callable[[str], None],
        *,
        appliers: Mapping[str, Apply],
        rereads: Sequence[Callable[[], None]] = (),
    ) -> None:
        section = configured.section
        reloadable = {setting.parameter for setting in section.settings if setting.reload}
        assert section.struct is None or reloadable == set(appliers), "documentation and code disagree"
        self._configured, self._say = configured, say
        self._appliers, self._rereads = appliers, rereads
        self._is_ready = self._is_asked = False

    def listen(self) -> None:
        """Handle SIGHUP from now on, if there is anything to read again."""
        if self._configured.file is not None or self._rereads:
            handle_signal(signal.SIGHUP, self._hang_up)

    def begin(self) -> None:
        """Reload if SIGHUP came before the server was ready; from now on, reload at once."""
        self._is_ready = True
        if self._is_asked:
            self.reload()

    def _hang_up(self) -> None:
        if self._is_ready:
            self.reload()
        else:
            self._is_asked = True

    def reload(self) -> None:
        """Read everything again."""
        if self._configured.file is not None:
            self._read_again()
        for reread in self._rereads:
            reread()

    def _read_again(self) -> None:
        try:
            changed = self._configured.read_again(os.environ)
        except ConfigurationError as error:
            for line in describe_faults(error):
                self._say(show(f"the configuration stays as it was: {line}"))
            return
        self._say(show(f"the configuration was read again: {self._configured.file}"))
        later = []
        for setting in self._configured.section.settings:
            if setting.parameter not in changed:
                continue
            value = changed[setting.parameter]
            apply = self._appliers.get(setting.parameter)
            if apply is None:
                later.append(setting.key)
                continue
            try:
                text = apply(value)
            except ValueError as error:
                text = f"{setting.key} stays as it was: {error}"
            self._say(show(text or f"{setting.key} is {show_value(value)} from now on"))
        if later:
            self._say(show(f"what else has changed holds from the next start on: {', '.join(later)}"))
