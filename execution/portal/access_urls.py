from django.urls import path

from execution.portal import agentpage, agents, cell, keys, matrix, secretspage, unused, why

# An agent can be called almost anything, so no other page stands below /agents/.
urlpatterns = [
    path("agents/", agents.overview, name="portal-agents"),
    path("new-agent/", agents.new, name="portal-new-agent"),
    path("agents/<str:name>/", agentpage.show, name="portal-agent"),
    path("agents/<str:name>/admission/", keys.admission, name="portal-agent-admission"),
    path("agents/<str:name>/keys/", keys.make, name="portal-make-key"),
    path("agents/<str:name>/keys/<str:prefix>/rotate/", keys.rotate, name="portal-rotate-key"),
    path("agents/<str:name>/keys/<str:prefix>/revoke/", keys.revoke, name="portal-revoke-key"),
    path("permissions/", matrix.overview, name="portal-permissions"),
    path("permissions/of/", cell.show, name="portal-permission"),
    path("permissions/unused/", unused.overview, name="portal-unused"),
    path("permissions/why/", why.why, name="portal-why"),
    path("secrets/", secretspage.overview, name="portal-secrets"),
]
