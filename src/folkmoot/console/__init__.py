"""The server's own pages: signing in, agent runs and the conversations behind them, and consent to what they ask.

Invariant: HTML from the server and one stylesheet; no script at all. A GET decides nothing. All that a model or a tool wrote is escaped, with
what hides in it written out. Deliberately absent: SQL, shapes of the wire, and any right that the API does not give as well.
"""
