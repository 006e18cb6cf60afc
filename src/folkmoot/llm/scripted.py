"""The scripted provider: replies by the rules that the run carries, for tests, demos and benchmarks.

The first rule that matches replies. It reads nothing but the request, keeps no state between calls, and so gives the same
after a restart. Deliberately absent: rendering, files and the network; input tokens are 0 unless a rule names them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OnText,
    OwnCall,
)
from folkmoot.kernel.errors import BadInput
from folkmoot.llm.script_rules import Rule, compile_script, parse_script

__all__ = ["ScriptedModel", "parse_script"]

Json = Any

_KEPT_SCRIPTS = 1024


class ScriptedModel:
    """Answers each request by the script in `request.model.script`."""

    def __init__(self) -> None:
        # Keyed by identity: a script is found at each call, and hashing it would cost more than the rules. The script is
        # held, so that its id is not given to another one.
        self._compiled: dict[int, tuple[Json, tuple[Rule, ...]]] = {}

    async def ask(self, request: ModelRequest, on_text: OnText | None) -> ModelReply | ModelFailure:
        try:
            rules = self._rules_of(request.model.script)
        except BadInput as error:
            return ModelFailure(FailureClass.INVALID_REQUEST, str(error))
        rule = first_match(rules, request)
        if rule is None:
            return _no_rule(request)
        if rule.delay_seconds:
            await asyncio.sleep(rule.delay_seconds)
        outcome = rule.outcome
        if on_text is not None and isinstance(outcome, ModelReply) and outcome.text:
            on_text(outcome.text)
        return outcome

    async def close(self) -> None:
        self._compiled.clear()

    def _rules_of(self, script: Json) -> tuple[Rule, ...]:
        known = self._compiled.get(id(script))
        if known is not None:
            return known[1]
        rules = compile_script(script)
        if len(self._compiled) >= _KEPT_SCRIPTS:
            del self._compiled[next(iter(self._compiled))]
        self._compiled[id(script)] = (script, rules)
        return rules


def first_match(rules: Sequence[Rule], request: ModelRequest) -> Rule | None:
    """The first rule that holds for the request. Costs O(rules), and O(view) more for a rule with `seen` that got so far."""
    participant, turn, call, attempt = request.participant, request.turn, request.call, request.attempt
    for rule in rules:
        if rule.participant is not None and rule.participant != participant:
            continue
        if rule.turn is not None and rule.turn != turn:
            continue
        if rule.call is not None and rule.call != call:
            continue
        if rule.fails_up_to is not None and attempt > rule.fails_up_to:
            continue
        if rule.purpose is not None and rule.purpose is not request.purpose:
            continue
        if rule.offered is not None and all(tool.name != rule.offered for tool in request.offered):
            continue
        if rule.seen is not None and not _is_seen(rule.seen, request):
            continue
        return rule
    return None


def _is_seen(text: str, request: ModelRequest) -> bool:
    if request.instruction is not None and text in request.instruction:
        return True
    view = request.view
    # From the newest back: scripts mostly look for what has just happened.
    return any(_holds(view[index], text) for index in range(request.view_length - 1, -1, -1))


def _holds(entry: Entry, text: str) -> bool:
    if isinstance(entry, OwnCall):
        return text in entry.result or text in entry.arguments_json or text in entry.name
    return text in entry.text


def _no_rule(request: ModelRequest) -> ModelFailure:
    offered = ", ".join(tool.name for tool in request.offered) or "nothing"
    return ModelFailure(
        FailureClass.INVALID_REQUEST,
        f"The script of model '{request.model.model_name}' has no rule for this request: participant {request.participant}, "
        f"turn {request.turn}, call {request.call}, attempt {request.attempt}, purpose {request.purpose.value}, offered {offered}. "
        "Add a rule, or one without 'when' at the end.",
    )
