"""How much a run may use. Deliberately absent: a tenant's day (`wire.usage`)."""

from folkmoot.wire.formats import Amount, RequestShape, ResponseShape, Tokens


class InteractionBudget(ResponseShape):
    """How much a run may use with all that it starts; null: no limit. `money` is in US dollars; `calls` are of models."""

    tokens: int | None
    money: Amount | None
    calls: Tokens | None


class InteractionBudgetRequest(RequestShape):
    """How much a run may use with all that it starts; null: no limit. `money` is in US dollars; `calls` are of models."""

    tokens: Tokens | None = None
    money: Amount | None = None
    calls: Tokens | None = None
