"""Sessions in the admin: which outside workers are there, what they serve and what they hold."""

from django.contrib import admin, messages
from django.db.models import Count, F, Q, QuerySet
from django.http import HttpRequest
from unfold.decorators import action, display

from audit.admin.readonly import ReadOnlyAdmin
from audit.visible import visible
from execution.models import Session, State
from execution.pipeline import pulling
from registry.access import may, visible_toolkits


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Whoever may publish all that a session serves may close it; what it holds goes on elsewhere, or is unknown."""

    empty_text = (
        "No outside worker is here: tools of the type session wait in the queue. One opens a session at "
        "POST /v1/sessions, with the key of an agent that may serve the toolkit."
    )
    list_display = ["id", "worker", "serves", "holds", "created_at", "seen_at"]
    list_display_links = None
    search_fields = ["id", "agent__name", "toolkits__name"]
    ordering = ["-created_at"]
    actions = ["close"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        held = Q(pulls__call__state=State.RUNNING, pulls__call__fence=F("pulls__fence"))
        seen = Session.objects.filter(pk__in=Session.objects.filter(toolkits__in=visible_toolkits(request.user)))
        counted = seen.annotate(held=Count("pulls", filter=held, distinct=True))
        return counted.select_related("agent").prefetch_related("toolkits").order_by("-created_at")

    @action(description="Close it: another session takes what it holds")
    def close(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        for session in queryset:
            if not all(may(request.user, "publish", toolkit) for toolkit in session.toolkits.all()):
                messages.error(request, f"{session}: only a person who may publish all that it serves may do this.")
            elif pulling.close(session, why=f"closed by {request.user.get_username()}"):
                messages.success(request, f"{session} is closed.")
            else:
                messages.info(request, f"{session} had ended already.")

    @display(description="Worker")
    def worker(self, session: Session) -> str:
        return visible(session.agent.name)

    @display(description="Serves")
    def serves(self, session: Session) -> str:
        return ", ".join(sorted(visible(toolkit.name) for toolkit in session.toolkits.all()))

    @display(description="Holds")
    def holds(self, session: Session) -> int:
        held: int = session.held  # type: ignore[attr-defined]  # counted by the queryset
        return held
