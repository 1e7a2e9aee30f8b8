"""All settings, from the environment. `config/checks.py` says what is wrong with them."""

from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP

from config import embedded, env, logs, pool

BASE_DIR = Path(__file__).resolve().parent.parent
HOME = embedded.home_folder()

# ── Servers: real ones from the environment, or the embedded pair ────────────────────────────
CLUSTER = embedded.Cluster(HOME)
EMBEDDED = embedded.needed()
DATABASE_URL = env.optional("DATABASE_URL") or CLUSTER.urls()["postgres"]
REDIS_URL = env.optional("REDIS_URL") or CLUSTER.urls()["valkey"]

# Which process this is: web, worker, sweeper or manage. Only names and pool sizes depend on it.
ROLE = env.text("COUNTERSIGN_ROLE", "manage")

DATABASES = {
    "default": {
        **env.database(DATABASE_URL),
        "OPTIONS": {
            **env.database_options(DATABASE_URL),
            "application_name": f"countersign-{ROLE}",
            "connect_timeout": 5,
            # Statements are planned once per connection, not at every execution. A pooler between
            # that cannot keep them needs PG_PREPARE_AFTER=0.
            "server_side_binding": True,
            "prepare_threshold": env.integer("PG_PREPARE_AFTER", 1) or None,
            "options": (
                f"-c lock_timeout={env.integer('PG_LOCK_TIMEOUT_MS', 5_000)}"
                f" -c statement_timeout={env.integer('PG_STATEMENT_TIMEOUT_MS', 30_000)}"
                # An idle write transaction stalls the seals of the audit trail for everybody.
                f" -c idle_in_transaction_session_timeout={env.integer('PG_IDLE_MS', 30_000)}"
            ),
            "pool": {
                "min_size": env.integer("DATABASE_POOL_MIN", 2),
                "max_size": env.integer("DATABASE_POOL_MAX", 16),
                "timeout": env.seconds("DATABASE_POOL_TIMEOUT", 5),
                "reconnect_timeout": pool.RECONNECT_SECONDS,
                # A connection that died with its server is replaced before anybody notices.
                "check": pool.look,
            },
        },
        "TEST": {"NAME": env.optional("TEST_DATABASE_NAME")},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Rate limits of sign-in live here, not in Redis: Redis may vanish at any time.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "cache",
    }
}

# ── Secrets ──────────────────────────────────────────────────────────────────────────────────
DEBUG = env.boolean("DEBUG", False)
SECRET_KEY = env.text("SECRET_KEY", "")
ENCRYPTION_KEYS: list[str] = env.words("COUNTERSIGN_KEYS")
if not SECRET_KEY or not ENCRYPTION_KEYS:
    if "postgres" not in EMBEDDED and not (HOME / "secrets.json").exists():
        raise ImproperlyConfigured(
            "With DATABASE_URL set, SECRET_KEY and COUNTERSIGN_KEYS (comma-separated Fernet keys, "
            "the newest first) must be set too, or SECRET_KEY_FILE and COUNTERSIGN_KEYS_FILE."
        )
    SECRET_KEY = SECRET_KEY or CLUSTER.secrets()["secret_key"]
    ENCRYPTION_KEYS = ENCRYPTION_KEYS or list(CLUSTER.secrets()["encryption_keys"])
# The audit trail's seals: Ed25519 keys, the newest first; retired ones as `public:<base64>`.
AUDIT_SIGNING_KEYS: list[str] = env.words("AUDIT_SIGNING_KEYS")
HOME_IN_USE = "postgres" in EMBEDDED or (HOME / "secrets.json").exists()
if not AUDIT_SIGNING_KEYS and HOME_IN_USE:
    AUDIT_SIGNING_KEYS = list(CLUSTER.secrets()["audit_signing_keys"])
# Signed heads of the trail, one line each; they prove something where nobody can take them back.
AUDIT_CHECKPOINTS_FILE = env.optional("AUDIT_CHECKPOINTS_FILE") or (
    str(HOME / "checkpoints.jsonl") if HOME_IN_USE else None
)
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")

