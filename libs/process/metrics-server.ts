import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { listenError } from './listen-error.js'

export interface MetricsServerOptions {
  registry: Registry
  logger: Logger
  host: string
  port: number
}

/** Serves /metrics and /healthz on a port of its own. Resolves once it listens; rejects where the port is taken. */
export async function startMetricsServer(options: MetricsServerOptions): Promise<Server> {
  const { host, port } = options
  const server = createServer((request, response) => {
    if (request.url !== '/metrics' && request.url !== '/healthz') {
      response.writeHead(404).end()
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end()
    } else if (request.url === '/healthz') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}')
    } else {
      void answerMetrics(response, options)
    }
  })
  await new Promise<void>((resolve, reject) => {
    const settings = { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_METRICS_PORT' }
    server.once('error', (error) => reject(listenError(error, settings)))
    server.listen(port, host, resolve)
  })
  return server
}

async function answerMetrics(
  response: ServerResponse,
  { registry, logger }: MetricsServerOptions,
): Promise<void> {
  try {
    const text = await registry.metrics()
    response.writeHead(200, { 'content-type': registry.contentType }).end(text)
  } catch (error) {
    logger.error({ err: error }, 'the metrics could not be gathered')
    response.writeHead(500).end()
  }
}
