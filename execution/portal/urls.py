from django.urls import path

from execution.portal import approverstats, catalogue, home, toolpage, trying

urlpatterns = [
    path("admin/", home.home, name="portal-home"),
    path("approvals/statistics/", approverstats.approver_statistics, name="approver-statistics"),
    path("portal/demo/", home.load_demo, name="portal-demo"),
    path("catalogue/", catalogue.catalogue, name="portal-catalogue"),
    path("catalogue/tried/<uuid:id>/", trying.tried, name="portal-tried"),
    path("catalogue/<str:toolkit>/<str:name>/", toolpage.tool_page, name="portal-tool"),
    path("catalogue/<str:toolkit>/<str:name>/try/", trying.run, name="portal-try"),
    path("catalogue/<str:toolkit>/<str:name>/access/", trying.let_in, name="portal-try-access"),
]
