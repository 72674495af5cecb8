"""The generated machines, run over conversations by the million.

    typed tables --narrow--> symbols --exchange, sort--> fold --advance--> conversations, violations, state

`alphabet` makes a small number of a message and its sender, `readings` says what it may do to a conversation,
`automaton` turns that into tables as traffic asks for them, `tokens` pairs replies with requests by key, `fold`
runs over sorted rows, and `advance` is the answer. The meaning is that of ``machine.Session``; three things are
added, for a capture is not a session: a conversation may begin in the middle, be idle for long, and begin
anew after its end (`specwire.runtime.spark.answers.dialogs.automaton`).
"""
