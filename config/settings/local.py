"""One machine, nothing but Python: keys made at first start, state under PLACET_HOME."""

import os

if os.environ.get("PLACET_PRODUCTION", "") not in ("", "0"):
    from config.settings.production import *  # noqa: F403
else:
    from config import env, keys
    from config.settings.base import *  # noqa: F403
    from config.settings.base import DATABASES, PLACET_ADDRESS, PLACET_HOME, PLACET_HOST

    PLACET_PRODUCTION = False
    DEBUG = False
    PLACET_HOME.mkdir(mode=0o700, parents=True, exist_ok=True)
    _keys = keys.from_home(PLACET_HOME, DATABASES["default"])
    SECRET_KEY = _keys.django
    PLACET_AUDIT_KEY = _keys.audit
    PLACET_SEAL_SEED = _keys.seal_seed
    # Given, they take the place of the home's own: that is how a new one is put in front (manage.py rotate_keys).
    PLACET_SEALING_KEYS = env.keyring("PLACET_SEALING_KEYS") if env.text("PLACET_SEALING_KEYS", "") else _keys.sealing
    ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", PLACET_HOST, PLACET_ADDRESS.site, *env.words("ALLOWED_HOSTS")]
