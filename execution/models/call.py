"""Call: one request of one agent, from the door to its end."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from registry.ids import new_id


class State(models.TextChoices):
    """Where a call is. `calls.py` alone moves it."""

    REJECTED = "rejected", "Rejected"  # malformed, unknown tool, invalid input: nothing was judged
    DENIED = "denied", "Denied"
    AWAITING_APPROVAL = "awaiting_approval", "Awaiting approval"
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    WAITING_CALLBACK = "waiting_callback", "Waiting for callback"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    TIMED_OUT = "timed_out", "Timed out"
    CANCELLED = "cancelled", "Cancelled"
    EXPIRED = "expired", "Expired"
    UNKNOWN = "unknown", "Unknown"  # a worker was lost and the tool may have run: a person must say


OPEN = (State.AWAITING_APPROVAL, State.QUEUED, State.RUNNING, State.WAITING_CALLBACK)


class Call(models.Model):
    """The truth about a call. People see the redacted copies; what runs is sealed and gone when the call ends."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    agent = models.ForeignKey("policy.Agent", on_delete=models.PROTECT, related_name="calls", db_index=False)
    call_id = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    door = models.CharField(max_length=16)
    tool = models.ForeignKey("registry.Tool", on_delete=models.PROTECT, null=True, related_name="calls", db_index=False)
    tool_ref = models.CharField(max_length=200)  # "Calculator.Add@1.1.0", or what was asked for
    state = models.CharField(max_length=20, choices=State.choices)
    fence = models.PositiveIntegerField(default=0)
    dispatch = models.CharField(max_length=8, default="queue")
    cancel_requested = models.BooleanField(default=False)

    input = models.TextField(default="{}")
    result = models.TextField(default="", blank=True)
    result_kind = models.CharField(max_length=8, default="", blank=True)  # "value" or "content" once there is one
    error = models.TextField(default="", blank=True)
    decision = models.TextField(default="", blank=True)
    warnings = models.TextField(default="", blank=True)
    sealed = models.BinaryField(null=True)
    sealed_answer = models.BinaryField(null=True)
    arguments_digest = models.CharField(max_length=64, default="")
    user_id = models.CharField(max_length=255, default="", blank=True)
    trace_id = models.CharField(max_length=128, default="", blank=True)
    approval = models.ForeignKey(
        "policy.Approval", on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    grant = models.ForeignKey("policy.Grant", on_delete=models.PROTECT, null=True, related_name="+", db_index=False)

    created_at = models.DateTimeField(db_default=Now())
    not_before = models.DateTimeField(null=True)
    resend_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    duration_ms = models.FloatField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "call_id"], name="one_call_per_agent_and_call_id"),
            models.CheckConstraint(
                name="only_a_running_call_has_a_lease",
                condition=Q(lease_until=None) | Q(state="running"),
            ),
            models.CheckConstraint(
                name="a_running_call_has_a_lease_and_a_fence",
                condition=~Q(state="running") | Q(lease_until__isnull=False, fence__gte=1),
            ),
            models.CheckConstraint(
                name="what_will_run_is_sealed_only_while_the_call_is_open",
                condition=Q(sealed=None) | Q(state__in=OPEN),
            ),
            models.CheckConstraint(
                name="a_call_that_ended_says_when",
                condition=Q(finished_at__isnull=False) | Q(state__in=OPEN),
            ),
        ]
        indexes = [  # ascending: SQLite packs pages to the left, and would move a full one at each new call
            models.Index(fields=["agent", "id"], name="calls_of_an_agent"),
            models.Index(fields=["tool", "id"], name="calls_of_a_tool"),
            models.Index(fields=["state", "id"], name="open_calls", condition=Q(state__in=OPEN)),
            models.Index(fields=["id"], name="calls_of_unknown_outcome", condition=Q(state="unknown")),
            models.Index(fields=["trace_id"], name="calls_of_a_trace", condition=~Q(trace_id="")),
            models.Index(
                fields=["finished_at"], name="calls_with_sealed_answer", condition=Q(sealed_answer__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_ref} {self.call_id}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN
