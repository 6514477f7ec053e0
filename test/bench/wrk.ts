import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

/** wrk(1), which asks for the same thing again and again. */
export interface Wrk {
  path: string
}

export interface Reading {
  url: string
  apiKey: string
  connections: number
  seconds: number
}

const run = promisify(execFile)
const UNITS_IN_MS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1_000 }

/** Null if it is not installed. */
export function findWrk(): Wrk | null {
  const paths = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'wrk'))
  const path = paths.find(isExecutable)
  return path === undefined ? null : { path }
}

/** Answers a second, and the median latency, on connections kept open; rejects if one is not a 2xx. */
export async function readAgainAndAgain(
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
  const { stdout } = await run(path, [...load, '--header', `Authorization: Bearer ${apiKey}`, url])
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`not every answer was right: ${stdout}`)
  const [, perSecond] = /^Requests\/sec:\s+([\d.]+)$/m.exec(stdout) ?? []
  const [, median, unit = ''] = /^\s+50%\s+([\d.]+)(us|ms|s)$/m.exec(stdout) ?? []
  if (perSecond === undefined || median === undefined) throw new Error(`wrk said: ${stdout}`)
  return { perSecond: Number(perSecond), medianMs: Number(median) * (UNITS_IN_MS[unit] ?? NaN) }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
