"""A program that speaks MCP over its standard input and output, as desktop clients want, and over HTTP to Placet.

Only the standard library is used: whoever runs a client has nothing to install but this package.
"""

from placet.bridge.address import Address, Key, Unusable
from placet.bridge.relay import Relay

__all__ = ["Address", "Key", "Relay", "Unusable"]
