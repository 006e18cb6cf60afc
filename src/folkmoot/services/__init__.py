"""Use cases that write, and what is read for those who ask: one function, one use case, one transaction.

What other processes are to know is told after the commit, through a `tell` that is handed in. Deliberately absent: HTTP,
wire shapes, SQL, files and the environment; settings, ids and chance come in as arguments.
"""
