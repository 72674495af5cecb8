"""The generated machines, run over conversations by the million.

    typed tables --narrow--> symbols --ordering--> sorted --fold--> found --advance--> conversations, violations, state

`alphabet` makes a small number of a message and its sender, `texts` puts names together, `ordering` each conversation; `readings` says what it may do to a conversation,
`automaton` turns that into tables as traffic asks for them, and `joint` runs both readings at once. `pairing` looks up the
keys of replies (`tokens`: one by one), `watching` draws the sums, `findings` puts violations into words. `fold` does
all this over sorted batches, and `advance` is the answer. The meaning is that of ``machine.Session``; three
things are added, for a capture is not a session: a conversation may begin in the middle, be idle for long, and begin
anew after its end (`specwire.runtime.spark.answers.dialogs.automaton`).
"""
