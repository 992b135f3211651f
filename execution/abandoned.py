"""An attempt that was lost or taken back tells nothing itself: operators hear of its end all the same."""

import logging

from django.db import transaction

from execution import attempts, hooks, telemetry
from execution.errors import Failure
from execution.models import Call
from execution.resuming import taken_up

logger = logging.getLogger(__name__)


def tell(call: Call, failure: Failure) -> None:
    """Once this is committed, telemetry and hooks hear of the attempt under the call's fence, as of any that failed.

    The call is as it was before it moved; nobody else tells of this fence, for a later write of it is stale.
    """
    transaction.on_commit(lambda: _tell(call, failure))


def _tell(call: Call, failure: Failure) -> None:
    try:
        where, began = attempts.begun(call)
        assert began is not None
        claim, _ = taken_up(call, call.fence, began=began, where=where)
        telemetry.attempted(claim, failure)
        hooks.ended(claim, failure, claim.elapsed_ms())
    except Exception:  # the move is on record, and whoever made it goes on
        logger.warning("the end of attempt %s of call %s could not be told of", call.fence, call.pk, exc_info=True)
