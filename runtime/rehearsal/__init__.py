"""Peers that try out other people's peers: one that makes its part up, and one that plays a recorded part again.

`conversation` holds a random valid conversation: the protocol's machine says what may come next, the protocol's
strategies make it up (`drawing`), `faults` breaks it where that is wanted, and `tally` keeps what the other side did
against the machine. `replay` plays one side of a capture and compares the answers. Both are engines without sockets or
clock; `meeting` and `replay.playing` put them on sockets. What no machine says of a protocol stands in `habits`.
"""
