"""A recorded side played again against a live peer, and its answers compared with those in the recording.

`recording` reads the conversations of a capture, `part` is the engine that plays one of them, `comparing` says what the
live peer answered otherwise, `playing` puts it on sockets.
"""
