"""The filter `exactly`: a text from outside as HTML, with everything that has no ink written out and marked."""

from typing import Any

from django import template
from django.utils.safestring import SafeString

from policy.views.exactly import marked

register = template.Library()


@register.filter
def exactly(value: Any) -> SafeString:
    return marked(str(value))
