import { fork } from 'node:child_process'
import { once } from 'node:events'
import fastify from 'fastify'

/*
 * The baseline of reads: one route of a bare Fastify in a separate process, which always answers with the same bytes.
 * This file is also the forked process.
 */

export interface BareRoute {
  url: string
  close(): Promise<void>
}

/** Resolves once it listens. */
export async function startBareRoute(body: string): Promise<BareRoute> {
  const child = fork(new URL(import.meta.url), [FORKED])
  const exited = once(child, 'exit')
  child.send(body)
  const [url] = (await Promise.race([once(child, 'message'), exited])) as unknown[]
  if (typeof url !== 'string') throw new Error('the bare route did not start')
  return {
    url,
    async close() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

const FORKED = '--answer'

if (process.argv[2] === FORKED) {
  const [body] = (await once(process, 'message')) as [string]
  const bytes = Buffer.from(body)
  const server = fastify()
  server.get('/', (_, reply) => reply.type('application/json; charset=utf-8').send(bytes))
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  process.on('disconnect', () => process.exit(0))
  process.send?.(`${url}/`)
}
