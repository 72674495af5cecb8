"""What a server shows of itself over HTTP: measures for Prometheus, and a page for people.

Both are made of the status document that each server has anyway (`specwire.runtime.*.status`): `metrics` turns it into
families of samples, `views` into what the page shows. Nothing here is in the way of a message: a server that nobody looks at
does no more than take a few numbers once a second.
"""
