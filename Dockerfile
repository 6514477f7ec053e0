# One image for every role. The command `dist/apps/<role>/main.js` chooses one; without it, all run in one process.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /mayfly
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY .swcrc ./
COPY infra infra
COPY libs libs
COPY apps apps
COPY clients clients
COPY test test
# The commit in /version: docker build --build-arg MAYFLY_COMMIT="$(git rev-parse HEAD)" .
ARG MAYFLY_COMMIT=
# Keep only what is needed at run time. The image has its own Node, and compiles nothing.
RUN node_modules/.bin/node infra/build/build.mjs \
  && rm -rf dist/test dist/infra \
  && npm uninstall --no-save --omit=dev node esbuild @swc/cli @swc/core

FROM node:24.21.0-bookworm-slim
WORKDIR /mayfly
ENV NODE_ENV=production \
  NODE_OPTIONS="--enable-source-maps --max-semi-space-size=16 --disable-warning=ExperimentalWarning --disable-warning=TimeoutNegativeWarning" \
  MALLOC_ARENA_MAX=2 \
  MALLOC_TRIM_THRESHOLD_=131072 \
  MAYFLY_HTTP_HOST=0.0.0.0 \
  MAYFLY_SMTP_HOST=0.0.0.0 \
  MAYFLY_METRICS_PORT=9464 \
  MAYFLY_DATA_DIR=/data
RUN mkdir /data && chown node:node /data
COPY --from=build /mayfly/package.json ./
COPY --from=build /mayfly/node_modules node_modules
COPY --from=build /mayfly/dist dist
# The user node, as a number so that Kubernetes knows that it is not root.
USER 1000:1000
EXPOSE 3000 2525 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MAYFLY_METRICS_PORT || 3000}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Without a shell or npm, so that SIGTERM reaches Node, which handles it as process 1 too.
ENTRYPOINT ["node"]
CMD ["dist/apps/standalone/main.js"]
