import type { UsageEvent } from '#libs/domain/usage/usage-events.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'
import { Acceptance, type AcceptanceOptions } from './acceptance.js'
import { MailUsage } from './journal.js'
import type { Recipient } from './mail-data.js'
import { REFUSALS } from './replies.js'
import { InFlightMail } from './in-flight-mail.js'

const TRACE = { mailFrom: 'a@x.test', helo: 'client.test', remoteAddress: '127.0.0.1', tls: null }

let fixture: SmtpFixture

beforeEach(async () => {
  fixture = await SmtpFixture.open()
})

afterEach(() => fixture.close())

/** Accepts a mail for three inboxes. The log is unavailable for some appends, counted from 1. */
async function accept(
  isUnavailable: (append: number) => boolean,
  withinMs: number,
  meanwhile: (recipients: readonly Recipient[]) => Promise<void> = () => Promise.resolve(),
  fault: 'deliver' | 'duplicate' = 'deliver',
) {
  const recorder = new Recorder(fixture.log, '/mayfly/smtp', fixture.now)
  let appends = 0
  const usage: UsageEvent[] = []
  const record: AcceptanceOptions['recorder']['record'] = (event, attribution) => {
    appends += 1
    return isUnavailable(appends)
      ? Promise.reject(new LogUnavailableError('unavailable'))
      : recorder.record(event, attribution)
  }
  // The budget fits one copy at a time.
  const inFlight = new InFlightMail({
    inboxes: fixture.views.queries,
    signals: fixture.signals,
    maxBytes: 1,
    onExhausted: () => undefined,
  })
  const acceptance = new Acceptance({
    vault: fixture.vault,
    inboxes: fixture.views.queries,
    recorder: { record },
    usage: new MailUsage({ record: (event) => usage.push(event) }, fixture.now),
    verifier: null,
    inFlight: inFlight,
    quotas: { reserve: () => Promise.resolve({ fill: () => undefined, release: () => undefined }) },
    faults: { afterAccept: () => Promise.resolve(fault) },
    now: fixture.now,
    onError: () => undefined,
  })
  const recipients: Recipient[] = []
  for (let i = 0; i < 3; i += 1) {
    const { id, address } = await fixture.createInbox()
    const row = await fixture.views.queries.inbox(id)
    if (row !== null) recipients.push({ inbox: row.inbox, rcptTo: address })
  }
  await meanwhile(recipients)
  const deadlineMs = performance.now() + withinMs
  const disconnected = new AbortController().signal
  const raw = Buffer.from('Subject: x\r\nMessage-ID:\r\n <one@test>\r\n\r\nMessage-ID: <two@test>')
  const outcome = await acceptance.accept({
    raw,
    trace: TRACE,
    recipients,
    senderKey: null,
    deadlineMs,
    disconnected,
  })
  inFlight.close()
  return { outcome, appends, recipients, usage }
}

describe('acceptance', () => {
  it('retries missing records once one record is durable, until all are', async () => {
    const { outcome, recipients, usage } = await accept((append) => append === 2 || append === 4, 10_000)
    const mails = await fixture.received()
    const idOf = (inboxId: string) => mails.find(({ event }) => event.inboxId === inboxId)?.event.messageId
    expect(outcome).toEqual(recipients.map(({ inbox }) => idOf(inbox.id)))
    expect(mails).toHaveLength(3)
    // One event for each durable record, despite the retries. The fingerprint of a mail differs between inboxes.
    expect(usage.map(({ type }) => type)).toEqual(Array(3).fill('MailAccepted'))
    const fingerprints = mails.map(({ event }) => event.fingerprint)
    expect(new Set(fingerprints).size).toBe(3)
    for (const each of fingerprints) expect(each).toMatch(/^[0-9a-f]{16}$/)
  })

  it('gives up at the deadline, with another refusal if some records are durable', async () => {
    const { outcome, usage } = await accept((append) => append > 1, 2_000)
    expect(outcome).toBe(REFUSALS.partialAppend)
    expect(await fixture.received()).toHaveLength(1)
    const refused = { type: 'MailRefused', reason: 'partial-append', code: 451 }
    expect(usage).toMatchObject([{ type: 'MailAccepted' }, refused, refused])
  })

  it('accepts a mail of which only the duplicates on purpose are missing at the deadline', async () => {
    const isDuplicate = (append: number) => append % 2 === 0 || append > 6
    const { outcome, usage } = await accept(isDuplicate, 2_000, undefined, 'duplicate')
    const mails = await fixture.received()
    expect((outcome as string[]).toSorted()).toEqual(mails.map(({ event }) => event.messageId).toSorted())
    expect(mails.map(({ event }) => event.duplicateOf)).toEqual([null, null, null])
    expect(usage.map(({ type }) => type)).toEqual(Array(3).fill('MailAccepted'))
  })

  it('records a duplicate on purpose as one, and counts no accepted mail for it', async () => {
    const { outcome, usage } = await accept(() => false, 10_000, undefined, 'duplicate')
    expect(outcome).toHaveLength(3)
    expect(usage.map(({ type }) => type)).toEqual(Array(3).fill('MailAccepted'))
    const mails = (await fixture.received()).map(({ event }) => event)
    const repeated = mails.flatMap(({ duplicateOf }) => duplicateOf ?? [])
    expect(repeated.toSorted()).toEqual((outcome as string[]).toSorted())
    // Both are mails with the same Message-ID in the same inbox.
    expect(new Set(mails.map(({ fingerprint }) => fingerprint)).size).toBe(3)
  })

  it('gives up at once if the first append fails', async () => {
    const { outcome, appends, usage } = await accept(() => true, 60_000)
    expect(outcome).toBe(REFUSALS.logUnavailable)
    expect(appends).toBe(1)
    expect(usage).toHaveLength(3)
    for (const each of usage) expect(each).toMatchObject({ type: 'MailRefused', reason: 'log-unavailable' })
  })

  it('refuses a mail for all recipients if an inbox has ended since RCPT TO, and records each reason', async () => {
    const { outcome, appends, usage } = await accept(
      () => false,
      10_000,
      async ([first]) => {
        if (first !== undefined) await fixture.vault.forget([first.inbox.id])
      },
    )
    expect(outcome).toBe(REFUSALS.recipientsChanged)
    expect(appends).toBe(0)
    const changed = { type: 'MailRefused', reason: 'recipients-changed', code: 451 }
    const { reason, code } = REFUSALS.inboxEnded
    expect(usage).toMatchObject([{ type: 'MailRefused', reason, code }, changed, changed])
  })
})
