"""The OTC draft: POST /call, and its list of tools."""

from typing import Any

from execution.protocols import base, tools
from execution.protocols.dialect import Dialect
from execution.protocols.listing import Listings
from execution.protocols.otc import definitions, version
from execution.protocols.otc.translate import DIALECT
from execution.protocols.oxp.translate import DIALECT as OXP
from execution.protocols.oxp.version import NAMES as OXP_NAMES


class CallView(base.CallView):
    """POST /call. The examples of OXP still print this path: who names OXP in `$schema` is answered in OXP."""

    dialect = DIALECT

    def spoken(self, body: Any) -> Dialect:
        named = body.get("$schema") if type(body) is dict else None
        return OXP if type(named) is str and named in OXP_NAMES else DIALECT


class ToolsView(tools.ToolsView):
    """GET /tools for a client that asked for the profile."""

    dialect = DIALECT
    listings = Listings(definitions.encoded)
    check_version = staticmethod(version.check)
