"""Performs what the engine decides: a worker claims runs, drives each through its steps, and keeps its lease.

Invariant: nothing is remembered here that is not in items and facts, but for copies that a claim makes anew. There is no
resume code. Deliberately absent: decisions about meaning (`engine`) and about concurrency (`store`).
"""
