from django.apps import AppConfig


class PolicyConfig(AppConfig):
    """What is allowed."""

    name = "policy"

    def ready(self) -> None:
        from policy import logins, startup_checks  # noqa: F401
