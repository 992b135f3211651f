"""The pages of policy: the way in, the approvals, and the rules that ask for them."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from policy.views import approval, breakglass, deciding, grants, inbox, login

# A page named "subject-KIND" is what the audit app links to for subjects of that kind.
urlpatterns = [
    path("", login.home, name="home"),
    path("login/", login.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
    path("approvals/", inbox.inbox, name="approvals"),
    path("approvals/cards/", inbox.cards, name="approval-cards"),
    path("approvals/history/", inbox.history, name="approval-history"),
    path("approvals/decide/", deciding.decide, name="approval-decide"),
    path("approvals/grant/", deciding.grant, name="approval-grant"),
    path("approvals/grants/", grants.listing, name="grants"),
    path("approvals/grants/<int:id>/revoke/", grants.revoke, name="grant-revoke"),
    path("approvals/break-glass/", breakglass.listing, name="break-glass"),
    path("approvals/break-glass/<int:id>/review/", breakglass.review, name="break-glass-review"),
    path("approvals/<uuid:id>/", approval.approval, name="subject-approval"),
    path("approvals/<uuid:id>/card/", approval.card, name="approval-card"),
    path("approvals/<uuid:id>/revoke/", deciding.revoke, name="approval-revoke"),
    path("policy/", include("policy.portal_urls")),
]
