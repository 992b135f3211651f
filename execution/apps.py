from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ExecutionConfig(AppConfig):
    """What happens."""

    name = "execution"

    def ready(self) -> None:
        """Tell the apps below what they cannot know: whose an event is, which calls were recorded, how one gets out."""
        from audit.access import also_visible
        from execution import keyfetching, receivers, wayout  # noqa: F401
        from execution.access import visible_events
        from execution.hooks import checks  # noqa: F401
        from execution.portal import roles
        from execution.recorded import recordings
        from policy.keysets import fetched_by
        from policy.recordings import recorded_by
        from policy.wayout import guarded_by

        # Ours are the last tables to be made, so every permission is there by then.
        post_migrate.connect(roles.ensure, sender=self, dispatch_uid="portal.roles")
        also_visible(visible_events)
        recorded_by(recordings)
        guarded_by(wayout.post)
        fetched_by(keyfetching.fetch)
