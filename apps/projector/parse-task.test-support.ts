import fc from 'fast-check'
import { makeSecretKey, openBody, packSource, sealMail } from '#libs/ports/key-vault/sealing.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import type { ParseTask } from './parse-task.js'
import type { ParserPoolOptions } from './parser-pool.js'

/** A parse task, and a function that unseals its body. */
export async function taskOf(
  raw: Buffer,
  { accountId = mintId('acc'), inboxId = mintId('inb'), receivedAt = new Date() }: Partial<ParseTask> = {},
  envelope = anyEnvelope,
): Promise<ParseTask & { open: (body: Uint8Array | undefined) => ParsedMail }> {
  const [messageId, key] = [mintId('msg'), makeSecretKey()]
  const sealed = sealMail(key, inboxId, messageId, envelope, await packSource(raw))
  const open = (body: Uint8Array | undefined) => {
    if (body === undefined) throw new Error('the mail has no result')
    return openBody(key, { id: messageId, inboxId, receivedAt }, { body, raw: sealed }).mail
  }
  return { accountId, inboxId, messageId, receivedAt, key, size: raw.length, sealed, open }
}

export function smallMail(subject: string): Buffer {
  return Buffer.from(`From: a@example.com\r\nSubject: ${subject}\r\n\r\nHello.\r\n`)
}

/** A small mail that parses into many objects. */
export function manyAttributes(): Buffer {
  const attributes = Array.from({ length: 300_000 }, (_, n) => `a${n}=1`).join(' ')
  return Buffer.from(`Subject: many\r\nContent-Type: text/html\r\n\r\n<a ${attributes}>`)
}

/** A mail that takes long to parse, but is parsed completely. */
export function slowMail(subject: string): Buffer {
  const head = `Subject: ${subject}\r\nContent-Type: text/html\r\n\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.alloc(3_000_000, '<')])
}

const MAILS = {
  small: smallMail,
  large: (subject: string) => Buffer.concat([smallMail(subject), Buffer.alloc(200_000, 'x\r\n')]),
  slow: slowMail,
  damaged: smallMail,
}

export interface ScenarioMail {
  kind: keyof typeof MAILS
  account: number
  inbox: number
}

/** Calls of a pool and their times. Some are aborted, or the pool is closed meanwhile. */
export interface PoolScenario {
  options: Omit<ParserPoolOptions, 'onThreadLost'>
  calls: { mails: ScenarioMail[]; afterMs: number; abortsAfterMs: number | null }[]
  closesAfterMs: number | null
}

const anyMail: fc.Arbitrary<ScenarioMail> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom('small', 'large', 'damaged') },
    { weight: 1, arbitrary: fc.constant('slow') },
  ),
  account: fc.nat({ max: 1 }),
  inbox: fc.nat({ max: 1 }),
})

function mostlyNot<Value>(some: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: some })
}

/** Limits of time, memory and budgets that the mails reach. */
export const anyPoolScenario: fc.Arbitrary<PoolScenario> = fc.record({
  options: fc.record({
    threads: fc.constantFrom(1, 2),
    timeoutMs: fc.constant(2_000),
    slowTimeoutMs: fc.constantFrom(200, 1_000),
    memoryMib: fc.constantFrom(64, 256),
    inboxBudgetMs: fc.constantFrom(1, 20),
    accountBudgetMs: fc.constantFrom(1, 40),
  }),
  calls: fc.array(
    fc.record({
      mails: fc.array(anyMail, { minLength: 1, maxLength: 20, size: 'max' }),
      afterMs: fc.nat({ max: 40 }),
      abortsAfterMs: mostlyNot(fc.nat({ max: 200 })),
    }),
    { minLength: 3, maxLength: 5, size: 'max' },
  ),
  closesAfterMs: mostlyNot(fc.nat({ max: 400 })),
})

/** Makes a mail of a scenario according to its kind. */
export async function scenarioTask(
  kind: ScenarioMail['kind'],
  subject: string,
  whose: Pick<ParseTask, 'accountId' | 'inboxId'>,
): ReturnType<typeof taskOf> {
  const task = await taskOf(MAILS[kind](subject), whose)
  if (kind === 'damaged') task.sealed[task.sealed.length - 1] = (task.sealed.at(-1) ?? 0) ^ 1
  return task
}
