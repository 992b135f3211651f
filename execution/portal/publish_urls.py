from django.urls import path

from execution.portal import publish, publishediting, publishsteps

urlpatterns = [
    path("publish/", publish.overview, name="portal-publish"),
    path("publish/new/", publishediting.new, name="publish-new"),
    path("publish/form/", publishediting.form, name="publish-form"),
    path("publish/check/", publishediting.check, name="publish-check"),
    path("publish/<str:id>/", publishsteps.show, name="publish-version"),
    path("publish/<str:id>/edit/", publishediting.edit, name="publish-edit"),
    path("publish/<str:id>/<slug:key>/", publishsteps.take, name="publish-step"),
]
