from django.apps import AppConfig


class ExecutionConfig(AppConfig):
    """What happens."""

    name = "execution"

    def ready(self) -> None:
        """Tell the apps below what they cannot know: whose an event is, which calls were recorded, how one gets out."""
        from audit.access import also_visible
        from execution import keyfetching, receivers, wayout  # noqa: F401
        from execution.access import visible_events
        from execution.hooks import checks  # noqa: F401
        from execution.recorded import recordings
        from policy.keysets import fetched_by
        from policy.recordings import recorded_by
        from policy.wayout import guarded_by

        also_visible(visible_events)
        recorded_by(recordings)
        guarded_by(wayout.post)
        fetched_by(keyfetching.fetch)
