"""What the portal's templates say numbers, times and texts with."""

from django import template

from execution.portal import numbers, times

register = template.Library()
register.filter("short", numbers.short)
register.filter("took", numbers.took)
register.filter("moment", times.moment)
register.filter("timed", times.timed)
