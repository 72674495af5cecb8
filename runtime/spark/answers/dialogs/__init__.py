"""Generated state machines, run over every conversation of a capture.

    typed tables → narrow rows (`symbols`) → exchange and sort → loop (`tracking`) →
    `conversations` (answer tables and state)

`symbols` assigns a number to each message and sender. `automaton` has the steps of the strict and
the concurrent reading, and memoises them. `tracking` loops over the sorted messages, with the state
of each open conversation. `conversations` computes the answer.

A message is judged as by ``machine.Session``. A capture is not a session, so a conversation may
also begin in the middle, be idle for long, and restart after its end.
"""
