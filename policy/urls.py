"""The pages of policy: the way in, the approvals, and the rules that ask for them."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from policy.views import accessrequests, approval, breakglass, deciding, grants, history, inbox, login, several

# A page named "subject-KIND" is what the audit app links to for subjects of that kind.
urlpatterns = [
    path("", login.home, name="home"),
    path("login/", login.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
    path("approvals/", inbox.inbox, name="approvals"),
    path("approvals/cards/", inbox.cards, name="inbox-cards"),
    path("approvals/history/", history.history, name="inbox-history"),
    path("approvals/several/", several.several, name="inbox-several"),
    path("approvals/decide/", deciding.decide, name="inbox-decide"),
    path("approvals/grant/", deciding.grant, name="inbox-grant"),
    path("approvals/grants/", grants.listing, name="inbox-grants"),
    path("approvals/grants/<int:id>/revoke/", grants.revoke, name="inbox-grant-revoke"),
    path("approvals/break-glass/", breakglass.listing, name="inbox-glass"),
    path("approvals/break-glass/<int:id>/review/", breakglass.review, name="inbox-glass-review"),
    path("approvals/<uuid:id>/", approval.approval, name="subject-approval"),
    path("approvals/<uuid:id>/card/", approval.card, name="inbox-card"),
    path("approvals/<uuid:id>/revoke/", deciding.revoke, name="inbox-revoke"),
    path("access-requests/", accessrequests.listing, name="access-requests"),
    path("access-requests/<int:id>/", accessrequests.listing, name="access-request"),
    path("access-requests/<int:id>/decide/", accessrequests.decide, name="access-request-decide"),
    path("policy/", include("policy.portal_urls")),
]
