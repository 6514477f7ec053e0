import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { createConnection } from 'node:net'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '#infra/servers/ports.js'
import { until } from '#test/harness/until.js'

/** postfix's own load tools, smtp-source(1) and smtp-sink(1). */
export interface Postfix {
  source: string
  sink: string
}

const WITHIN_MS = 120_000
const BACKLOG = '1000'
const run = promisify(execFile)

/** Null if they are not installed. */
export function findPostfix(): Postfix | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  const find = (name: string) => folders.map((folder) => join(folder, name)).find(isExecutable)
  const [source, sink] = [find('smtp-source'), find('smtp-sink')]
  return source === undefined || sink === undefined ? null : { source, sink }
}

export interface SourceOptions {
  port: number
  to: string
  mails: number
  /** Whether each connection serves mail after mail. */
  isKept: boolean
}

/** Mails per second of 20 connections with 5 KB each; rejects if one is refused. */
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

/** Runs smtp-sink, which discards what it is sent, while `work` goes on. */
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

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
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
