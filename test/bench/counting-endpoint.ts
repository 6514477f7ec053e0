import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from '#test/harness/until.js'

/*
 * Where webhooks are sent to in numbers: a process of its own that says 200 at once and counts. Forked, this file is
 * that process.
 */

export interface CountingEndpoint {
  url: string
  /** Requests that it has answered, and the content of the last one. */
  look(): Promise<Answered>
  /** Resolves once it has answered so many. */
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
  const said = async () => (await Promise.race([once(child, 'message'), exited])) as unknown[]
  const [url] = await said()
  if (typeof url !== 'string') throw new Error('the endpoint did not start')
  const look = async () => {
    const answer = said()
    child.send('look')
    const [answered] = await answer
    if (typeof answered !== 'object') throw new Error('the endpoint has ended')
    return answered as Answered
  }
  return {
    url,
    look,
    async untilCount(count) {
      await until(`${count} requests`, async () => (await look()).count >= count, COUNTED_WITHIN_MS)
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
  // Only the client ends connections.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.on('message', () => process.send?.({ ...answered, body: Buffer.concat(last).toString() }))
  process.on('disconnect', () => process.exit(0))
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`)
}
