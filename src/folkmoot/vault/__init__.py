"""Seals secrets for the database and opens them again; holds their texts so that none prints; masks those that got out anyway.

`keys` reads the keys, `sealing` seals and opens, `texts` is an opened secret, `masks` the last line. Deliberately absent: the
database, settings, and any way to list what was opened.
"""
