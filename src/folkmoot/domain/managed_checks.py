"""What a managed interaction needs to be saved, and what has no meaning in it: it has no rounds, and no topics to vote on.

Pointers are into the version, by the wire's names. Deliberately absent: what holds of every interaction (`checking`).
"""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.domain.definitions import ChatMode, InteractionType, InteractionVersion
from folkmoot.kernel.errors import Fault

MOST_CONCURRENT_DISPATCHES = 50


def faults_of_managed(version: InteractionVersion) -> Iterator[Fault]:
    """None for an interaction of another type without a manager."""
    if version.type is not InteractionType.MANAGED:
        if version.manager is not None:
            yield Fault("/manager", "Only a managed interaction has a manager: set its type to 'Managed'.")
        return
    if version.manager is None:
        yield Fault("/manager", "A managed interaction needs a manager: name the agent that sends work to the others.")
    if not 1 <= version.maximum_concurrent_dispatches <= MOST_CONCURRENT_DISPATCHES:
        yield Fault(
            "/maximumConcurrentDispatches", f"This is a number from 1 to {MOST_CONCURRENT_DISPATCHES}; correct it."
        )
    people = version.human_settings
    if people is None:
        return
    if people.chat_mode is ChatMode.EVERY_ROUND:
        message = (
            "A managed interaction has no rounds, so that a person cannot be waited for in each. Choose 'Excluded', 'Observing' "
            "or 'OnQuestion'."
        )
        yield Fault("/humanSettings/chatMode", message)
    if people.include_in_votes:
        message = (
            "A managed interaction has no votes on topics; leave this out. 'includeInSolutions' asks a person about "
            "the answer."
        )
        yield Fault("/humanSettings/includeInVotes", message)
