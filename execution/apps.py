from django.apps import AppConfig


class ExecutionConfig(AppConfig):
    """What happens."""

    name = "execution"

    def ready(self) -> None:
        """Tell the apps below what they cannot know: whose events these are, what was called, how to go out."""
        from audit.access import also_visible
        from execution import keyfetching, receivers  # noqa: F401
        from execution.access import visible_events
        from execution.hooks import checks  # noqa: F401
        from execution.recorded import recordings
        from policy.keysets import fetched_by
        from policy.recordings import recorded_by

        also_visible(visible_events)
        recorded_by(recordings)
        fetched_by(keyfetching.fetch)
