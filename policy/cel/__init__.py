"""The expressions of conditions: the part of CEL that a policy may use, read and judged before the engine sees it."""
