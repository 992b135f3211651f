"""The audit app: what happened, kept so that nobody can quietly change it."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Names the app; it needs nothing at start-up."""

    name = "audit"
    verbose_name = "What happened"
    default_auto_field = "django.db.models.BigAutoField"
