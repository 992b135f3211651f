"""What surrounds each page of the portal: people with a login, the portal's look, and nothing kept by a browser."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from policy.views.frame import for_people

__all__ = ["for_people", "page"]


def page(request: HttpRequest, template: str, title: str, *, status: int = 200, **context: Any) -> HttpResponse:
    """A template of ours, which extends portal/frame.html, inside the frame."""
    frame = {**admin.site.each_context(request), "title": title, "content_title": title}
    return render(request, template, {**frame, **context}, status=status)
