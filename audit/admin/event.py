"""Events in the admin: search, filter, export."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.html import format_html
from unfold.decorators import display

from audit import access, exports, search
from audit.admin.filters import ActorFilter, EventFilter, OutcomeFilter, SpanFilter, SubjectFilter, SubjectKindFilter
from audit.admin.readonly import ReadOnlyAdmin
from audit.models import Event
from audit.paging import EventPaginator
from audit.templatetags.visible import pretty
from audit.visible import visible

OUTCOMES = {"ok": "success", "failed": "danger", "refused": "warning"}


def page_of(kind: str, id: str) -> str:
    """Where a subject is shown: an app that has such pages names them "subject-KIND"; empty if none does."""
    return _address(f"subject-{kind}", id)


def _address(name: str, *args: str) -> str:
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Everyone on the staff may look; each sees the events that are theirs to see."""

    empty_text = (
        "No event yet, or none that is yours to see. Calls leave them, and whatever happens to toolkits and agents; "
        "a toolkit's owner gives you its evidence with the permission 'audit'."
    )
    list_display = ["when", "what", "subject", "by", "result"]
    list_filter = [
        EventFilter,
        SubjectKindFilter,
        OutcomeFilter,
        ActorFilter,
        SubjectFilter,
        ("at", SpanFilter),
    ]
    search_fields = ["subject_id"]  # get_search_results looks everywhere
    search_help_text = "Words that must all occur in the event: subject, name, actor, outcome, trace id or detail"
    ordering = ["-id"]
    paginator = EventPaginator
    list_before_template = "audit/export_buttons.html"
    fields = [
        "id",
        "when",
        "what",
        "subject",
        "number",
        "by",
        "result",
        "trace",
        "told",
        "chained_to",
        "own_hash",
        "key_id",
    ]
    readonly_fields = ["when", "what", "subject", "number", "by", "result", "trace", "told", "chained_to", "own_hash"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        return access.visible_events(request.user).order_by("-id")

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Event], search_term: str) -> Any:
        return search.matching(queryset, search_term), False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.export)
        return [path("export/<str:form>/", view, name="audit_event_export"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The export links carry the question as it was asked."""
        query = f"?{request.GET.urlencode()}" if request.GET else ""
        links = {f"{form}_url": reverse("admin:audit_event_export", args=[form]) + query for form in exports.FORMS}
        links["pack_url"] = f"{pack}{query}" if (pack := _address("new-pack")) else ""
        return super().changelist_view(request, {**links, **(extra_context or {})})

    def export(self, request: HttpRequest, form: str) -> StreamingHttpResponse:
        """The events of the list as it is now searched and filtered, all pages of it."""
        if form not in exports.FORMS or request.method not in ("GET", "HEAD"):
            raise Http404
        try:
            found = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters as error:
            raise BadRequest("The list cannot be filtered like this.") from error
        return exports.response(found, form)

    @display(description="Time (UTC)", ordering="id")
    def when(self, event: Event) -> str:
        return f"{event.at:%Y-%m-%d %H:%M:%S}.{event.at.microsecond // 1000:03d}"

    @display(description="Event", ordering="event")
    def what(self, event: Event) -> str:
        return visible(event.event)

    @display(description="Subject")
    def subject(self, event: Event) -> str:
        name = visible(f"{event.subject_kind} {event.subject_id}")
        page = page_of(event.subject_kind, event.subject_id)
        return format_html('<a class="evidence-link" href="{}">{}</a>', page, name) if page else name

    @display(description="Place in its chain")
    def number(self, event: Event) -> str:
        return str(event.seq)

    @display(description="Actor", ordering="actor")
    def by(self, event: Event) -> str:
        return visible(event.actor)

    @display(description="Outcome", label=OUTCOMES)
    def result(self, event: Event) -> str:
        return visible(event.outcome)

    @display(description="Trace")
    def trace(self, event: Event) -> str:
        return visible(event.trace_id) or "-"

    @display(description="Detail")
    def told(self, event: Event) -> str:
        return format_html('<pre class="evidence-json">{}</pre>', pretty(event.detail))

    @display(description="Hash of the event before")
    def chained_to(self, event: Event) -> str:
        return format_html('<code class="evidence-hash">{}</code>', bytes(event.prev_hash).hex())

    @display(description="Its hash")
    def own_hash(self, event: Event) -> str:
        return format_html('<code class="evidence-hash">{}</code>', bytes(event.hash).hex())
