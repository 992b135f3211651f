"""The yardstick: a Django view that adds two numbers and does nothing else, without middleware or database."""

import json

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

settings.configure(
    DEBUG=False,
    SECRET_KEY="guards nothing, signs nothing",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1"],
    MIDDLEWARE=[],
    USE_TZ=True,
)


def add(request: HttpRequest) -> JsonResponse:
    asked = json.loads(request.body)
    return JsonResponse({"sum": asked["a"] + asked["b"]})


urlpatterns = [path("add", add)]
application = get_wsgi_application()
