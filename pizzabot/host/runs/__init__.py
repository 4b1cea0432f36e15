"""Runs: admitted, claimed, pumped, stopped and recovered, with every event stored before it is shown.

requests     a client's parameters to a checked `RunRequest`
commands     the protocol's commands and their envelopes
engine       admission, one driver per thread, stop, recovery, shutdown
pump         one run from its claim to its terminal event
writer       events into the log, in batches
completion   what a runtime left open is closed in the log
terminal     how a run ends: one pure decision
hub          who is told about new events
reading      a thread's log for one observer: replay, then tail
filters      what a connection wants of the log, and in which form
"""
