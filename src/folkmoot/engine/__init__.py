"""Decides what happens next in a conversation, and what a step's outcome adds to it.

Invariant: no I/O, no clock, no chance. The same items and facts give the same steps. New ids come from a function that is
handed in; time is a field of Facts. Deliberately absent: a plan or cursor kept anywhere but in items and facts.

`next_steps` (decide) says what can go on; `items_of_reply` and `items_of_result` (record) turn an outcome into items; `Protocol`
folds items into where the conversation stands, `Views` into what each participant sees.
"""
