"""For a company: every key given, hosts named, nothing made up. Refuses to start otherwise, and says why."""

from django.core.exceptions import ImproperlyConfigured

from config import env, keys
from config.settings.base import *  # noqa: F403
from config.settings.base import DATABASES, PLACET_NOTICE_SECRET, PLACET_NOTICE_WEBHOOK

PLACET_PRODUCTION = True
DEBUG = False
_keys = keys.from_environment()
SECRET_KEY = _keys.django
PLACET_AUDIT_KEY = _keys.audit
PLACET_SEAL_SEED = _keys.seal_seed
PLACET_SEALING_KEYS = _keys.sealing
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS")

if len(SECRET_KEY) < 40 or len(set(SECRET_KEY)) < 10:
    raise ImproperlyConfigured("PLACET_SECRET_KEY is too short or too plain; use 50 random characters")
if not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS:
    raise ImproperlyConfigured("ALLOWED_HOSTS must name the hosts that Placet is reached by, comma separated")
if DATABASES["default"]["ENGINE"] == "config.sqlite" and not env.flag("PLACET_ALLOW_SQLITE", False):
    raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL database (or set PLACET_ALLOW_SQLITE=1)")
if PLACET_NOTICE_WEBHOOK and len(PLACET_NOTICE_SECRET) < 16:
    raise ImproperlyConfigured("PLACET_NOTICE_SECRET must hold 16 characters or more: PLACET_NOTICE_WEBHOOK is signed")

PLACET_URL = env.own_url("PLACET_URL", f"https://{ALLOWED_HOSTS[0]}")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS") or [PLACET_URL]
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_SSL_REDIRECT = env.flag("PLACET_SSL_REDIRECT", True)
SECURE_REDIRECT_EXEMPT = [r"^health$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("PLACET_BEHIND_PROXY", False) else None
SECURE_HSTS_SECONDS = 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
