"""Settles what an agent's runs refer to: their owner, the specialists, the channel. Nobody gets an agent to act with more than their
own role has. Deliberately absent: the agent's model and tools (`definition_links`), and the runs themselves.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from folkmoot.domain.agent_settings import AgentRunSettings
from folkmoot.domain.channels import WEB
from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.definitions import AgentVersion, Definition, DefinitionKind, Reference, StoredVersion
from folkmoot.domain.rights import Right, is_above
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services import references
from folkmoot.services.specialist_links import chain_faults
from folkmoot.store import definitions, users
from folkmoot.store.database import Reader

_OWNER = "/owner"


async def settled(
    reader: Reader, caller: Caller, *, namespace: str, name: str, version: AgentVersion
) -> tuple[AgentVersion, list[Fault]]:
    """The version with its owner and specialists as ids, and what is wrong with them, with the channel, and with who saves it."""
    faults: list[Fault] = []
    kind = DefinitionKind.AGENT
    own = await definitions.get_by_name(reader, caller.tenant_id, kind=kind, namespace=namespace, name=name)
    runs, owner = await _with_owner(reader, caller, version.runs, own, faults)
    runs = await _with_specialists(reader, caller, runs, own, f"{namespace}/{name}", owner, faults)
    await _check_channel(reader, caller.tenant_id, runs.channel, namespace, faults)
    return replace(version, runs=runs), faults


async def _with_owner(
    reader: Reader, caller: Caller, runs: AgentRunSettings, own: Definition | None, faults: list[Fault]
) -> tuple[AgentRunSettings, User | None]:
    """Whoever is named, else whoever made the agent, which matters once its runs can do something; null where there is nobody."""
    is_named = runs.owner is not None or runs.owner_name is not None
    if runs.owner_name is not None:
        found = await users.get_by_name(reader, caller.tenant_id, name=runs.owner_name)
    else:
        maker = own.created_by if own is not None else caller.user_id
        found = await users.get(reader, caller.tenant_id, user_id=runs.owner or maker)
    if found is None or found.removed_at is not None:
        if is_named or runs.tool_whitelist or runs.specialists:
            faults.append(Fault(_OWNER, _missing(runs, found)))
        return runs, None
    if is_named or runs.tool_whitelist or runs.specialists:
        problem = await _owner_problem(reader, caller, found, own, is_named=is_named)
        if problem is not None:
            faults.append(Fault(_OWNER, problem))
    return (replace(runs, owner=found.user_id, owner_name=None) if is_named else runs), found


def _missing(runs: AgentRunSettings, found: User | None) -> str:
    if found is not None:
        which = f"The user '{found.name}'" if runs.owner is not None else f"'{found.name}', who made this agent,"
        return f"{which} was removed, and runs act with their owner's rights. Name somebody who is there."
    who = f"'{runs.owner_name}'" if runs.owner_name is not None else f"with the id {runs.owner}"
    return f"There is no user {who}; `folkmoot users list` shows those there are. Correct the owner, or leave it out."


async def _owner_problem(
    reader: Reader, caller: Caller, owner: User, own: Definition | None, *, is_named: bool
) -> str | None:
    """Runs act with their owner's rights: they are no more than the role of whoever saves the agent has."""
    if is_above(owner.role, caller.role):
        whose = "is to act" if is_named else "acts"
        return (
            f"This agent {whose} with the rights of '{owner.name}', who is {owner.role}, above your role {caller.role}. Name an owner of no "
            "more than your role, or let somebody of that role save it."
        )
    if owner.user_id == caller.user_id or Right.MANAGE_USERS in caller.rights:
        return None
    if own is None or owner.user_id != await _owner_before(reader, caller.tenant_id, own):
        return (
            f"To make '{owner.name}' the owner takes the right '{Right.MANAGE_USERS}', since the agent acts for them. Name yourself, leave "
            "the owner out, or ask an owner or admin."
        )
    return None


async def _owner_before(reader: Reader, tenant_id: UUID, own: Definition) -> UUID:
    latest = await definitions.version(reader, tenant_id, definition=own, number=own.latest_version)
    assert latest is not None and isinstance(latest.body, AgentVersion)
    return latest.body.runs.owner or own.created_by


async def _specialist_problem(
    reader: Reader, caller: Caller, specialist: StoredVersion, owner: User | None
) -> str | None:
    """What a specialist asks its owner goes to the owner of who delegates: nobody takes that over from somebody above them, and nobody gives
    it to somebody below."""
    assert isinstance(specialist.body, AgentVersion)
    name = specialist.definition.name
    theirs_id = specialist.body.runs.owner or specialist.definition.created_by
    theirs = await users.get(reader, caller.tenant_id, user_id=theirs_id)
    if theirs is not None and is_above(theirs.role, caller.role):
        return (
            f"The agent '{name}' acts for '{theirs.name}', who is {theirs.role}, above your role {caller.role}; what it asks would be yours to "
            "answer here. Take another specialist, or let somebody of that role save this."
        )
    if theirs is not None and owner is not None and is_above(theirs.role, owner.role):
        return (
            f"The agent '{name}' acts for '{theirs.name}', who is {theirs.role}, above the role {owner.role} of '{owner.name}', for whom this agent "
            "acts and who would be asked here. Take another specialist, or another owner."
        )
    return None


async def _with_specialists(
    reader: Reader, caller: Caller, runs: AgentRunSettings, own: Definition | None, title: str, owner: User | None, faults: list[Fault]
) -> AgentRunSettings:  # fmt: skip
    """Chains are looked at once every link leads somewhere."""
    links: list[Reference] = []
    count = len(faults)
    namespace, _, name = title.partition("/")
    for index, link in enumerate(runs.specialists):
        pointer = f"/specialists/{index}"
        place = link.namespace or namespace
        is_itself = (own is not None and link.definition_id == own.definition_id) or (place, link.name) == (
            namespace,
            name,
        )
        if is_itself:
            faults.append(Fault(pointer, "An agent is no specialist of its own; take it out."))
        if is_itself or (link.definition_id is None and not link.name):
            links.append(link)  # the latter is said where links are looked at in themselves
            continue
        found = await references.enabled(
            reader, caller.tenant_id, kind=DefinitionKind.AGENT, reference=link, namespace=namespace
        )
        if isinstance(found, str):
            faults.append(Fault(pointer, found))
            links.append(link)
            continue
        definition = found.definition
        problem = await _specialist_problem(reader, caller, found, owner)
        if problem is not None:
            faults.append(Fault(pointer, problem))
        links.append(Reference(definition.name, definition.namespace, definition.definition_id, link.version or None))
    if links and len(faults) == count:
        own_id = own.definition_id if own is not None else None
        faults += await chain_faults(reader, caller.tenant_id, own=own_id, title=title, links=links)
    return replace(runs, specialists=tuple(links))


async def _check_channel(
    reader: Reader, tenant_id: UUID, channel: str | None, namespace: str, faults: list[Fault]
) -> None:
    """It stays a name, as a stack does in an interaction."""
    if channel in (None, WEB):
        return
    assert channel is not None
    try:
        wanted = parse_reference(channel)
    except BadInput as error:
        faults.append(Fault("/channel", str(error)))
        return
    if wanted.version is not None:
        faults.append(Fault("/channel", "Runs take the channel as it is now; leave out what comes after '@'."))
        return
    found = await references.enabled(
        reader, tenant_id, kind=DefinitionKind.CHANNEL, reference=wanted, namespace=namespace
    )
    if isinstance(found, str):
        faults.append(Fault("/channel", found))
