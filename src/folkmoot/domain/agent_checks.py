"""What must hold of an agent's settings for its own runs. Pointers are into the agent's version, by the wire's names.

Deliberately absent: whether owner, specialists and channel are there, and circles of specialists; that takes the store.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from folkmoot.domain.agent_settings import (
    MOST_ITERATIONS,
    AgentBudget,
    AgentRunSettings,
    Comparison,
    ConsentRule,
    Json,
)
from folkmoot.domain.json_text import canonical, is_deeper, named
from folkmoot.domain.link_checks import faults_of_link
from folkmoot.domain.schema_reports import shortened
from folkmoot.domain.time_checks import is_usable
from folkmoot.domain.tool_names import DELEGATE_TOOL, problem_in_agent_runs, tool_key
from folkmoot.kernel.errors import Fault

MOST_RULES = 100
MOST_SPECIALISTS = 50
_MOST_ARGUMENT_CHARACTERS = 500
_MOST_VALUE_CHARACTERS = 10_000
_MOST_VALUE_DEPTH = 20
_NUMBERS = (Comparison.ABOVE, Comparison.BELOW)
_TIME = (
    "This is a time longer than none and of at most 999,999 days, such as 00:05:00, or null for no limit; correct it."
)


def faults_of_runs(runs: AgentRunSettings, tools: Sequence[tuple[str, str]]) -> Iterator[Fault]:
    """What keeps the settings from being saved. `tools`: pointers and names of the agent's own tools."""
    names = tuple(dict.fromkeys(name for _, name in tools))
    yield from _whitelist_faults(runs.tool_whitelist, names)
    yield from _specialist_faults(runs, tools)
    if len(runs.consent_rules) > MOST_RULES:
        yield Fault("/consentRules", f"An agent has at most {MOST_RULES} rules; leave some out.")
    for index, rule in enumerate(runs.consent_rules[:MOST_RULES]):
        yield from _faults_of_rule(f"/consentRules/{index}", rule, names)
    if not 1 <= runs.maximum_iterations <= MOST_ITERATIONS:
        yield Fault("/maximumIterations", f"This is a number from 1 to {MOST_ITERATIONS}; correct it.")
    yield from _budget_faults(runs.budget)
    if runs.consent_time is not None and not is_usable(runs.consent_time):
        yield Fault("/consentTime", _TIME)


def _whitelist_faults(whitelist: tuple[str, ...], names: tuple[str, ...]) -> Iterator[Fault]:
    for index, name in enumerate(whitelist):
        pointer = f"/toolWhitelist/{index}"
        if name not in names:
            yield Fault(pointer, _no_tool(name, names))
        elif name in whitelist[:index]:
            yield Fault(pointer, f"The tool '{name}' is named twice; take one out.")
        problem = problem_in_agent_runs(name)
        if problem is not None:
            yield Fault(pointer, problem)


def _no_tool(name: str, names: tuple[str, ...]) -> str:
    there_are = f"its tools are: {', '.join(names)}" if names else "it has none"
    return f"This agent has no tool '{shortened(name, 60)}'; {there_are}. Correct the name, or give it the tool."


def _specialist_faults(runs: AgentRunSettings, tools: Sequence[tuple[str, str]]) -> Iterator[Fault]:
    if len(runs.specialists) > MOST_SPECIALISTS:
        yield Fault("/specialists", f"An agent has at most {MOST_SPECIALISTS} specialists; leave some out.")
        return
    seen: dict[str, str] = {}
    for index, link in enumerate(runs.specialists):
        pointer = f"/specialists/{index}"
        yield from faults_of_link(pointer, link, "an agent")
        title = f"{link.namespace}/{link.name}" if link.namespace else str(link.name or link.definition_id)
        key = link.name.casefold() if link.name else title
        other = seen.get(key)
        seen.setdefault(key, title)
        if other == title:
            yield Fault(pointer, f"The specialist '{title}' is named twice; take one out.")
        elif other is not None:
            message = f"Two specialists are called alike, '{other}' and '{title}', and work is given to them by name. Take one out."
            yield Fault(pointer, message)
    yield from _delegate_faults(runs, tools)


def _delegate_faults(runs: AgentRunSettings, tools: Sequence[tuple[str, str]]) -> Iterator[Fault]:
    if not runs.specialists:
        return
    for pointer, name in tools:
        if tool_key(name) == tool_key(DELEGATE_TOOL):
            message = f"An agent with specialists has a tool '{DELEGATE_TOOL}' already; give this one another name."
            yield Fault(pointer, message)


def _faults_of_rule(pointer: str, rule: ConsentRule, names: tuple[str, ...]) -> Iterator[Fault]:
    if rule.tool not in names:
        yield Fault(f"{pointer}/tool", _no_tool(rule.tool, names))
    if rule.comparison is Comparison.ALWAYS:
        if rule.argument is not None:
            message = "'Always' looks at no argument; leave it out, or choose another comparison."
            yield Fault(f"{pointer}/argument", message)
        if rule.value is not None:
            message = "'Always' compares with nothing; leave the value out, or choose another comparison."
            yield Fault(f"{pointer}/value", message)
        return
    if rule.argument is None:
        message = (
            f"'{rule.comparison}' compares an argument; name it, or give a JSON pointer to it, such as /order/amount."
        )
        yield Fault(f"{pointer}/argument", message)
    else:
        problem = _argument_problem(rule.argument)
        if problem is not None:
            yield Fault(f"{pointer}/argument", problem)
    problem = _value_problem(rule.comparison, rule.value)
    if problem is not None:
        yield Fault(f"{pointer}/value", problem)


def _argument_problem(argument: str) -> str | None:
    if not 1 <= len(argument) <= _MOST_ARGUMENT_CHARACTERS:
        return f"An argument's name or pointer has 1 to {_MOST_ARGUMENT_CHARACTERS} characters; correct it."
    if argument.startswith("/") and re.search(r"~(?![01])", argument):
        return "In a JSON pointer '~' is written as ~0 and '/' within a name as ~1; correct it."
    return None


def _value_problem(comparison: Comparison, value: Json) -> str | None:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if comparison in _NUMBERS and not (is_number and math.isfinite(value)):
        return (
            f"'{comparison}' takes a number, and this is {named(value)}; give a number, or choose another comparison."
        )
    if comparison is Comparison.CONTAINS and (value is None or isinstance(value, dict | list)):
        return f"'Contains' takes what is to be found, a text, a number, true or false, and this is {named(value)}; correct it."
    try:
        text = canonical(value)
    except (RecursionError, ValueError, TypeError):
        return "This is no JSON value, or is nested too deeply; correct it."
    if len(text) > _MOST_VALUE_CHARACTERS or is_deeper(text, than=_MOST_VALUE_DEPTH):
        return f"A value has at most {_MOST_VALUE_CHARACTERS:,} characters and {_MOST_VALUE_DEPTH} levels; make it shorter."
    return None


def _budget_faults(budget: AgentBudget) -> Iterator[Fault]:
    amounts = {
        "tokens": budget.tokens, "money": budget.money, "modelCalls": budget.calls, "toolCalls": budget.tool_calls,
    }  # fmt: skip
    for name, most in amounts.items():
        if most is not None and most <= 0:
            message = "With a budget of 0 no run gets anything done; name more, or leave it out for no limit."
            yield Fault(f"/agentBudget/{name}", message)
    if budget.working_time is not None and not is_usable(budget.working_time):
        yield Fault("/agentBudget/workingTime", _TIME)
