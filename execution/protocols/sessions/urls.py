"""The paths of the session API; what stands for a session or a request in them is any text."""

from django.urls import path, re_path

from execution.protocols.sessions.answering import HeartbeatView, ResponseView
from execution.protocols.sessions.views import RequestsView, SessionsView, SessionView

_BOTH = r"(?P<session>[^/]+)/(?P<request_id>(?s:.+))"  # a caller's own id may hold anything, also a slash

urlpatterns = [
    path("v1/sessions", SessionsView.as_view(), name="sessions"),
    path("v1/sessions/<str:session>/requests", RequestsView.as_view(), name="session-requests"),
    path("v1/sessions/<path:session>", SessionView.as_view(), name="session"),
    re_path(rf"^v1/tools/request/{_BOTH}/heartbeat\Z", HeartbeatView.as_view(), name="tool-heartbeat"),
    re_path(rf"^v1/tools/response/{_BOTH}\Z", ResponseView.as_view(), name="tool-response"),
]
