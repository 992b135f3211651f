"""A toolkit that moves money, in play: each payment is one line in a ledger file in the toolkit's own folder."""

import fcntl
import json
import os
from datetime import UTC, datetime
from typing import Annotated, Any

from placet import ToolContext, Toolkit, tool

toolkit = Toolkit("Payments", "1.0.0")

MOVES_MONEY = ["external.side_effect", "data.write", "filesystem.write"]


@tool(title="Refund a customer", risk="high", capabilities=MOVES_MONEY)
def refund(
    order: Annotated[str, "The order that is refunded."],
    amount: Annotated[float, "How much, in euros.", {"exclusiveMinimum": 0}],
    context: ToolContext,
) -> dict[str, Any]:
    """Gives a customer money back."""
    return _booked("refund", {"order": order, "amount": amount}, context)


@tool(title="Pay out", risk="critical", capabilities=MOVES_MONEY)
def payout(
    account: Annotated[str, "The account that is paid."],
    amount: Annotated[float, "How much, in euros.", {"exclusiveMinimum": 0}],
    context: ToolContext,
) -> dict[str, Any]:
    """Pays money to an outside account."""
    return _booked("payout", {"account": account, "amount": amount}, context)


def _booked(kind: str, what: dict[str, Any], context: ToolContext) -> dict[str, Any]:
    """One line, written whole and kept on the disk before we say that it is done."""
    line = {"kind": kind, **what, "call_id": context.call_id, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    assert context.folder is not None  # because of filesystem.write
    with (context.folder / "payments.jsonl").open("a", encoding="utf-8") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        ledger.write(json.dumps(line) + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    context.log.info("%s of %.2f euros booked", kind, what["amount"])
    return {"booked": kind, **what}
