import { createHash } from 'node:crypto'
import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  mail,
  messagesOf,
  only,
  type InboxJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { sendBytes } from '#test/harness/smtp.js'
import { BOMBS } from '#test/hostile/bombs.js'

const MIB = 1024 * 1024
/** Parsing a costly mail may take a minute on a busy machine. */
const PARSED_WITHIN_MS = 100_000

interface Shown {
  id: string
  subject: string | null
  size: number
  sha256: string
  warnings: { code: string }[]
  attachments: { index: number; size: number }[]
}

/** The most expensive bombs of test/hostile/bombs.ts. */
const SENT: { name: string; bytes: number; warning: string | null }[] = [
  { name: 'multiparts in multiparts', bytes: MIB, warning: 'too-many-parts' },
  { name: 'attachments without end', bytes: 8 * MIB, warning: 'too-many-attachments' },
  { name: 'many senders', bytes: 0.9 * MIB, warning: 'too-many-addresses' },
  { name: 'many headers', bytes: 8 * MIB, warning: 'too-many-headers' },
  { name: 'a long Subject', bytes: 10 * MIB, warning: 'too-many-headers' },
  { name: 'one line', bytes: 25 * MIB, warning: 'text-truncated' },
  { name: 'an image in a data URI', bytes: 20 * MIB, warning: 'html-truncated' },
]

describe('a bomb', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    // Only CPU time counts here, because the machine may be busy.
    mayfly = await startMayfly({
      isOneProcess: true,
      env: { MAYFLY_PARSE_PATIENCE_MS: '60000', MAYFLY_PARSE_TIMEOUT_MS: '60000' },
    })
  })
  afterAll(() => mayfly.dispose())

  it.each(SENT)(
    'of $name is shown with a warning and its complete source',
    async ({ name, bytes, warning }) => {
      const source = sourceOf(name, bytes)
      const { tenant, path, message } = await received(source)
      expect(message.size).toBe(source.length)
      expect(message.warnings.map(({ code }) => code)).toContain(warning)
      const raw = await fetchAt(tenant, `${path}/raw`)
      const content = Buffer.from(await raw.arrayBuffer())
      expect(digestOf(content)).toBe(digestOf(source))
      expect(message.sha256).toBe(digestOf(source))
      for (const { index, size } of message.attachments.slice(-1)) {
        const attachment = await fetchAt(tenant, `${path}/attachments/${index}`)
        expect((await attachment.arrayBuffer()).byteLength).toBe(size)
      }
    },
  )

  it('with very many senders can be searched by sender', async () => {
    const { tenant, inbox } = await received(sourceOf('many senders', 0.9 * MIB))
    const list = `/v1/inboxes/${inbox.id}/messages`
    expect((await call<Shown[]>(tenant, 'GET', `${list}?sender=999@b.c`)).body).toHaveLength(1)
    expect((await call<Shown[]>(tenant, 'GET', `${list}?sender=nobody`)).body).toEqual([])
  })

  it('that exceeds its budget is shown with its header only, and so is the next mail', async () => {
    // Budgets apply only if another account has mail.
    await received(Buffer.from(mail('Somebody else')))
    const tenant = await newTenant()
    const inbox = await createInbox(tenant)
    const costly = Buffer.concat([Buffer.from('X-Mark: it\r\n'), sourceOf('closing tags of none', 8 * MIB)])
    for (const source of [costly, costly, Buffer.from(mail('Behind'))]) await deliver(inbox, source)
    const shown = (await messagesOf(tenant, inbox.id, 3, PARSED_WITHIN_MS)) as unknown as Shown[]
    expect(shown.map(({ size }) => size)).toEqual([
      costly.length,
      costly.length,
      Buffer.byteLength(mail('Behind')),
    ])
    expect(shown.map(({ subject }) => subject)).toEqual(['bomb', 'bomb', 'Behind'])
    expect(shown[1]?.warnings.map(({ code }) => code)).toEqual([
      expect.stringMatching(/^parse-(timeout|over-budget)$/),
    ])
    const elsewhere = await received(Buffer.from(mail('Elsewhere')))
    expect(elsewhere.message).toMatchObject({ subject: 'Elsewhere', warnings: [] })
  })

  it('is searched and read completely while others are served', async () => {
    const { tenant, inbox, path, message } = await received(sourceOf('one line', 25 * MIB))
    const list = `/v1/inboxes/${inbox.id}/messages`
    const [whole, matching, other] = await Promise.all([
      call<{ raw: string }>(tenant, 'GET', path),
      call<Shown[]>(tenant, 'GET', `${list}?text=${'x'.repeat(100)}`),
      call<Shown[]>(tenant, 'GET', `${list}?text=nowhere`),
    ])
    expect(whole.body.raw).toHaveLength(message.size)
    expect([matching.body.length, other.body.length]).toEqual([1, 0])
  })

  /** Each account has its own budget. */
  async function newTenant(): Promise<Target> {
    const { key } = await openAccount(mayfly)
    return withKey(mayfly, await issueKey(withKey(mayfly, key)))
  }

  async function received(source: Buffer): Promise<{
    tenant: Target
    inbox: InboxJson
    path: string
    message: Shown
  }> {
    const tenant = await newTenant()
    const inbox = await createInbox(tenant)
    await deliver(inbox, source)
    const message = only(await messagesOf(tenant, inbox.id, 1, PARSED_WITHIN_MS)) as unknown as Shown
    return { tenant, inbox, path: `/v1/inboxes/${inbox.id}/messages/${message.id}`, message }
  }

  async function deliver({ address }: InboxJson, source: Buffer): Promise<void> {
    const sent = Buffer.concat([source, Buffer.from('.\r\n')])
    expect(await sendBytes(mayfly, address, sent)).toMatch(/^250 /)
  }

  function fetchAt({ url, apiKey }: Target, path: string): Promise<Response> {
    return fetch(url + path, { headers: { authorization: `Bearer ${apiKey}` } })
  }
})

/** Adds a CRLF at the end. */
function sourceOf(name: string, bytes: number): Buffer {
  const bomb = BOMBS[name]
  if (bomb === undefined) throw new Error(`unknown bomb ${name}`)
  const most = 25 * MIB - 2
  return Buffer.concat([bomb(bytes).subarray(0, most), Buffer.from('\r\n')])
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
