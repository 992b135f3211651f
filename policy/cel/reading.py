"""What an expression reads of each variable, so that no more than that is handed to the engine."""

from collections.abc import Mapping

from policy.cel.tree import Name, Node, Select

Fields = frozenset[str] | None  # None: the variable as a whole


def reading(tree: Node) -> Mapping[str, Fields]:
    """The variables, each with the fields that are read of it."""
    found: dict[str, Fields] = {}
    _read(tree, found)
    return found


def _read(node: Node, found: dict[str, Fields]) -> None:
    if isinstance(node, Select) and isinstance(node.operand, Name):
        known = found.setdefault(node.operand.name, frozenset())
        found[node.operand.name] = None if known is None else known | {node.field}
    elif isinstance(node, Name):
        found[node.name] = None
    else:
        for part in node.parts:
            _read(part, found)
