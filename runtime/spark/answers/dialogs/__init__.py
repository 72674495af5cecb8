"""Generated state machines, run over every conversation of a capture.

    typed tables → narrow rows (`symbols`) → exchange and sort → `fold` → `conversations` (answer
    tables and state)

`symbols` assigns a number to each message and sender. `readings` has the steps of the strict and
the concurrent reading, and `automaton` memoises them. `state` has the state of an open
conversation, in memory and as JSON between two runs. `fold` loops over the sorted messages.
`conversations` computes the answer.

A message is judged as by ``machine.Session``. A capture is not a session, so a conversation may
also begin in the middle, be idle for long, and restart after its end (`automaton`).
"""
