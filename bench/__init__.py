"""Measures Folkmoot beside its limits and its peers, on this machine, in one run: `python -m bench [part ...]`.

Every figure comes from processes as users start them (`folkmoot worker` on the embedded server, everything durable), watched
from outside, or from a child process of its own. Deliberately absent: stand-ins for anything of ours, and asserts on times.
"""
