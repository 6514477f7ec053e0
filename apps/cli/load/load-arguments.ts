import { InvalidArgumentError } from 'commander'
import { EXIT, Failure } from '../failure.js'

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
/** More than the error of a few operations on numbers. */
const ROUNDING = 1e-12
const UNIT_BYTES: Readonly<Record<string, number>> = { '': 1, k: 1_024, m: 1_048_576 }

/** Arrivals per second. */
export function rate(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,7}(?:\.\d{1,3})?)\/(s|m|h)$/.exec(text) ?? []
  const perSecond = (Number(count) * 1_000) / (UNIT_MS[unit] ?? NaN)
  if (!(perSecond > 0 && perSecond <= 1_000_000)) {
    throw new InvalidArgumentError('It must be a number per s, m or h, such as 500/s, at most 1000000/s.')
  }
  return perSecond
}

/** Milliseconds, at most a day. */
export function timeSpan(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,8})(ms|s|m|h)$/.exec(text) ?? []
  const ms = Number(count) * (UNIT_MS[unit] ?? NaN)
  if (!(ms > 0 && ms <= 86_400_000)) {
    throw new InvalidArgumentError('It must be a whole number of ms, s, m or h, such as 5m, at most 24h.')
  }
  return ms
}

/** Bytes, from 1 KiB to 64 MiB. */
export function mailSize(text: string): number {
  const [, count = '', unit = 'none'] = /^(\d{1,9})([km]?)$/.exec(text) ?? []
  const bytes = Number(count) * (UNIT_BYTES[unit] ?? NaN)
  if (!(bytes >= 1_024 && bytes <= 67_108_864)) {
    throw new InvalidArgumentError('It must be a number of bytes, k or m, from 1k to 64m.')
  }
  return bytes
}

/** The host and port of a server: `mail.example:25` or `[::1]:25`. */
export function hostAndPort(text: string): { host: string; port: number } {
  const [, inBrackets, plain, digits] = /^(?:\[([\da-fA-F:.]+)\]|([^\s:/@[\]]+)):(\d{1,5})$/.exec(text) ?? []
  const [host, port] = [inBrackets ?? plain, Number(digits)]
  if (host === undefined || !(port >= 1 && port <= 65_535)) {
    throw new InvalidArgumentError('It must be host:port, such as 127.0.0.1:2525 or [::1]:2525.')
  }
  return { host, port }
}

/** An address without characters that would end it in an SMTP command. */
export function senderAddress(text: string): string {
  if (!/^[!-;=?-~]+@[!-;=?-~]+$/.test(text) || text.length > 254) {
    throw new InvalidArgumentError('It must be an address, such as app@example.com.')
  }
  return text
}

export const OPERATIONS = ['create', 'list', 'wait'] as const

export type Operation = (typeof OPERATIONS)[number]

/** The share of each operation: `create=10,list=60,wait=30`. One that is left out has none. */
export function operationMix(text: string): ReadonlyMap<Operation, number> {
  const shares = new Map<Operation, number>()
  for (const pair of text.split(',')) {
    const [, name = '', share = ''] = /^(\w+)=(\d{1,6})$/.exec(pair) ?? []
    const operation = OPERATIONS.find((each) => each === name)
    if (operation === undefined || shares.has(operation)) {
      throw new InvalidArgumentError('It must be shares of create, list and wait: create=10,list=60,wait=30.')
    }
    shares.set(operation, Number(share))
  }
  if (![...shares.values()].some((share) => share > 0)) {
    throw new InvalidArgumentError('At least one share must be over 0.')
  }
  return shares
}

/** The number of arrivals: those of the duration, at most `max`. Throws Failure if neither is given. */
export function arrivalCount(perSecond: number, durationMs = Infinity, max = Infinity): number {
  const arrivals = (perSecond * durationMs) / 1_000
  // 31 a minute are 31.000000000000004 in one minute.
  const total = Math.min(Math.ceil(arrivals * (1 - ROUNDING)), max)
  if (total === Infinity) throw new Failure(EXIT.usage, 'give --duration, --mails or both')
  return total
}
