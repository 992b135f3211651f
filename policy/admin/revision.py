"""Policy revisions and their rules in the admin, to read; they are written on the policy pages or by import."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display

from policy import readers, revisions
from policy.models import Revision, Rule
from registry.admin.guarded import ReadOnly

_STATES = {Revision.State.ACTIVE: "success", Revision.State.DRAFT: "info", Revision.State.RETIRED: ""}
_EFFECTS = {Rule.Effect.ALLOW: "success", Rule.Effect.ASK: "warning", Rule.Effect.DENY: "danger"}


class PolicyReaders(ReadOnly):
    """Rules tell who may do what, so only those see them who may read policy."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) and readers.may_read(request.user)


class RuleInline(PolicyReaders, TabularInline):
    """A revision's rules in their order, each as a sentence."""

    model = Rule
    fields = readonly_fields = ["place", "name", "told"]
    ordering = ["position"]
    extra = 0
    per_page = 50

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @display(description="Place")
    def place(self, rule: Rule) -> int:
        return rule.position + 1

    @display(description="What it says")
    def told(self, rule: Rule) -> str:
        return revisions.spec_of(rule).sentence


@admin.register(Revision)
class RevisionAdmin(PolicyReaders, ModelAdmin):
    """Which policy was live when, by whom."""

    empty_text = (
        "No policy yet: the defaults hold, by which high risk asks one person and critical risk two. "
        "Write rules on the policy page, or run manage.py import_policy."
    )
    list_display = ["number", "shown_state", "rule_count", "note", "is_shadow", "activated_at", "activated_by"]
    list_filter = ["state"]
    list_select_related = ["activated_by"]
    search_fields = ["=number", "note"]
    fields = [
        "number",
        "state",
        "note",
        "based_on",
        "digest",
        "is_shadow",
        "created_by",
        "created_at",
        "activated_by",
        "activated_at",
    ]
    inlines = [RuleInline]
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Revision]:
        found: QuerySet[Revision] = super().get_queryset(request)
        return found.annotate(rules_held=Count("rules"))

    @display(description="State", ordering="state", label=_STATES)
    def shown_state(self, revision: Revision) -> tuple[str, str]:
        return revision.state, revision.get_state_display()

    @display(description="Rules", ordering="rules_held")
    def rule_count(self, revision: Revision) -> int:
        return int(revision.rules_held)  # type: ignore[attr-defined]


@admin.register(Rule)
class RuleAdmin(PolicyReaders, ModelAdmin):
    """Every rule of every revision, to search in."""

    empty_text = (
        "No rule yet. Rules come with a revision: write one on the policy page, or run manage.py import_policy."
    )
    list_display = ["name", "shown_effect", "told", "revision", "place"]
    list_filter = ["effect", "revision__state"]
    list_select_related = ["revision"]
    search_fields = ["name", "when", "=revision__number"]
    ordering = ["-revision", "position"]
    list_per_page = 50

    @display(description="Effect", ordering="effect", label=_EFFECTS)
    def shown_effect(self, rule: Rule) -> tuple[str, str]:
        return rule.effect, rule.get_effect_display()

    @display(description="What it says")
    def told(self, rule: Rule) -> str:
        return revisions.spec_of(rule).sentence

    @display(description="Place", ordering="position")
    def place(self, rule: Rule) -> int:
        return rule.position + 1
