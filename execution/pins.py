"""The pins of upstream tools: sole writer. What a tool was at first use is what its version stays."""

import logging

from django.db import transaction

from audit import trail
from execution.models import Pin
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)


def pinned(tool: ToolSpec, digest: str) -> str:
    """The digest that this tool had at its first use, which is this one if it is the first; another is told of once.

    What was seen instead is forgotten when the tool is seen as it was.
    """
    with transaction.atomic():
        pin, _ = Pin.objects.get_or_create(tool_id=tool.id, defaults={"digest": digest})
        if pin.digest == digest:
            if pin.other_digest:
                Pin.objects.filter(pk=pin.pk).update(other_digest="")
            return digest
        others = Pin.objects.filter(pk=pin.pk).exclude(digest=digest).exclude(other_digest=digest)
        if others.update(other_digest=digest):
            subject, detail = f"{tool.toolkit}@{tool.version}", {"tool": tool.tool_id, "was": pin.digest, "is": digest}
            trail.record("version", subject, "tool.changed_upstream", actor="system", outcome="refused", detail=detail)
            logger.error("%s is no longer upstream what it was when its version was first used", tool.tool_id)
    return pin.digest
