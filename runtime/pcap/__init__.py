"""Messages out of recorded packets: containers, TCP, ZMTP, and which protocol it is.

Only `recording` opens files, and nothing looks at a clock: octets come in, `rows.Row`s go out. The order of the
modules is that of the way: `packets`, `segments`, `flow`, `connections`, `zmtp_side`, `choosing`, `traffic`. `hexdump` reads
octets that people have as text; `recording` writes rows as a capture folder.
"""
