import fc from 'fast-check'
import {
  bodyContext,
  packSource,
  sealMail,
  unsealJson,
  makeSecretKey,
} from '#libs/ports/key-vault/content.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import type { ParseTask } from './parse-task.js'
import type { ParserPoolOptions } from './parser-pool.js'

/** A mail to be read, with what opens its body. */
export async function taskOf(
  raw: Buffer,
  { accountId = mintId('acc'), inboxId = mintId('inb'), receivedAt = new Date() }: Partial<ParseTask> = {},
): Promise<ParseTask & { open: (body: Uint8Array | undefined) => ParsedMail }> {
  const [messageId, key] = [mintId('msg'), makeSecretKey()]
  const sealed = sealMail(key, inboxId, messageId, anyEnvelope, await packSource(raw))
  const open = (body: Uint8Array | undefined) => {
    if (body === undefined) throw new Error('the mail got no answer')
    return unsealJson(key, bodyContext(inboxId, messageId), body) as ParsedMail
  }
  return { accountId, inboxId, messageId, receivedAt, key, size: raw.length, sealed, open }
}

export function smallMail(subject: string): Buffer {
  return Buffer.from(`From: a@example.com\r\nSubject: ${subject}\r\n\r\nHello.\r\n`)
}

/** Few bytes that become many objects. */
export function manyAttributes(): Buffer {
  const attributes = Array.from({ length: 300_000 }, (_, n) => `a${n}=1`).join(' ')
  return Buffer.from(`Subject: many\r\nContent-Type: text/html\r\n\r\n<a ${attributes}>`)
}

/** Takes more time than most, and nothing of it is left out. */
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

export interface ToldMail {
  kind: keyof typeof MAILS
  account: number
  inbox: number
}

/** What partitions ask of a pool, and when: some of them leave, or the pool is closed meanwhile. */
export interface PoolStory {
  options: Omit<ParserPoolOptions, 'onThreadLost'>
  calls: { mails: ToldMail[]; afterMs: number; leavesAfterMs: number | null }[]
  closesAfterMs: number | null
}

const anyMail: fc.Arbitrary<ToldMail> = fc.record({
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

/** Limits that mails come to: in time, in memory, in the budgets of their inbox and account. */
export const anyPoolStory: fc.Arbitrary<PoolStory> = fc.record({
  options: fc.record({
    threads: fc.constantFrom(1, 2),
    timeoutMs: fc.constant(2_000),
    patienceMs: fc.constantFrom(200, 1_000),
    memoryMib: fc.constantFrom(64, 256),
    inboxBudgetMs: fc.constantFrom(1, 20),
    accountBudgetMs: fc.constantFrom(1, 40),
  }),
  calls: fc.array(
    fc.record({
      mails: fc.array(anyMail, { minLength: 1, maxLength: 20, size: 'max' }),
      afterMs: fc.nat({ max: 40 }),
      leavesAfterMs: mostlyNot(fc.nat({ max: 200 })),
    }),
    { minLength: 3, maxLength: 5, size: 'max' },
  ),
  closesAfterMs: mostlyNot(fc.nat({ max: 400 })),
})

/** A mail of a story; its bytes are what its kind says. */
export async function toldTask(
  kind: ToldMail['kind'],
  subject: string,
  whose: Pick<ParseTask, 'accountId' | 'inboxId'>,
): ReturnType<typeof taskOf> {
  const told = await taskOf(MAILS[kind](subject), whose)
  if (kind === 'damaged') told.sealed[told.sealed.length - 1] = (told.sealed.at(-1) ?? 0) ^ 1
  return told
}
