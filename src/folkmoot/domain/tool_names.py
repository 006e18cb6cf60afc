"""Names of tools, as a participant's model sees them: what one may look like, and when two are too much alike (F53).

Deliberately absent: which tools a participant has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from folkmoot.kernel.errors import Fault

PROTOCOL_TOOLS = ("pass", "call_vote", "ask", "propose_solution", "agree", "disagree", "answer")
MANAGER_TOOLS = ("dispatch", "finish")  # of managed interactions alone; elsewhere a tool may have such a name
READ_RESULT_TOOL = "read_tool_result"
START_TOOL = "start_interaction"
AWAIT_TOOL = "await_interactions"
LIST_TOOL = "list_interactions"
STOP_TOOL = "stop_interaction"
SWARM_TOOLS = (START_TOOL, AWAIT_TOOL, LIST_TOOL, STOP_TOOL)
PLAN_TOOL = "make_plan"
REPLAN_TOOL = "replan"
VERDICT_TOOL = "verdict"
DELEGATE_TOOL = "delegate"
LOOP_TOOLS = (PLAN_TOOL, REPLAN_TOOL, VERDICT_TOOL, DELEGATE_TOOL)  # of agent runs alone

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LOOK_ALIKES = str.maketrans("I10-", "llO_")


def problem_of_name(name: str) -> str | None:
    """A sentence about what keeps this from naming a tool."""
    if not _NAME.fullmatch(name):
        return "A tool's name is 1 to 64 letters, digits, '_' or '-'; correct it."
    if name in PROTOCOL_TOOLS:
        return f"'{name}' is the conversation's own tool; give this one another name."
    if name == READ_RESULT_TOOL:
        return f"'{name}' is the tool that reads on in large results; give this one another name."
    if name in SWARM_TOOLS:
        return f"'{name}' is a tool for sub-runs; give this one another name."
    return None


def faults_of_tool_names(named: Iterable[tuple[str, str]], *, is_managed: bool = False) -> tuple[Fault, ...]:
    """What is wrong with the names of one participant's tools. `named`: pairs of JSON pointer and name. `is_managed`: the names of a
    manager's own tools are taken, too."""
    faults: list[Fault] = []
    seen: dict[str, str] = {}
    for pointer, name in named:
        problem = problem_of_name(name)
        if is_managed and name in MANAGER_TOOLS:
            problem = f"'{name}' is a tool of the manager's; give this one another name."
        if problem is not None:
            faults.append(Fault(pointer, problem))
            continue
        other = seen.get(tool_key(name))
        if other is not None:
            alike = "is there already" if other == name else f"looks like '{other}'"
            faults.append(Fault(pointer, f"A participant's tool '{name}' {alike}; rename one of them."))
        seen.setdefault(tool_key(name), name)
    return tuple(faults)


def problem_in_agent_runs(name: str) -> str | None:
    """A sentence about what keeps this from being called in runs of an agent: a reader would take it for a tool of theirs."""
    own = next((own for own in LOOP_TOOLS if tool_key(own) == tool_key(name)), None)
    return f"'{own}' is a tool of agent runs themselves; give the agent's own tool another name." if own else None


def tool_key(name: str) -> str:
    """Equal for names that a reader would take for the same: by case, by '-' and '_', by I, l and 1, by O and 0."""
    return name.translate(_LOOK_ALIKES).casefold()
