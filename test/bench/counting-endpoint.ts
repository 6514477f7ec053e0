import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from '#test/harness/until.js'

/*
 * An endpoint for many webhook deliveries: a separate process that answers 200 at once and counts requests. This file
 * is also the forked process.
 */

export interface CountingEndpoint {
  url: string
  /** The number of requests that it has answered, and the body of the last one. */
  read(): Promise<Answered>
  /** Resolves once it has answered that many. */
  untilCount(count: number): Promise<void>
  close(): Promise<void>
}

export interface Answered {
  count: number
  body: string
}

const COUNTED_WITHIN_MS = 900_000
const FORKED = '--count'

/** Resolves once it listens. */
export async function startCountingEndpoint(): Promise<CountingEndpoint> {
  const child = fork(new URL(import.meta.url), [FORKED])
  const exited = once(child, 'exit')
  const nextMessage = async () => (await Promise.race([once(child, 'message'), exited])) as unknown[]
  const [url] = await nextMessage()
  if (typeof url !== 'string') throw new Error('the endpoint did not start')
  const read = async () => {
    const answer = nextMessage()
    child.send('read')
    const [answered] = await answer
    if (typeof answered !== 'object') throw new Error('the endpoint has ended')
    return answered as Answered
  }
  return {
    url,
    read,
    async untilCount(count) {
      await until(`${count} requests`, async () => (await read()).count >= count, COUNTED_WITHIN_MS)
    },
    async close() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

if (process.argv[2] === FORKED) {
  const answered: Answered = { count: 0, body: '' }
  let last: Buffer[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      answered.count += 1
      last = chunks
      response.end('ok')
    })
  })
  // Only the client closes connections.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.on('message', () => process.send?.({ ...answered, body: Buffer.concat(last).toString() }))
  process.on('disconnect', () => process.exit(0))
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`)
}
