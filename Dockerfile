# The planner in a container: the model is mounted read-only, the cases are on a volume.
#
#   docker build -t nocta .
#   docker run --rm -v cases:/cases nocta nocta token /cases/cases.db --name ward-3
#   docker run -v "$PWD/model:/model:ro" -v cases:/cases -p 8321:8321 --read-only --tmpfs /tmp nocta
FROM python:3.12-slim-bookworm AS build

WORKDIR /build
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src ./src
# torch first, with an exact version: a range would install a build for graphics cards.
RUN python -m venv /opt/nocta \
 && /opt/nocta/bin/pip install --no-cache-dir "torch==$(sed -n 's/^torch==//p' constraints.txt)" \
 && /opt/nocta/bin/pip install --no-cache-dir -c constraints.txt '.[service]'

FROM python:3.12-slim-bookworm

RUN useradd --system --uid 10001 --create-home nocta \
 && install -d -o nocta -g nocta /cases
COPY --from=build /opt/nocta /opt/nocta
ENV PATH=/opt/nocta/bin:$PATH OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
USER nocta
WORKDIR /cases
VOLUME /cases
EXPOSE 8321
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8321/health')"]
CMD ["nocta", "serve", "/model", "--host", "0.0.0.0", "--store", "/cases/cases.db"]
