from django.urls import include, path

from execution import views

# A page named "subject-KIND" is what the audit app links to for subjects of that kind.
urlpatterns = [
    path("calls/<uuid:id>/", views.timeline, name="subject-call"),
    path("calls/<uuid:id>/story/", views.story, name="story-of-call"),
    path("calls/<uuid:id>/cancel/", views.cancel, name="cancel-call"),
    path("calls/<uuid:id>/break-glass/", views.break_glass, name="break-glass-for-call"),
    path("calls/<uuid:id>/settle/", views.settle, name="settle-call"),
    path("", include("execution.portal.evidence_urls")),
    path("", include("execution.portal.access_urls")),
]
