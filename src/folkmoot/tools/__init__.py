"""One call that leaves the process: arguments go in, a result comes out, within limits of time and size.

`functions` runs the operator's own Python functions. Deliberately absent: whether and when a call is made, that it is recorded
as begun before it is sent, and what happens after a crash (engine and runtime); protocol tools, which touch nothing outside;
the database; retries.
"""
