"""How callers prove who they are, told to the OpenAPI document."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class AgentKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A key or a JWT as a bearer token, or a key in its own header."""

    target_class = "policy.authentication.AgentAuthentication"
    name = ["bearer", "oxpApiKey"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """One of them is enough."""
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        return [
            {
                "type": "http",
                "scheme": "bearer",
                "description": "An agent's key, or a JWT that it or your issuer signed.",
            },
            {"type": "apiKey", "in": "header", "name": "OXP-API-Key", "description": "An agent's key."},
        ]
