"""The broker of NORFAB at work: sockets, a store and a clock around the engine."""

from specwire.runtime.norfab.serve.broker import NorfabBroker
from specwire.runtime.norfab.serve.handlers import Handler

__all__ = ["Handler", "NorfabBroker"]
