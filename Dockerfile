# The image of Muster: docker build -t muster . (docs/images.md). scripts/image makes the same without an engine.
FROM debian:12-slim AS build
WORKDIR /muster
COPY . .
# The time of all files in the packages.
ARG SOURCE_DATE_EPOCH
RUN scripts/install && scripts/package --output-dir /packages --no-install

FROM debian:12-slim
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    --mount=type=bind,source=packaging/image/finish,target=/finish \
    apt-get update && \
    apt-get install -y --no-install-recommends tini ca-certificates /packages/muster_*.deb /packages/libmuster[0-9]*.deb && \
    /finish
LABEL org.opencontainers.image.title="Muster" \
      org.opencontainers.image.description="elastic training with exactly-once data" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 10001:10001
WORKDIR /var/lib/muster
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "muster"]
