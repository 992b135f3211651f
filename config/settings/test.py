"""Fixed keys and a throw-away home; DATABASE_URL picks the database of a run."""

import os
import tempfile

if "PLACET_HOME" not in os.environ:
    os.environ["PLACET_HOME"] = tempfile.mkdtemp(prefix="placet-test-")

from config.settings.base import *  # noqa: F403

PLACET_PRODUCTION = False
DEBUG = False
SECRET_KEY = "a-key-for-tests-only-it-guards-nothing-at-all-0123456789"
PLACET_AUDIT_KEY = b"a" * 32
PLACET_SEAL_SEED = b"s" * 32
PLACET_SEALING_KEYS = {"t1": b"k" * 32, "t0": b"o" * 32}
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STATIC_ROOT = None  # nothing is collected; the finders serve
WHITENOISE_AUTOREFRESH = True  # looks a file up when it is asked for, not all of them for each client that a test makes
if DATABASES["default"]["ENGINE"] == "config.sqlite":  # noqa: F405  a file, as in the product: threads and gate are real
    DATABASES["default"]["TEST"] = {"NAME": str(PLACET_HOME / "test.sqlite3")}  # noqa: F405
PLACET_TELL_AT_ONCE = True  # so that each test sees what is told of its own calls
LOGGING["handlers"]["facts"]["class"] = "logging.StreamHandler"  # noqa: F405  likewise
