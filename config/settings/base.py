"""Settings shared by every way to run."""

import sys
from pathlib import Path
from typing import Any

from django.templatetags.static import static

from config import env
from config.address import Address

BASE_DIR = Path(__file__).resolve().parents[2]
PLACET_HOME = env.folder("PLACET_HOME", BASE_DIR / "var")

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    # Not the autodiscovering config: only the web process needs admin modules in memory (see config/urls.py).
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "guardian",
    "audit",
    "registry",
    "policy",
    "execution",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.ContentPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "config.middleware.SlashForReaders",
    "config.middleware.ChunkedBodies",
    "config.middleware.NumbersOfTheAdmin",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ATOMIC_REQUESTS = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
ANONYMOUS_USER_NAME = None  # guardian: nobody has permissions without logging in
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"

_url = env.text("DATABASE_URL", "")
if not _url:  # REST framework would load PostgreSQL's client for fields that no table here has: 8 MB a process
    sys.modules.setdefault("django.contrib.postgres.fields", None)  # type: ignore[arg-type]
DATABASES = {"default": env.database(_url) if _url else env.sqlite(PLACET_HOME / "placet.sqlite3")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT: Path | None = BASE_DIR / "static-collected"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True

DATA_UPLOAD_MAX_MEMORY_SIZE = 4_000_000
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "policy.authentication.AgentAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["registry.api.parsing.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "registry.api.rendering.ByFormat",
    "DEFAULT_PAGINATION_CLASS": "registry.api.paging.Pages",
    "DEFAULT_FILTER_BACKENDS": [
        "audit.api.lists.KnownParameters",
        "django_filters.rest_framework.DjangoFilterBackend",
        "rest_framework.filters.SearchFilter",
        "audit.api.lists.StrictOrdering",
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "registry.api.errors.answer",
    "UNAUTHENTICATED_USER": None,
    "UNICODE_JSON": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Placet",
    "DESCRIPTION": "Tool registry and policy portal for AI agents.",
    "VERSION": "1.0.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "AccessRequestState": "policy.models.accessrequest.AccessRequest.State",
        "ApprovalState": "policy.models.approval.Approval.State",
        "CallState": "execution.models.call.State",
        "GrantState": ["active", "used up", "over", "revoked"],
        "ReplayState": "policy.models.replay.Replay.State",
        "ReviewAnswer": "policy.models.review.Review.Answer",
        "RevisionState": "policy.models.revision.Revision.State",
        "ToolkitPermission": "policy.granting.VERBS",
        "VersionState": "registry.models.version.ToolkitVersion.State",
        "VoteAnswer": "policy.models.vote.Vote.Answer",
    },
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SCHEMA_PATH_PREFIX": "/api/",
}

UNFOLD = {
    "SITE_TITLE": "Placet",
    "SITE_HEADER": "Placet",
    "SITE_SUBHEADER": "Tools, policy, evidence",
    "SITE_SYMBOL": "verified",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("registry/icon.svg")}],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SIDEBAR": {"show_search": True, "navigation": "config.sidebar.navigation"},
    "STYLES": [lambda request: static("registry/portal.css")],
}

CELERY_BROKER_URL = env.broker("CELERY_BROKER_URL")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_DEFAULT_QUEUE = "placet"
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1}
if CELERY_BROKER_URL.startswith("filesystem:"):
    CELERY_BROKER_TRANSPORT = "config.broker:Transport"
    _queue = PLACET_HOME / "broker"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_queue / "messages"),
        "data_folder_out": str(_queue / "messages"),
        "control_folder": str(_queue / "control"),
        "polling_interval": 0.02,
    }
    # The transport sleeps a polling interval whenever its prefetch window is full; a wide window keeps it awake.
    CELERY_WORKER_PREFETCH_MULTIPLIER = 16
else:
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "visibility_timeout": 3600,
        "unacked_restore_throttle": 1,
        "socket_timeout": 5,
        "socket_connect_timeout": 3,
        "socket_keepalive": True,
    }
    CELERY_WORKER_PREFETCH_MULTIPLIER = 2

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "config.logs.LineFormatter"}, "facts": {"()": "config.logs.FactsFormatter"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "line"},
        "facts": {"class": "config.logs.GatheringHandler", "formatter": "facts"},
    },
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "placet.telemetry": {"level": "INFO", "handlers": ["facts"], "propagate": False},
        "django": {"level": "INFO"},
        "django.request": {"level": "ERROR"},
        "django.server": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
        "hpack": {"level": "WARNING"},  # below it prints every header of gRPC, keys and credentials included
    },
}

