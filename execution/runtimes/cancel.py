"""Cancel, where the runtimes look for it."""

from execution.cancel import Cancel, waking

__all__ = ["Cancel", "waking"]
