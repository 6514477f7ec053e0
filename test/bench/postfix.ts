import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { promisify } from 'node:util'
import { freePort } from '#infra/servers/ports.js'
import { findProgram } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'

/** The load tools of postfix, smtp-source(1) and smtp-sink(1). */
export interface Postfix {
  source: string
  sink: string
}

const WITHIN_MS = 120_000
const BACKLOG = '1000'
const run = promisify(execFile)

/** Null if they are not installed. */
export function findPostfix(): Postfix | null {
  const [source, sink] = [findProgram('smtp-source'), findProgram('smtp-sink')]
  return source === null || sink === null ? null : { source, sink }
}

export interface SourceOptions {
  port: number
  to: string
  mails: number
  /** Whether a connection is reused for the next mail. */
  isKept: boolean
}

/** Mails of 5 KB per second over 20 connections; rejects if one is refused. */
export async function sourceRate(
  { source }: Postfix,
  { port, to, mails, isKept }: SourceOptions,
): Promise<number> {
  const load = ['-s', '20', '-l', '5120', '-m', String(mails), ...(isKept ? ['-d'] : [])]
  const names = ['-M', 'bench.example', '-f', 'sender@app.example', '-t', to]
  const started = performance.now()
  await run(source, [...load, ...names, `127.0.0.1:${port}`], { timeout: WITHIN_MS })
  return mails / ((performance.now() - started) / 1000)
}

/** Runs smtp-sink, which discards all mail, during `work`. */
export async function withSink<Result>(
  { sink }: Postfix,
  work: (port: number) => Promise<Result>,
): Promise<Result> {
  const port = await freePort()
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn(sink, [...user, `127.0.0.1:${port}`, BACKLOG], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  try {
    await until('smtp-sink to listen', () => isListening(port))
    return await work(port)
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

async function isListening(port: number): Promise<boolean> {
  const socket = createConnection({ host: '127.0.0.1', port })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  const answer = await promise
  socket.destroy()
  return answer
}