PLACET_INLINE = env.flag("PLACET_INLINE", True)
PLACET_LEASE = env.number("PLACET_LEASE", 15, at_least=1)
PLACET_SWEEP = env.number("PLACET_SWEEP", 5, at_least=0.2)
_ROUND = {"schedule": PLACET_SWEEP, "options": {"expires": PLACET_SWEEP}}
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "execution.sweep", **_ROUND},
    "seal": {"task": "execution.seal", **_ROUND},
    "notices": {"task": "policy.deliver_notices", **_ROUND},
    "replays": {"task": "policy.sweep_replays", "schedule": 15.0, "options": {"expires": 15.0}},
    "packs": {"task": "execution.sweep_packs", "schedule": 15.0, "options": {"expires": 15.0}},
}
PLACET_MAX_PENDING = int(env.number("PLACET_MAX_PENDING", 100, at_least=1))
# Outside workers that pull calls: sessions that each caller may have open, and seconds after which a silent one ends.
PLACET_MAX_SESSIONS = env.whole("PLACET_MAX_SESSIONS", 50, at_least=1)
PLACET_SESSION_IDLE = env.number("PLACET_SESSION_IDLE", 3600, at_least=1)
# MCP: seconds after which an unused session ends, and for which a stream of changes is held; web pages that may speak
# to it beside this machine's and our own; who gives out tokens for it (OAuth 2.1 issuers).
PLACET_MCP_IDLE = env.number("PLACET_MCP_IDLE", 1800, at_least=1)
PLACET_STREAM_SECONDS = env.number("PLACET_STREAM_SECONDS", 300, at_least=0.1)
PLACET_ORIGINS = env.addresses("PLACET_ORIGINS", is_origin=True)
PLACET_AUTHORIZATION_SERVERS = env.addresses("PLACET_AUTHORIZATION_SERVERS")
# Ranges that tools may be reached in although they are private. A metadata service has to be named by its own address.
PLACET_EGRESS_ALLOW = env.networks("PLACET_EGRESS_ALLOW")
# docker or podman, by name or by path; the first that answers if it is empty.
PLACET_CONTAINER_ENGINE = env.text("PLACET_CONTAINER_ENGINE", "")
PLACET_JWT_AUDIENCE = env.words("PLACET_JWT_AUDIENCE", "placet")
# Tokens of an authorization server: its keys (a file or an address), the issuers it speaks for, who the caller is.
PLACET_JWKS = env.keyset("PLACET_JWKS")
PLACET_JWT_ISSUERS = env.words("PLACET_JWT_ISSUERS") or PLACET_AUTHORIZATION_SERVERS
PLACET_JWT_AGENT_CLAIM = env.text("PLACET_JWT_AGENT_CLAIM", "") or "sub"
PLACET_ANONYMOUS_AGENT = env.text("PLACET_ANONYMOUS_AGENT", "")
PLACET_HOST = env.text("HOST", "") or "127.0.0.1"
PLACET_PORT = env.whole("PORT", 8000, at_least=1)
PLACET_ADDRESS = Address(PLACET_HOST, PLACET_PORT)
PLACET_URL = env.own_url("PLACET_URL", PLACET_ADDRESS.url)
PLACET_TELL_AT_ONCE = False  # what is told of a call (lines, numbers, spans) is told a moment after its answer
PLACET_WEB_THREADS = env.whole("PLACET_WEB_THREADS", 64, at_least=2)
# How long a redacted-for-people answer's exact form stays sealed for a caller that repeats its call_id.
PLACET_ANSWER_DAYS = env.number("PLACET_ANSWER_DAYS", 1)

# A tool version that failed so often in a row within the window is left alone for the pause; 0 failures: never.
PLACET_BREAKER_FAILURES = env.whole("PLACET_BREAKER_FAILURES", 10)
PLACET_BREAKER_WINDOW = env.number("PLACET_BREAKER_WINDOW", 60, at_least=1)
PLACET_BREAKER_PAUSE = env.number("PLACET_BREAKER_PAUSE", 30, at_least=1)
# Queued calls of one tool version that run at once, over all workers.
PLACET_TOOL_CONCURRENCY = env.whole("PLACET_TOOL_CONCURRENCY", 16, at_least=1)
# Lets whoever brings it read /metrics from another machine.
PLACET_METRICS_TOKEN = env.text("PLACET_METRICS_TOKEN", "")
# Callables that watch every attempt, by dotted paths: execution.hooks.logging, execution.hooks.metrics, your own.
PLACET_HOOKS = env.words("PLACET_HOOKS")

# Notices: mail to people, and a signed webhook.
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = str(PLACET_HOME / "mail")
EMAIL_TIMEOUT = 10
EMAIL_USE_LOCALTIME = False
if (_mail := env.mail("EMAIL_URL")) is not None:
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
    EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.is_tls, _mail.is_starttls
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("PLACET_MAIL_FROM", "") or "Placet <placet@localhost>"
PLACET_NOTICE_WEBHOOK = env.webhook("PLACET_NOTICE_WEBHOOK")
PLACET_NOTICE_SECRET = env.text("PLACET_NOTICE_SECRET", "")

# Where secrets lie that are not stored here: a mounted folder, and HashiCorp Vault (KV version 2).
PLACET_SECRET_FILES = env.text("PLACET_SECRET_FILES", "")
PLACET_VAULT_ADDR = env.text("PLACET_VAULT_ADDR", "")
PLACET_VAULT_TOKEN = env.text("PLACET_VAULT_TOKEN", "")
PLACET_VAULT_TOKEN_FILE = env.text("PLACET_VAULT_TOKEN_FILE", "")
PLACET_VAULT_MOUNT = env.text("PLACET_VAULT_MOUNT", "secret")
