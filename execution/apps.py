from django.apps import AppConfig


class ExecutionConfig(AppConfig):
    """What happens."""

    name = "execution"
