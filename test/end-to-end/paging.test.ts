import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  nextOf,
  pagesFrom,
  send,
  type MessageJson,
} from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { until } from '#test/harness/until.js'

const SENDERS = 4
const MAILS = 40

describe('paging', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  it.each([
    { limit: 1, by: 'cursor' },
    { limit: 7, by: 'cursor' },
    { limit: 100, by: 'cursor' },
    { limit: 3, by: 'link' },
  ])(
    'returns every message exactly once while more arrive: by $by, $limit at a time',
    async ({ limit, by }) => {
      const inbox = await createInbox(mayfly)
      let isSending = true
      const sending = Promise.all(
        Array.from({ length: SENDERS }, async (_, sender) => {
          for (let mailNo = 0; mailNo < MAILS / SENDERS; mailNo += 1)
            await send(mayfly, inbox.address, mail(`${sender}-${mailNo}`))
        }),
      ).finally(() => (isSending = false))

      const seen: string[] = []
      const first = `/v1/inboxes/${inbox.id}/messages?limit=${limit}`
      let path = first
      await until(
        'all of them',
        async () => {
          const page = await call<MessageJson[]>(mayfly, 'GET', path)
          seen.push(...page.body.map(({ id }) => id))
          const cursor = page.headers.get('mayfly-cursor') ?? ''
          const onward = `${first}&cursor=${cursor}`
          path = by === 'link' ? (nextOf(page) ?? onward) : onward
          return !isSending && page.body.length === 0 && seen.length >= MAILS
        },
        60_000,
      )
      await sending
      const all = (await messagesOf(mayfly, inbox.id, MAILS)).map(({ id }) => id)
      expect(seen).toEqual(all)
      expect(new Set(seen).size).toBe(MAILS)
    },
  )

  it('never answers with an error while messages are deleted', async () => {
    const inbox = await inboxWith(mayfly, ...Array.from({ length: 30 }, (_, index) => mail(String(index))))
    const ids = (await messagesOf(mayfly, inbox.id, 30)).map(({ id }) => id)
    const kept = ids.filter((_, index) => index % 3 === 0)
    const path = `/v1/inboxes/${inbox.id}/messages`
    const progress = { isDeleting: true }
    const deleting = Promise.all(
      ids.filter((id) => !kept.includes(id)).map((id) => call(mayfly, 'DELETE', `${path}/${id}`)),
    ).finally(() => (progress.isDeleting = false))
    while (progress.isDeleting) {
      for (const order of ['asc', 'desc']) {
        const pages = await pagesFrom<MessageJson>(mayfly, `${path}?limit=4&order=${order}`)
        const seen = pages.flatMap(({ body }) => body.map(({ id }) => id))
        expect(new Set(seen).size).toBe(seen.length)
        for (const id of kept) expect(seen).toContain(id)
      }
    }
    expect(new Set((await deleting).map(({ status }) => status))).toEqual(new Set([200]))
    expect((await messagesOf(mayfly, inbox.id, kept.length)).map(({ id }) => id)).toEqual(kept)
  })

  it('ends a page early past 8 MB, with at least one message', async () => {
    // Three bytes per character, because pages are limited in bytes.
    const [large, larger] = ['日本語'.repeat(111_112), '日本語'.repeat(500_000)]
    const texts = [large, large, large, large, large, large, large, large, larger]
    const inbox = await createInbox(mayfly)
    for (const [index, text] of texts.entries()) await send(mayfly, inbox.address, mail(`${index}`, text))
    await until('the last one', async () => {
      const last = await call<MessageJson[]>(
        mayfly,
        'GET',
        `/v1/inboxes/${inbox.id}/messages?order=desc&limit=1`,
      )
      return last.body[0]?.subject === `${texts.length - 1}`
    })
    for (const order of ['asc', 'desc']) {
      const pages = await pagesFrom<MessageJson>(mayfly, `/v1/inboxes/${inbox.id}/messages?order=${order}`)
      const seen = pages.flatMap(({ body }) => body.map(({ subject }) => Number(subject)))
      const all = texts.map((_, index) => index)
      expect(seen).toEqual(order === 'asc' ? all : all.toReversed())
      expect(pages.length).toBeGreaterThan(1)
      for (const { body } of pages) {
        expect(body.length).toBeGreaterThan(0)
        const bytes = body.reduce((sum, message) => sum + Buffer.byteLength(message.text ?? ''), 0)
        if (body.length > 1) expect(bytes).toBeLessThan(8_500_000)
      }
      // Small messages fit into one page.
      expect(pages.some(({ body }) => body.length >= 4)).toBe(true)
    }
  })
})
