from django.apps import AppConfig


class ExecutionConfig(AppConfig):
    """What happens."""

    name = "execution"

    def ready(self) -> None:
        """Tell the audit app which events belong to whom: it knows no agents and no calls."""
        from audit.access import also_visible
        from execution.access import visible_events

        also_visible(visible_events)
