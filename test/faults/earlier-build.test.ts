import { call, messagesOf, type InboxJson, type MessageJson } from '#test/harness/client.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { runProgram } from '#test/harness/run-program.js'
import { untilReady } from './api-snapshot.js'

/**
 * A data folder as the build of 27 November 2026 (770b326b) wrote it, without usage: an inbox with three mails and a
 * deleted one, an inbox that has ended, a webhook with a delivery, and a second key. The inbox is kept for thirty days.
 */
const ARCHIVE = 'test/faults/earlier-data-folder.tar.gz'
const WRITTEN_AT_MS = Date.UTC(2026, 10, 27, 20, 5)
const INBOX = 'inb_01m8f9hwfee8q9mn3mk17zt4jg'
const ENDED = 'inb_01m8f9j13pe8q9mn7tre2x4kj5'
const WEBHOOK = 'whk_01m8f9j2m5e8q9mn95f23ncte5'

describe('the data folder of an earlier build', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let roles: MayflyWithClock

  beforeAll(async () => {
    folder = await makeFolder()
    await runProgram('tar', ['xzf', ARCHIVE, '-C', folder.path], {})
    roles = await startWithClock(folder.path, WRITTEN_AT_MS)
    await untilReady(roles)
  })
  afterAll(async () => {
    await roles.close()
    await folder.remove()
  })

  const get = async <Body>(path: string) => (await call<Body>(roles, 'GET', path)).body

  it('has its inboxes and mail, with what was found in them', async () => {
    const inboxes = await get<InboxJson[]>('/v1/inboxes?label=run:42')
    expect(inboxes.map(({ id, name, message_count }) => ({ id, name, message_count }))).toEqual([
      { id: INBOX, name: 'orders', message_count: 3 },
    ])
    const messages = await messagesOf(roles, INBOX, 3)
    expect(messages.map(({ subject }) => subject)).toEqual(['Your code is 493201', 'Attached', 'Delivered'])
    const [first, second] = messages
    expect(await get<MessageJson>(`/v1/inboxes/${INBOX}/messages/${first?.id}`)).toMatchObject({
      codes: [{ value: '493201' }],
      links: [{ href: 'https://example.com/verify?t=1' }],
    })
    expect(second?.attachments).toMatchObject([{ filename: 'notes.txt' }])
    const source = await get<string>(`/v1/inboxes/${INBOX}/messages/${first?.id}/raw`)
    expect(source).toContain('Message-ID: <one@example.com>')
  })

  it('has what ended, the history, keys, webhooks and deliveries', async () => {
    expect(await get(`/v1/inboxes/${ENDED}`)).toMatchObject({ code: 'inbox-deleted' })
    const history = await get<{ type: string }[]>(`/v1/inboxes/${INBOX}/history`)
    expect(history.map(({ type }) => type)).toEqual([
      ...['inbox.created', 'message.received', 'message.received', 'message.received'],
      ...['message.received', 'message.deleted'],
    ])
    expect(await get('/v1/keys')).toEqual(expect.arrayContaining([expect.objectContaining({ name: 'ci' })]))
    expect(await get(`/v1/webhooks/${WEBHOOK}/deliveries`)).toMatchObject([
      { state: 'succeeded', attempts: [{ status: 204 }] },
    ])
  })
})
