import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { UsageEvent } from '#libs/domain/usage/usage-events.js'
import { MailRoom } from '#test/smtp/mail-room.js'
import { Acceptance, type AcceptanceOptions } from './acceptance.js'
import type { Recipient } from './mail-data.js'
import { MailUsage } from './journal.js'
import { REFUSALS } from './replies.js'
import { UnshownMail } from './unshown-mail.js'

const TRACE = { mailFrom: 'a@x.test', helo: 'client.test', remoteAddress: '127.0.0.1', tls: null }

let room: MailRoom

beforeEach(async () => {
  room = await MailRoom.open()
})

afterEach(() => room.close())

/** Accepts a mail for three inboxes on a log that is out of reach for the appends named, counted from 1. */
async function accept(
  isAway: (append: number) => boolean,
  withinMs: number,
  meanwhile: (recipients: readonly Recipient[]) => Promise<void> = () => Promise.resolve(),
) {
  const recorder = new Recorder(room.log, '/mayfly/smtp', room.now)
  let appends = 0
  const usage: UsageEvent[] = []
  const record: AcceptanceOptions['recorder']['record'] = (event, attribution) => {
    appends += 1
    return isAway(appends)
      ? Promise.reject(new LogUnavailableError('away'))
      : recorder.record(event, attribution)
  }
  // Room for one copy at a time.
  const unshown = new UnshownMail({
    inboxes: room.views.queries,
    maxBytes: 1,
    onExhausted: () => undefined,
  })
  const acceptance = new Acceptance({
    vault: room.vault,
    inboxes: room.views.queries,
    recorder: { record },
    usage: new MailUsage({ record: (event) => usage.push(event) }, room.now),
    authenticator: null,
    unshown,
    now: room.now,
    onError: () => undefined,
  })
  const recipients: Recipient[] = []
  for (let i = 0; i < 3; i += 1) {
    const { id, address } = await room.createInbox()
    const row = await room.views.queries.inbox(id)
    if (row !== null) recipients.push({ inbox: row.inbox, rcptTo: address })
  }
  await meanwhile(recipients)
  const deadlineMs = performance.now() + withinMs
  const departure = new AbortController().signal
  const raw = Buffer.from('Subject: x\r\nMessage-ID:\r\n <one@test>\r\n\r\nMessage-ID: <two@test>')
  const outcome = await acceptance.accept({
    raw,
    trace: TRACE,
    recipients,
    senderKey: null,
    deadlineMs,
    departure,
  })
  unshown.close()
  return { outcome, appends, recipients, usage }
}

describe('acceptance', () => {
  it('tries what is missing again once one record is durable, until all are', async () => {
    const { outcome, recipients, usage } = await accept((append) => append === 2 || append === 4, 10_000)
    const mails = await room.received()
    const idOf = (inboxId: string) => mails.find(({ event }) => event.inboxId === inboxId)?.event.messageId
    expect(outcome).toEqual(recipients.map(({ inbox }) => idOf(inbox.id)))
    expect(mails).toHaveLength(3)
    // One of each that is durable, however often it was tried; of another inbox the same mail looks another.
    expect(usage.map(({ type }) => type)).toEqual(Array(3).fill('MailAccepted'))
    const fingerprints = usage.map((event) => (event.type === 'MailAccepted' ? event.fingerprint : null))
    expect(new Set(fingerprints).size).toBe(3)
    for (const each of fingerprints) expect(each).toMatch(/^[0-9a-f]{16}$/)
  })

  it('gives up at the deadline, and says that some records stand', async () => {
    const { outcome, usage } = await accept((append) => append > 1, 300)
    expect(outcome).toBe(REFUSALS.partialAppend)
    expect(await room.received()).toHaveLength(1)
    const refused = { type: 'MailRefused', reason: 'partial-append', code: 451 }
    expect(usage).toMatchObject([{ type: 'MailAccepted' }, refused, refused])
  })

  it('gives up at once where no record is durable, without trying them all', async () => {
    const { outcome, appends, usage } = await accept(() => true, 60_000)
    expect(outcome).toBe(REFUSALS.logUnavailable)
    expect(appends).toBe(1)
    expect(usage).toHaveLength(3)
    for (const each of usage) expect(each).toMatchObject({ type: 'MailRefused', reason: 'log-unavailable' })
  })

  it('takes a mail for none where one inbox has ended since its recipient was, and tells of each why', async () => {
    const { outcome, appends, usage } = await accept(
      () => false,
      10_000,
      async ([first]) => {
        if (first !== undefined) await room.vault.forget([first.inbox.id])
      },
    )
    expect(outcome).toBe(REFUSALS.recipientsChanged)
    expect(appends).toBe(0)
    const changed = { type: 'MailRefused', reason: 'recipients-changed', code: 451 }
    const { reason, code } = REFUSALS.inboxEnded
    expect(usage).toMatchObject([{ type: 'MailRefused', reason, code }, changed, changed])
  })
})
