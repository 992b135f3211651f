from django.urls import path

from execution.portal import packs, search

urlpatterns = [
    path("search/", search.look, name="portal-search"),
    path("search/keep/", search.keep, name="keep-filter"),
    path("search/forget/<int:id>/", search.forget, name="forget-filter"),
    path("calls/<uuid:id>/evidence/", packs.of_call, name="evidence-of-call"),
    path("evidence/", packs.overview, name="portal-packs"),
    path("evidence/new/", packs.new, name="new-pack"),
    path("evidence/<uuid:id>/", packs.show, name="subject-pack"),
    path("evidence/<uuid:id>/story/", packs.story, name="story-of-pack"),
    path("evidence/<uuid:id>/download/", packs.download, name="download-pack"),
]
