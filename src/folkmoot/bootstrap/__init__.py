"""The composition root: opens what a command needs, wires it together, and closes it again in order.

`installation` opens the database and what goes with it, `working` makes workers, `serving` the API, `faults` arms fault points.
The only reader of settings and of the environment. Deliberately absent: anything that decides.
"""
