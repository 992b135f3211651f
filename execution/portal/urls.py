from django.urls import path

from execution.portal import approverstats, home

urlpatterns = [
    path("admin/", home.home, name="portal-home"),
    path("approvals/statistics/", approverstats.approver_statistics, name="approver-statistics"),
    path("portal/demo/", home.load_demo, name="portal-demo"),
]
