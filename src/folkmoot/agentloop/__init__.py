"""Decides the phases of an agent run: gather, plan, act, verify; and which calls need the owner's consent.

Invariant: no I/O, no clock, no chance. The same items and settings give the same moves. `state` folds items into where the loop
stands, `decide` says what comes next, `offers` what the model may call in a phase, `readings` what its calls say, `payload` what is kept
beside the row. Deliberately absent: turns, calls under way and prompts, which are the engine's, as in every conversation.
"""
