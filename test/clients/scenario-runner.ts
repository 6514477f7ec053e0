import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { Mayfly } from '#clients/typescript/src/mayfly.js'

/** One step of `clients/scenarios.json`; clients/README.md describes it. */
export interface Step {
  do?: string
  args?: unknown[]
  with?: Record<string, unknown>
  as?: string
  expect?: unknown
  throws?: unknown
  take?: number
  eventually?: boolean
  abortAfterMs?: number
  afterMs?: number
  mail?: Mail
  fault?: object
  clearFaults?: true
  connect?: { apiKey: string }
  later?: Step
}

interface Mail {
  to: string
  subject: string
  text?: string
  html?: string
  from?: string
  attachments?: { filename: string; content: string }[]
  copies?: number
  afterMs?: number
}

type Values = Record<string, unknown>

/** Runs the steps of one scenario with the TypeScript client. Rejects if an expectation does not hold. */
export async function runScenario(
  steps: readonly Step[],
  { url, apiKey, smtp }: { url: string; apiKey: string; smtp: string },
): Promise<void> {
  const mayfly = new Mayfly({ url, apiKey })
  const values: Values = { mayfly, proxy: url, random: randomBytes(8).toString('hex') }
  const transport = createTransport(`smtp://${smtp}`)
  const background: Promise<unknown>[] = []

  async function runStep(step: Step): Promise<void> {
    const { mail, fault, clearFaults, connect, later } = step
    if (mail !== undefined) {
      const { copies = 1, afterMs, ...content } = resolve(mail, values) as Mail
      const send = async () => {
        await pause(afterMs)
        for (let copy = 0; copy < copies; copy += 1) {
          await transport.sendMail({ from: 'App <app@example.com>', text: '', ...content })
        }
      }
      if (afterMs === undefined) await send()
      else background.push(send())
    } else if (fault !== undefined) {
      await fetch(`${url}/__faults`, { method: 'POST', body: JSON.stringify(fault) })
    } else if (clearFaults !== undefined) {
      await fetch(`${url}/__faults`, { method: 'DELETE' })
    } else if (connect !== undefined) {
      values[step.as ?? ''] = new Mayfly({ url, ...(resolve(connect, values) as { apiKey: string }) })
    } else if (later !== undefined) {
      background.push(pause(later.afterMs).then(() => call(later, values)))
    } else if (step.eventually === true) {
      await repeat(() => check(step, values))
    } else await check(step, values)
  }

  try {
    for (const step of steps) await runStep(step)
    await Promise.all(background)
  } finally {
    transport.close()
    await fetch(`${url}/__faults`, { method: 'DELETE' })
  }
}

/** Repeats a step until its expectations hold. Rejects with the last error after 15 seconds. */
async function repeat(run: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + 15_000
  for (;;) {
    try {
      await run()
      return
    } catch (error) {
      if (performance.now() > deadline) throw error
      await pause(100)
    }
  }
}

/** Calls the method of a step, compares the result, and stores it. */
async function check(step: Step, values: Values): Promise<void> {
  if (step.throws !== undefined) {
    const error = await call(step, values).then(
      (result) => new Error(`no error, but ${JSON.stringify(result)}`),
      (reason: unknown) => reason as Error,
    )
    const { type, ...properties } = resolve(step.throws, values) as { type: string }
    expect(`${error.name}: ${error.message}`).toMatch(new RegExp(`^${type}: `))
    expect(error).toEqual(matcher(properties))
    return
  }
  const result = await call(step, values)
  if (step.as !== undefined) values[step.as] = result
  if (step.expect === undefined) return
  await compare(result, resolve(step.expect, values))
}

async function compare(result: unknown, expected: unknown): Promise<void> {
  const { length, bytes } = Object(Array.isArray(expected) ? {} : expected) as {
    length?: number
    bytes?: unknown
  }
  if (typeof expected === 'object' && length !== undefined) expect(result).toHaveLength(length)
  else if (bytes === undefined) expect(result).toEqual(matcher(expected))
  else expect(await textOf(result as Uint8Array | ReadableStream)).toEqual(matcher(bytes))
}

async function call(step: Step, values: Values): Promise<unknown> {
  const path = (step.do ?? '').split('.')
  const method = path.pop() ?? ''
  const [first = '', ...rest] = path
  const start = first in values ? values[first] : property(values.mayfly, first)
  const object = rest.reduce(property, start) as Record<string, (...args: unknown[]) => unknown>
  const args = (resolve(step.args ?? [], values) as unknown[]).map((each) =>
    isPattern(each) ? new RegExp(each.regex, each.flags) : each,
  )
  const options = resolve(step.with ?? {}, values) as Values
  const { match } = options
  if (match !== undefined) {
    options.match = (message: Values) =>
      Object.entries(match as Values).every(([name, wanted]) => matches(message[name], wanted))
  }
  if (step.abortAfterMs !== undefined) {
    const aborter = new AbortController()
    setTimeout(() => aborter.abort(), step.abortAfterMs)
    options.signal = aborter.signal
  }
  const result = object[method]?.(...args, options)
  if (step.take === undefined) return result
  const items: unknown[] = []
  for await (const item of result as AsyncIterable<unknown>) {
    if (items.push(item) === step.take) break
  }
  return items
}

/** `mayfly` in a path is the client itself. */
function property(object: unknown, name: string): unknown {
  return object instanceof Mayfly && name === 'mayfly' ? object : (object as Values)[name]
}

/** Replaces `$name.property` in texts by the values of variables. */
function resolve(value: unknown, values: Values): unknown {
  if (typeof value === 'string') {
    const [whole = '', path = '', rest = ''] = /^\$(\w+(?:\.\w+)*)(.*)$/.exec(value) ?? []
    if (whole === '') return value
    const found = path.split('.').reduce<unknown>((object, name) => (object as Values)[name], values)
    return rest === '' ? found : `${found as string}${rest}`
  }
  if (Array.isArray(value)) return value.map((each) => resolve(each, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, resolve(each, values)]))
}

interface Pattern {
  regex: string
  flags?: string
}

function isPattern(value: unknown): value is Pattern {
  return typeof value === 'object' && value !== null && 'regex' in value
}

function matches(value: unknown, wanted: unknown): boolean {
  return isPattern(wanted) ? new RegExp(wanted.regex, wanted.flags).test(String(value)) : value === wanted
}

/** Objects match by the given properties, lists by their length and each item. */
function matcher(expected: unknown): unknown {
  if (isPattern(expected)) return expect.stringMatching(new RegExp(expected.regex, expected.flags))
  if (Array.isArray(expected)) return expected.map(matcher)
  if (typeof expected !== 'object' || expected === null) return expected
  const properties = Object.entries(expected).map(([name, each]) => [name, matcher(each)])
  return expect.objectContaining(Object.fromEntries(properties) as object)
}

async function textOf(content: Uint8Array | ReadableStream): Promise<string> {
  return content instanceof Uint8Array ? Buffer.from(content).toString() : text(content)
}
