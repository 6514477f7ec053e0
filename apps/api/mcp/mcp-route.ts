import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { makeMcpServer } from '#clients/mcp/src/server.js'
import { BUILD_INFO } from '#libs/runtime/process/build-info.js'
import { unlessAborted } from '#libs/runtime/timing.js'
import { bearerSecretOf, MCP_PATH } from '../access/authenticator.js'
import { callerOf, requireApiAccess, requireKey } from '../access/principal.js'
import { untilClientLeaves } from '../http/budgets.js'
import type { ProblemFilter } from '../http/problem-filter.js'
import { outsideTurn } from '../http/request-turns.js'

/*
 * The Model Context Protocol over HTTP (https://modelcontextprotocol.io/specification/2025-11-25/basic/transports), with
 * MAYFLY_MCP=true. A request is authenticated and counted like every other request with a key. Its tools send requests
 * with the same key to the API of this process, so everything that holds for the API holds for them.
 *
 * It has no sessions: each request is complete, and any instance answers it. So there is nothing to GET or DELETE.
 */

interface McpOptions {
  problems: ProblemFilter
  /** Where this process listens, for its own requests. */
  localUrl: () => string
  /** Its reason is the problem to answer. */
  shutdown: AbortSignal
}

export function serveMcp(server: FastifyInstance, options: McpOptions): void {
  server.post(
    MCP_PATH,
    {
      onRequest: ({ headers }, _, done) => {
        // Answers are not stored for repeated requests: they have mail, which must not outlive its inbox.
        delete headers['idempotency-key']
        done()
      },
      errorHandler: (error, request, reply) => void options.problems.answer(error, request, reply),
    },
    async (request, reply) => {
      requireApiAccess(callerOf(request).plan)
      requireKey(request, ['inboxes'])
      // The protocol demands this against DNS rebinding.
      const isForeign =
        request.headers.origin !== undefined && !reply.hasHeader('access-control-allow-origin')
      if (isForeign) return refuse(reply, 403, 'The Origin is not one of MAYFLY_CORS_ORIGINS.')
      if (Array.isArray(request.body)) return refuse(reply, 400, 'Send one message per request.')
      const { status, headers, body } = await answer(request, options)
      return reply.code(status).headers(headers).send(body)
    },
  )
}

const INVALID_REQUEST = -32_600

function refuse(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).send({ jsonrpc: '2.0', error: { code: INVALID_REQUEST, message }, id: null })
}

/** Ends the tool that runs if the client leaves or the process stops. Then throws the reason. */
async function answer(request: FastifyRequest, { localUrl, shutdown }: McpOptions) {
  const connection = {
    url: localUrl(),
    apiKey: bearerSecretOf(request) ?? '',
    fetch: fetchFor(request),
    onError: (error: unknown) => request.log.error({ err: error }, 'a tool failed'),
  }
  const mcp = makeMcpServer(connection, BUILD_INFO.version)
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await mcp.connect(transport)
  try {
    return await untilClientLeaves(request, async (clientGone) => {
      const handled = transport.handleRequest(messageOf(request), { parsedBody: request.body })
      const response = await unlessAborted(handled, AbortSignal.any([clientGone, shutdown]))
      const { status, headers } = response
      // There is no body after a notification.
      return { status, headers: Object.fromEntries(headers), body: (await response.text()) || undefined }
    })
  } finally {
    // Aborts a tool that still runs.
    await mcp.close()
  }
}

/** The headers that the transport reads. The body is already parsed. */
function messageOf({ headers }: FastifyRequest): Request {
  const names = ['accept', 'content-type', 'mcp-protocol-version']
  const given = names.flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value] as [string, string]] : []
  })
  return new Request(`http://localhost${MCP_PATH}`, { method: 'POST', headers: given })
}

/** The tool's requests have turns of their own. Their log lines have the id of this request. */
function fetchFor(request: FastifyRequest): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('x-request-id', request.id)
    return outsideTurn(request, () => fetch(input, { ...init, headers }))
  }
}
