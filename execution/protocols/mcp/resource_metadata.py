"""Resource metadata (RFC 9728): where a client gets a token for /mcp, and how a 401 or 403 says so."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse

from policy.authentication import CHALLENGE
from policy.scopes import SCOPES

WELL_KNOWN = "/.well-known/oauth-protected-resource"
HEADERS = {"Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*"}


def resource() -> str:
    """The canonical address of the endpoint: what a token for it names as its audience."""
    return f"{settings.PLACET_URL}/mcp"


def metadata(request: HttpRequest) -> JsonResponse:
    """GET /.well-known/oauth-protected-resource[/mcp]: open to everyone; not there if no server gives tokens for us."""
    if request.method not in ("GET", "HEAD"):
        return JsonResponse({"error": "method_not_allowed"}, status=405, headers={"Allow": "GET, HEAD"})
    if not settings.PLACET_AUTHORIZATION_SERVERS:
        return JsonResponse({"error": "not_found", "message": "No authorization server is configured"}, status=404)
    told: dict[str, Any] = {
        "resource": resource(),
        "resource_name": "Placet",
        "authorization_servers": settings.PLACET_AUTHORIZATION_SERVERS,
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
    }
    return JsonResponse(told, headers=HEADERS)


def challenge(error: str = "") -> str:
    """WWW-Authenticate: what is wrong, every scope that the endpoint knows, and where to begin."""
    told = [CHALLENGE]
    if error:
        told.append(f'error="{error}"')
    told.append(f'scope="{" ".join(SCOPES)}"')
    if settings.PLACET_AUTHORIZATION_SERVERS:
        told.append(f'resource_metadata="{settings.PLACET_URL}{WELL_KNOWN}/mcp"')
    return ", ".join(told)
