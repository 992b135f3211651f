"""OXP 1.0: GET /health, GET /tools, POST /tools/call."""

from django.http import HttpRequest

from execution.protocols import base, health, tools
from execution.protocols.dialect import Answer
from execution.protocols.listing import Listings
from execution.protocols.oxp import definitions, version
from execution.protocols.oxp.translate import DIALECT


class CallView(base.CallView):
    """POST /tools/call."""

    dialect = DIALECT


class ToolsView(tools.ToolsView):
    """GET /tools."""

    dialect = DIALECT
    listings = Listings(definitions.encoded)
    check_version = staticmethod(version.check)


class HealthView(base.DoorView):
    """GET /health: open to everyone, and true."""

    dialect = DIALECT
    probe = health.Probe()

    def get(self, request: HttpRequest) -> Answer:
        if self.probe.is_ready():
            return Answer(body={"$schema": version.SCHEMA, "status": "ok"})
        headers = {"Retry-After": "2"}
        return Answer(body={"$schema": version.SCHEMA, "status": "unavailable"}, status=503, headers=headers)
