"""Composition: plugs the apps together, decides nothing."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
