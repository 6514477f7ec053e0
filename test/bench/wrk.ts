import { execFile } from 'node:child_process'

import { promisify } from 'node:util'
import { findProgram } from '#test/harness/tools.js'

/** wrk(1), which repeats one request. */
export interface Wrk {
  path: string
}

export interface Reading {
  url: string
  /** Null if the server needs none. */
  apiKey: string | null
  connections: number
  seconds: number
}

const run = promisify(execFile)
const UNITS_IN_MS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1_000 }

/** Null if it is not installed. */
export function findWrk(): Wrk | null {
  const path = findProgram('wrk')
  return path === null ? null : { path }
}

/** Answers per second and the median latency, on kept connections; rejects if an answer is not a 2xx. */
export async function measureReads(
  { path }: Wrk,
  { url, apiKey, connections, seconds }: Reading,
): Promise<{ perSecond: number; medianMs: number }> {
  const load = [
    '--threads',
    '1',
    '--connections',
    String(connections),
    '--duration',
    `${seconds}s`,
    '--latency',
  ]
  const headers = apiKey === null ? [] : ['--header', `Authorization: Bearer ${apiKey}`]
  const { stdout } = await run(path, [...load, ...headers, url])
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`not every answer was a 2xx: ${stdout}`)
  const [, perSecond] = /^Requests\/sec:\s+([\d.]+)$/m.exec(stdout) ?? []
  const [, median, unit = ''] = /^\s+50%\s+([\d.]+)(us|ms|s)$/m.exec(stdout) ?? []
  if (perSecond === undefined || median === undefined) throw new Error(`unexpected output of wrk: ${stdout}`)
  return { perSecond: Number(perSecond), medianMs: Number(median) * (UNITS_IN_MS[unit] ?? NaN) }
}
