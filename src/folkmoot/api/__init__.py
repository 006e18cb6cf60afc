"""The HTTP API: routes, authentication, problems, events. It maps between wire and domain, and calls services.

Deliberately absent: decisions, SQL, settings, and a status that a client could set.
"""
