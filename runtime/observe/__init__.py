"""Live page and metrics of a server, over HTTP.

Both derive from the status document that each server has (`specwire.runtime.*.status`). There is a
module for each kind of server: it makes a `Subject` with the server's page and metrics. A server
that nobody looks at only reads a few numbers once a second.
"""
