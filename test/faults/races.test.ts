import { createTransport } from 'nodemailer'
import {
  call,
  createInbox,
  mail,
  messagesOf,
  send,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { makeFolder, startWithClock } from '#test/harness/mayfly-with-clock.js'

const ROUNDS = 20

describe('concurrent requests', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  it('that delete one inbox agree on its end', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { id } = await createInbox(mayfly)
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => call<{ deleted_at: string }>(mayfly, 'DELETE', `/v1/inboxes/${id}`)),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
      const gone = await call<{ ended_at: string }>(mayfly, 'GET', `/v1/inboxes/${id}`)
      expect(gone).toMatchObject({ status: 410, body: { ended_at: answers[0]?.body.deleted_at } })
    }
  })

  it('that delete one message count once', async () => {
    const inbox = await createInbox(mayfly)
    for (let round = 0; round < ROUNDS; round += 1) await send(mayfly, inbox.address, mail(`Mail ${round}`))
    const messages = await messagesOf(mayfly, inbox.id, ROUNDS)
    for (const [index, { id }] of messages.entries()) {
      const path = `/v1/inboxes/${inbox.id}/messages/${id}`
      const answers = await Promise.all(Array.from({ length: 3 }, () => call(mayfly, 'DELETE', path)))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
      const { body } = await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)
      expect(body.message_count).toBe(ROUNDS - 1 - index)
      expect(await call(mayfly, 'GET', path)).toMatchObject({
        status: 410,
        body: { code: 'message-deleted' },
      })
    }
  })

  it('that delete an inbox while mail arrives leave no mail half visible', async () => {
    let accepted = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      const inbox = await createInbox(mayfly)
      let isEnded = false
      const senders = Array.from({ length: 4 }, () => sendUntil(inbox, () => isEnded))
      await until('a first mail', async () => {
        const { body } = await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)
        return body.message_count > round % 3
      })
      expect((await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)).status).toBe(200)
      isEnded = true
      const ids = (await Promise.all(senders)).flat()
      accepted += ids.length
      for (const id of [...ids.slice(0, 3), ...ids.slice(-3)]) {
        const answer = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages/${id}`)
        expect(answer).toMatchObject({ status: 410, body: { code: 'inbox-deleted' } })
      }
      expect((await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages`)).status).toBe(410)
    }
    expect(accepted).toBeGreaterThan(ROUNDS)
  }, 180_000)

  it('list a mail either completely or not at all while mails arrive and are deleted', async () => {
    const inbox = await createInbox(mayfly)
    let isEnded = false
    const senders = Array.from({ length: 3 }, () => sendUntil(inbox, () => isEnded))
    const seen = new Set<string>()
    await until('many mails', async () => {
      const { status, body } = await call<MessageJson[]>(
        mayfly,
        'GET',
        `/v1/inboxes/${inbox.id}/messages?limit=100`,
      )
      expect(status).toBe(200)
      for (const { id, subject, sha256 } of body) {
        expect(subject).toMatch(/^Race /)
        expect(sha256).toMatch(/^[0-9a-f]{64}$/)
        seen.add(id)
      }
      const [last] = body.slice(-1)
      if (last !== undefined) await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${last.id}`)
      return seen.size > 60
    })
    isEnded = true
    const ids = (await Promise.all(senders)).flat()
    for (const id of seen) expect(ids).toContain(id)
  })

  /** Sends mails until `isEnded`. Resolves with the ids of those that were answered 250. */
  async function sendUntil({ address }: InboxJson, isEnded: () => boolean): Promise<string[]> {
    const ids: string[] = []
    const transport = createTransport({
      host: '127.0.0.1',
      port: mayfly.smtpPort,
      ignoreTLS: true,
      pool: true,
      maxConnections: 1,
    })
    try {
      while (!isEnded()) {
        const envelope = { from: 'a@example.com', to: address }
        const { response } = await transport.sendMail({ envelope, raw: mail(`Race ${ids.length}`) })
        ids.push(/^250 2\.0\.0 (\S+)/.exec(response)?.[1] ?? 'no id')
      }
    } catch (error) {
      expect((error as { responseCode?: number }).responseCode).toBe(550)
    } finally {
      transport.close()
    }
    return ids
  }
})

describe('an expiry', () => {
  it('between two pages of a list leaves each inbox in exactly one state', async () => {
    const folder = await makeFolder()
    const clock = Date.now()
    const roles = await startWithClock(folder.path, clock)
    const ids = new Set<string>()
    const lasting = new Set<string>()
    for (let count = 0; count < 30; count += 1) {
      const duration = count % 2 === 0 ? '1m' : '1h'
      const { id, address } = await createInbox(roles, { duration })
      await send(roles, address, mail('Hello'))
      await messagesOf(roles, id, 1)
      ids.add(id)
      if (duration === '1h') lasting.add(id)
    }
    await roles.setClock(clock + 60_000)
    // Polled before, during and after the events of the expiry.
    const ended = () =>
      call<string>(roles, 'GET', '/metrics').then(({ body }) => /expired_inboxes_total (\d+)/.exec(body)?.[1])
    await until('every expiry', async () => {
      const before = await ended()
      const states = await Promise.all(
        ['active', 'expired'].map((state) =>
          call<InboxJson[]>(roles, 'GET', `/v1/inboxes?limit=1000&state=${state}`),
        ),
      )
      const [active = [], expired = []] = states.map(({ body }) => body.map(({ id }) => id))
      expect(active).toHaveLength(15)
      expect(expired).toHaveLength(15)
      expect(new Set([...active, ...expired])).toEqual(ids)
      const { body } = await call<{ inbox_id: string }[]>(roles, 'GET', '/v1/messages?limit=100')
      expect(body).toHaveLength(lasting.size)
      expect(new Set(body.map(({ inbox_id: id }) => id))).toEqual(lasting)
      return before === '15'
    })
    await roles.close()
    await folder.remove()
  })
})
