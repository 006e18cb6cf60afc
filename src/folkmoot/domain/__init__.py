"""The nouns of Folkmoot as frozen dataclasses: definitions, runs, items, model calls, tool calls, tenancy.

Deliberately absent: I/O, clock, chance, Pydantic, JSON shapes of the wire (they are in `wire`) and of the tables.
"""