# ── Addresses ────────────────────────────────────────────────────────────────────────────────
BASE_URL = env.text("BASE_URL", f"http://127.0.0.1:{env.integer('PORT', 8000)}").rstrip("/")
HTTPS = env.boolean("COUNTERSIGN_HTTPS", BASE_URL.startswith("https://"))
ALLOWED_HOSTS = [
    urlsplit(BASE_URL).hostname or "",
    *env.words("ALLOWED_HOSTS", ["127.0.0.1", "localhost"]),
]
CSRF_TRUSTED_ORIGINS = [BASE_URL] if HTTPS else []
if env.boolean("TRUST_FORWARDED_PROTO", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
ALLAUTH_TRUSTED_PROXY_COUNT = env.integer("TRUSTED_PROXY_COUNT", 0)

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
WSGI_APPLICATION = "config.wsgi.application"

# ── Parts ────────────────────────────────────────────────────────────────────────────────────
INSTALLED_APPS = [
    "config",
    "audit",
    "plans",
    "approvals",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "django_htmx",
]

MIDDLEWARE = [
    "config.middleware.RequestContext",
    "config.middleware.Problems",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "config.middleware.PeopleOnly",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "approvals.context.navigation",
            ],
            # Every page has texts and times.
            "builtins": ["django.templatetags.i18n", "audit.templatetags.times"],
        },
    }
]

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"] if (BASE_DIR / "static").is_dir() else []
# The image collects and hashes the files at build time; elsewhere they are served where they lie.
STATIC_MANIFEST = env.boolean("STATIC_MANIFEST", False)
STATIC_ROOT = BASE_DIR / "staticfiles" if STATIC_MANIFEST else None
WHITENOISE_USE_FINDERS = not STATIC_MANIFEST
# Without collected files they are looked up as they are asked for, and not all at every start.
WHITENOISE_AUTOREFRESH = not STATIC_MANIFEST
WHITENOISE_MAX_AGE = 60 if STATIC_MANIFEST else 0
WHITENOISE_ALLOW_ALL_ORIGINS = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": (
            "whitenoise.storage.CompressedManifestStaticFilesStorage"
            if STATIC_MANIFEST
            else "django.contrib.staticfiles.storage.StaticFilesStorage"
        )
    },
}

# What people read; machines are answered in English. English stands in the source, so that no
# catalogue is loaded or asked for it: docs/translating.md.
LANGUAGE_CODE = env.text("COUNTERSIGN_LANGUAGE", "en")
USE_I18N = LANGUAGE_CODE != "en"
LOCALE_PATHS = [env.optional("COUNTERSIGN_LOCALE_DIR") or BASE_DIR / "locale"]
USE_TZ = True
TIME_ZONE = "UTC"
APPEND_SLASH = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
CSRF_FAILURE_VIEW = "config.refusals.csrf_failure"
# Requests of the REST interface that hold a thread and a connection at once; the others queue.
API_CONCURRENCY = env.integer("API_CONCURRENCY", 8)
# All requests of one web process, pages too: a connection each, and two are left for who looks
# whether those that wait must be woken.
REQUEST_THREADS = max(API_CONCURRENCY + 2, env.integer("DATABASE_POOL_MAX", 16) - 2)
# Without one, /metrics answers to this machine alone, and to nobody behind a proxy.
METRICS_TOKEN = env.optional("METRICS_TOKEN")

# ── People ───────────────────────────────────────────────────────────────────────────────────
AUTHENTICATION_BACKENDS = [
    "approvals.sessions.LocalAccounts",
    "allauth.account.auth_backends.AuthenticationBackend",
]
# As strong as the default for its kind of attacker, and a tenth of its time for the person.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/review/"
LOGOUT_REDIRECT_URL = LOGIN_URL
ACCOUNT_ADAPTER = "approvals.accounts.Accounts"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
# People are made by `apply_config`, the admin or an identity provider, never by themselves.
ACCOUNT_SIGNUP_ENABLED = False
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
# A team behind one address signs in together in the morning; guessing is limited per person.
ACCOUNT_RATE_LIMITS = {"login": "120/m/ip"}

SESSION_ENGINE = "approvals.sessions"
SESSION_COOKIE_AGE = env.integer("SESSION_SECONDS", 12 * 3600)
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# The prefix binds a cookie to this host and to https; browsers refuse it on plain http.
SESSION_COOKIE_NAME = "__Host-sessionid" if HTTPS else "sessionid"
CSRF_COOKIE_NAME = "__Host-csrftoken" if HTTPS else "csrftoken"

# ── Browser ──────────────────────────────────────────────────────────────────────────────────
SECURE_CSP = {
    "default-src": [CSP.SELF],
    "script-src": [CSP.NONCE],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
X_FRAME_OPTIONS = "DENY"

# ── Letters and logs ─────────────────────────────────────────────────────────────────────────
SMTP_HOST = env.optional("SMTP_HOST")
DEFAULT_FROM_EMAIL = env.text("MAIL_FROM", "countersign@localhost")
MAILERS = {
    "default": {
        "BACKEND": (
            "approvals.notices.smtp.EmailBackend"
            if SMTP_HOST
            else "django.core.mail.backends.dummy.EmailBackend"
        ),
        **({"OPTIONS": env.smtp(SMTP_HOST)} if SMTP_HOST else {}),
    }
}
LOGGING = logs.configuration(env.text("LOG_LEVEL", "INFO").upper())
