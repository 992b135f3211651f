from django.urls import path

from execution.portal import home

urlpatterns = [
    path("admin/", home.home, name="portal-home"),
    path("portal/demo/", home.load_demo, name="portal-demo"),
]
