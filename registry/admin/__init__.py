"""The registry in the admin. The version's pages are registered by the policy app, which adds reviews to them."""

from registry.admin import capability, tool, toolkit  # noqa: F401
