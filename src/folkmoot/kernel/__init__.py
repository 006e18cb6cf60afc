"""Ids, the clock's protocol, the error tree and the registry of fault points: what every layer may know.

Deliberately absent: I/O, the system clock, chance, logging, HTTP statuses. Time and randomness come in as arguments.
"""
