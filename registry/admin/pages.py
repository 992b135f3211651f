"""Pages of our own inside the admin's frame."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin

LABELS = {
    "draft": "info",
    "published": "success",
    "deprecated": "warning",
    "withdrawn": "danger",
    "low": "success",
    "medium": "info",
    "high": "warning",
    "critical": "danger",
}


class PagesAdmin(ModelAdmin):
    """A ModelAdmin whose object page and steps are ours: nothing is saved but by the functions that may."""

    def page(self, request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
        """A template of ours with what the admin's frame needs around it."""
        request.current_app = self.admin_site.name
        frame = self.admin_site.each_context(request)
        context.setdefault("content_title", title)
        return TemplateResponse(request, template, {**frame, "opts": self.opts, "title": title, **context})

    def step(self, name: str, view: Callable[..., HttpResponse]) -> URLPattern:
        """The address of one step with one object: `<id>/<name>/`."""

        def wrapped(request: HttpRequest, object_id: str) -> HttpResponse:
            response: HttpResponse = self.admin_site.admin_view(view)(request, object_id)
            return response

        route = f"<path:object_id>/{name}/"
        url_name = f"{self.opts.app_label}_{self.opts.model_name}_{name.replace('-', '_')}"
        return path(route, update_wrapper(wrapped, view), name=url_name)


def label(word: str, text: str) -> SafeString:
    """A word of LABELS as a coloured label."""
    return render_to_string("unfold/helpers/label.html", {"type": LABELS[word], "text": text})


def only(*methods: str) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """A page answers these methods; the others are 405 and do nothing."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        def inner(self: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            return view(self, request, *args, **kwargs)

        return update_wrapper(inner, view)

    return decorate


def number(text: str) -> int:
    """A primary key from an address; anything else is not found."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Http404
    return int(text)
