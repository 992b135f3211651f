"""Seals in the admin."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.decorators import display

from audit import access
from audit.admin.readonly import ReadOnlyAdmin
from audit.models import Seal
from audit.sealing import statement_of


@admin.register(Seal)
class SealAdmin(ReadOnlyAdmin):
    """Signed statements about which events existed, for those who see every event."""

    empty_text = (
        "Nothing is sealed yet. The portal signs all new events every few seconds while it runs; "
        "manage.py seal_audit does it now."
    )
    list_display = ["number", "when", "events", "count", "root", "signed"]
    list_display_links = ["number"]
    ordering = ["-n"]
    sortable_by = ["number"]
    fields = ["n", "when", "events", "count", "gaps", "root", "previous", "written", "signed", "key_id"]
    readonly_fields = ["when", "events", "root", "previous", "written", "signed"]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_staff and access.sees_everything(request.user))

    @display(description="Seal", ordering="n")
    def number(self, seal: Seal) -> str:
        return str(seal.n)

    @display(description="Sealed (UTC)")
    def when(self, seal: Seal) -> str:
        return f"{seal.sealed_at:%Y-%m-%d %H:%M:%S}"

    @display(description="Event ids")
    def events(self, seal: Seal) -> str:
        return f"{seal.first_id} – {seal.last_id}" if seal.last_id >= seal.first_id else "none"

    @display(description="Merkle root")
    def root(self, seal: Seal) -> str:
        return format_html('<code class="evidence-hash">{}</code>', bytes(seal.merkle_root).hex())

    @display(description="Hash of the seal before")
    def previous(self, seal: Seal) -> str:
        return format_html('<code class="evidence-hash">{}</code>', bytes(seal.prev_seal_hash).hex())

    @display(description="Signature (Ed25519)")
    def written(self, seal: Seal) -> str:
        return format_html('<code class="evidence-hash">{}</code>', bytes(seal.signature).hex())

    @display(description="Signature", label={"valid": "success", "not valid": "danger"})
    def signed(self, seal: Seal) -> str:
        return "valid" if statement_of(seal).is_signed() else "not valid"
