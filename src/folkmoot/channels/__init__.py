"""How a run reaches its owner outside of the server, and how an answer comes back: one app for each way, found by entry point.

An app sends a message and reads what comes in; what it may use of the world is handed to it. Invariant: no database, no settings, no
state of its own; it never decides whether an answer counts, and of a run it has the id alone. Every connection goes through a
function of the operator's.
"""
