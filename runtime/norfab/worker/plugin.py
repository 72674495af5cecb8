"""Loading of plugins."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from specwire.runtime.norfab.worker.handle import Worker
from specwire.runtime.norfab.worker.tasks import PluginError


def find_plugin(name: str) -> type:
    """Return the class that ``module:Class`` names; raises PluginError.

    That includes whatever the module raises while it is imported, `SystemExit` too.
    """
    module_name, colon, class_name = name.partition(":")
    if not module_name or not colon or not class_name:
        raise PluginError(f"{name!r} names no plugin: write module:Class")
    try:
        found: Any = import_module(module_name)
        for part in class_name.split("."):
            found = getattr(found, part)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"the plugin {name} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, type):
        raise PluginError(f"the plugin {name} is no class")
    return found


def make_plugin(plugin: object, worker: Worker) -> object:
    """Return an instance of a class, constructed with the worker if it has a parameter; raises PluginError."""
    if not isinstance(plugin, type):
        return plugin
    try:
        return plugin(worker) if _takes_argument(plugin) else plugin()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(
            f"the plugin {plugin.__qualname__} cannot be made: {type(error).__name__}: {error}"
        ) from error


def _takes_argument(kind: type) -> bool:
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in kinds for parameter in parameters)
