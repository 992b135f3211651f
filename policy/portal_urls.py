"""The pages about policy."""

from django.urls import path

from policy.views import drafts, policy, trials

# A page named "subject-KIND" is what the audit app links to for subjects of that kind.
urlpatterns = [
    path("", policy.live, name="policy"),
    path("evaluate/", trials.evaluate, name="policy-evaluate"),
    path("replays/", trials.replay_list, name="policy-replays"),
    path("replays/<uuid:id>/", trials.replay, name="policy-replay"),
    path("replays/<uuid:id>/story/", trials.replay_story, name="policy-replay-story"),
    path("shadow/", trials.shadow, name="policy-shadow"),
    path("revisions/", policy.listing, name="policy-revisions"),
    path("revisions/new/", drafts.new, name="policy-new"),
    path("revisions/<int:id>/", policy.revision, name="subject-policy"),
    path("revisions/<int:id>/edit/", drafts.edit, name="policy-edit"),
    path("revisions/<int:id>/arrange/", drafts.arrange, name="policy-arrange"),
    path("revisions/<int:id>/activate/", drafts.activate, name="policy-activate"),
    path("revisions/<int:id>/discard/", drafts.discard, name="policy-discard"),
    path("revisions/<int:id>/shadow/", drafts.shadow, name="policy-set-shadow"),
    path("revisions/<int:id>/difference/", policy.difference, name="policy-difference"),
    path("revisions/<int:id>/differences/", trials.differences, name="policy-differences"),
    path("revisions/<int:id>/export/", policy.export, name="policy-export"),
]
