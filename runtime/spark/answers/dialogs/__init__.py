"""The generated state machines, run over every conversation of a capture.

    typed tables → narrow rows (`symbols`) → exchange and sort → `fold` → `conversations` (answer
    tables and state)

`symbols` numbers each message with its sender. `readings` are the steps of the strict and the
concurrent reading, and `automaton` memoises them. `state` is what is known of an open conversation,
in memory and as JSON between two runs. `fold` loops over the sorted messages, and `conversations`
is the answer.

A message is judged as ``machine.Session`` judges it. A capture is not a session, so three things
are added: a conversation may begin in the middle, be idle for long, and restart after its end
(`automaton`).
"""
