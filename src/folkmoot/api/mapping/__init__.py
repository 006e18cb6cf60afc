"""Between the wire's vocabulary and the domain's, both ways: the only place that knows both.

Pure functions. Deliberately absent: I/O, decisions, and checks beyond whether a text can be read as what it should be.
"""
