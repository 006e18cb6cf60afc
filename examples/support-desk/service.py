"""A small shop with an OpenAPI 3.1 document of its own, for the support desk: orders of three customers, kept in memory.

    SERVICE_KEY=some-key python service.py [PORT]

Callers send the key as X-Api-Key; the document, at /openapi.json, is for everybody. Deliberately absent: whatever a shop needs
beyond what the example shows. A restart forgets the refunds.
"""

from __future__ import annotations

import os
import secrets
import sys
from enum import StrEnum
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Path, Security
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field

PORT = 8090


class State(StrEnum):
    DELIVERED = "delivered"
    LOST = "lost"


class Order(BaseModel):
    """An order. Amounts are in euros."""

    number: str
    article: str
    amount: float
    state: State
    refunded: float = 0.0


class Refund(BaseModel):
    """What is to be given back, and why."""

    amount: float = Field(gt=0, description="In euros, at most what the order cost")
    reason: str = Field(min_length=1, max_length=300)


ORDERS = {
    "c-1001": [
        Order(number="A-17", article="Teapot", amount=34.5, state=State.DELIVERED),
        Order(number="A-18", article="Six cups", amount=48.0, state=State.LOST),
    ],
    "c-1002": [Order(number="B-4", article="Kettle", amount=59.0, state=State.DELIVERED)],
    "c-1003": [],
}

KEY = os.environ.get("SERVICE_KEY", "")
_header = APIKeyHeader(name="X-Api-Key", auto_error=False)


def require_key(sent: Annotated[str | None, Security(_header)]) -> None:
    if not secrets.compare_digest((sent or "").encode(), KEY.encode()):
        raise HTTPException(401, "The key is missing or wrong.")


app = FastAPI(title="Shop", version="1.0.0", dependencies=[Depends(require_key)])
CustomerId = Annotated[str, Path(alias="customerId", description="Whose orders")]
OrderNumber = Annotated[str, Path(alias="number", description="The order's number, such as A-17")]


@app.get("/customers/{customerId}/orders", operation_id="listOrders", summary="All orders of a customer")
def list_orders(customer_id: CustomerId) -> list[Order]:
    if customer_id not in ORDERS:
        raise HTTPException(404, "There is no such customer.")
    return ORDERS[customer_id]


@app.get("/customers/{customerId}/orders/{number}", operation_id="getOrder", summary="One order of a customer")
def get_order(customer_id: CustomerId, number: OrderNumber) -> Order:
    for order in list_orders(customer_id):
        if order.number == number:
            return order
    raise HTTPException(404, "The customer has no such order.")


@app.post("/customers/{customerId}/orders/{number}/refund", operation_id="refundOrder", summary="Give money back")
def refund_order(customer_id: CustomerId, number: OrderNumber, refund: Refund) -> Order:
    order = get_order(customer_id, number)
    if order.refunded + refund.amount > order.amount:
        raise HTTPException(409, f"Of this order {order.amount - order.refunded:.2f} euros are left to refund.")
    order.refunded += refund.amount
    return order


if __name__ == "__main__":
    if not KEY:
        sys.exit("Set SERVICE_KEY to a text of your choice: the key that callers must send.")
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else PORT)
