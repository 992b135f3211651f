"""News that travels upward without an import: what became of an approval."""

from django.dispatch import Signal

# Sent inside the transaction that moved the approval, with approval=Approval: whoever listens moves the call with it.
approval_moved = Signal()
