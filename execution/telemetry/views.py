"""GET /metrics, for Prometheus."""

import hmac

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from audit.access import sees_everything
from execution.hooks import metrics as watching
from execution.telemetry import metrics
from execution.telemetry.state import State
from registry.loopback import is_loopback

# With one of these the machine at the other end speaks for somebody else.
_FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA")


@never_cache
@require_safe
def exposition(request: HttpRequest) -> HttpResponse:
    """All that is counted, for this machine itself, a bearer of the token, and people who may see everything."""
    if not (_is_local(request) or _has_token(request) or sees_everything(request.user)):
        text = "Metrics are for this machine, for whoever has PLACET_METRICS_TOKEN, and for people with audit rights.\n"
        return HttpResponse(text, status=403, content_type="text/plain; charset=utf-8")
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    everything = metrics.collected()
    everything.register(State())
    if watching.is_wanted():
        everything.register(watching.Worked())
    return HttpResponse(generate_latest(everything), content_type=CONTENT_TYPE_LATEST)


def _is_local(request: HttpRequest) -> bool:
    is_forwarded = any(name in request.META for name in _FORWARDED)
    return not is_forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))


def _has_token(request: HttpRequest) -> bool:
    token: str = settings.PLACET_METRICS_TOKEN
    scheme, _, given = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return bool(token) and scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
