import { mintId } from '#libs/domain/ids/mint.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import { manyAttributes, slowMail, smallMail, taskOf } from './parse-task.test-support.js'
import { ParserPool, type ParserPoolOptions } from './parser-pool.js'

async function withPool(
  options: Partial<ParserPoolOptions>,
  use: (pool: ParserPool) => Promise<void>,
): Promise<void> {
  const pool = new ParserPool({
    threads: 2,
    timeoutMs: 100_000,
    slowTimeoutMs: 100_000,
    memoryMib: 256,
    inboxBudgetMs: 60_000,
    accountBudgetMs: 60_000,
    onThreadLost: () => undefined,
    ...options,
  })
  try {
    await use(pool)
  } finally {
    await pool.close()
  }
}

describe('the parser pool', () => {
  const { signal } = new AbortController()

  it('drops queued mails of an aborted call, and parses those of other calls', async () => {
    const many = await Promise.all(Array.from({ length: 200 }, (_, n) => taskOf(smallMail(`left ${n}`))))
    const other = await taskOf(smallMail('wanted'))
    await withPool({ threads: 1 }, async (pool) => {
      const aborting = new AbortController()
      const aborted = pool.parse(
        many.map(({ open: _, ...task }) => task),
        aborting.signal,
      )
      const { open, ...task } = other
      const wanted = pool.parse([task], signal)
      aborting.abort(new Error('the partition was reassigned'))
      await expect(aborted).rejects.toThrow('the partition was reassigned')
      expect(open((await wanted).get(other.messageId)).subject).toBe('wanted')
    })
  })

  it('returns a body for every mail, sealed with its own key', async () => {
    const tasks = await Promise.all(Array.from({ length: 100 }, (_, n) => taskOf(smallMail(`mail ${n}`))))
    await withPool({}, async (pool) => {
      const bodies = await pool.parse(
        tasks.map(({ open: _, ...task }) => task),
        signal,
      )
      const subjects = tasks.map(({ messageId, open }) => open(bodies.get(messageId)).subject)
      expect(subjects).toEqual(tasks.map((_, n) => `mail ${n}`))
    })
  })

  it('parses the copies of a mail once, and gives each its own envelope', async () => {
    const html = Array.from({ length: 1_000 }, (_, n) => `<a href="https://app.example/${n}">code ${n}</a>`)
    const source = Buffer.from(`Content-Type: text/html\r\n\r\n${html.join('\r\n')}`)
    const envelopes = Array.from({ length: 20 }, (_, n) => ({
      ...anyEnvelope,
      mailFrom: `from${n}@example.com`,
      rcptTo: `to${n}@example.com`,
    }))
    const tasks = await Promise.all(envelopes.map((envelope) => taskOf(source, {}, envelope)))
    const cpuMs: number[] = []
    await withPool({ threads: 1, onParsed: (ms) => cpuMs.push(ms) }, async (pool) => {
      const bodies = await pool.parse(
        tasks.map(({ open: _, ...task }) => task),
        signal,
      )
      const mails = tasks.map(({ messageId, open }) => open(bodies.get(messageId)))
      expect(mails).toEqual(
        envelopes.map((envelope) => {
          const { mailFrom: sender, rcptTo: recipient } = envelope
          return { ...mails[0], sender, recipient, envelope }
        }),
      )
      expect(mails[0]?.links).toHaveLength(1_000)
    })
    const [first = 0, ...others] = cpuMs
    expect(Math.min(...others)).toBeLessThan(first / 2)
  })

  it('warns about a mail that takes too much memory, and parses the others', async () => {
    const [before, bomb, after] = await Promise.all([
      taskOf(smallMail('before')),
      taskOf(manyAttributes()),
      taskOf(smallMail('after')),
    ])
    await withPool({ memoryMib: 24 }, async (pool) => {
      const bodies = await pool.parse(
        [before, bomb, after].map(({ open: _, ...task }) => task),
        signal,
      )
      const [first, bombed, last] = [before, bomb, after].map(({ messageId, open }) =>
        open(bodies.get(messageId)),
      )
      expect([first?.subject, last?.subject]).toEqual(['before', 'after'])
      expect(bombed).toMatchObject({
        subject: 'many',
        html: null,
        recipient: anyEnvelope.rcptTo,
        warnings: [{ code: 'parse-out-of-memory' }],
      })
    })
  })

  it.each([
    { of: 'lines', charset: 'us-ascii', piece: ':\r\n', begins: ':\n:' },
    { of: 'yen signs', charset: 'iso-2022-jp', piece: '\x1b(J\\~', begins: '¥‾¥' },
  ])('parses millions of $of within bounded memory', async ({ charset, piece, begins }) => {
    const head = `Subject: many\r\nContent-Type: text/plain; charset=${charset}\r\n\r\n`
    const many = await taskOf(Buffer.concat([Buffer.from(head), Buffer.alloc(15 * 1024 * 1024, piece)]))
    await withPool({ memoryMib: 256 }, async (pool) => {
      const { open, ...task } = many
      const { text, warnings } = open((await pool.parse([task], signal)).get(task.messageId))
      expect(text?.slice(0, 3)).toBe(begins)
      expect(warnings).toMatchObject([{ code: 'text-truncated' }])
    })
  })

  it('warns about a mail that takes too long', async () => {
    const slow = await taskOf(slowMail('slow'))
    await withPool({ timeoutMs: 1, threads: 1 }, async (pool) => {
      const { open: _, ...task } = slow
      const bodies = await pool.parse([task], signal)
      expect(slow.open(bodies.get(slow.messageId)).warnings).toMatchObject([{ code: 'parse-timeout' }])
    })
  })

  it('warns about a mail whose bytes are damaged, and parses the others', async () => {
    const [whole, broken] = await Promise.all([taskOf(smallMail('whole')), taskOf(smallMail('broken'))])
    broken.sealed[broken.sealed.length - 1] = (broken.sealed.at(-1) ?? 0) ^ 1
    await withPool({}, async (pool) => {
      const bodies = await pool.parse(
        [broken, whole].map(({ open: _, ...task }) => task),
        signal,
      )
      expect(whole.open(bodies.get(whole.messageId)).subject).toBe('whole')
      expect(broken.open(bodies.get(broken.messageId))).toMatchObject({
        subject: null,
        size: broken.size,
        warnings: [{ code: 'seal-broken' }],
      })
    })
  })

  it("parses another account's mail while slow mails of one account are parsed", async () => {
    const accountId = mintId('acc')
    const slow = await Promise.all(Array.from({ length: 6 }, () => taskOf(slowMail('slow'), { accountId })))
    const quick = await taskOf(smallMail('quick'))
    await withPool({}, async (pool) => {
      let parsed = 0
      const bombs = slow.map(async ({ open: _, ...task }) => {
        await pool.parse([task], signal)
        parsed += 1
      })
      const { open, ...task } = quick
      const bodies = await pool.parse([task], signal)
      expect(parsed).toBeLessThan(slow.length)
      expect(open(bodies.get(quick.messageId)).subject).toBe('quick')
      await Promise.all(bombs)
    })
  })

  it('shows only the header of a mail that exceeds its budget, and of later mails of its inbox', async () => {
    const inboxId = mintId('inb')
    const fallbacks: string[] = []
    const costly = slowMail('costly')
    const [first, second, other] = await Promise.all([
      taskOf(costly, { inboxId }),
      taskOf(smallMail('behind'), { inboxId }),
      taskOf(smallMail('elsewhere')),
    ])
    const options = { inboxBudgetMs: 20, onFallback: (code: string) => void fallbacks.push(code) }
    await withPool(options, async (pool) => {
      const mails = []
      for (const { open, ...task } of [other, first, second, other]) {
        mails.push(open((await pool.parse([task], signal)).get(task.messageId)))
      }
      expect(mails).toMatchObject([
        { subject: 'elsewhere', text: 'Hello.\n', warnings: [] },
        { subject: 'costly', text: null, size: first.size, warnings: [{ code: 'parse-timeout' }] },
        { subject: 'behind', text: null, warnings: [{ code: 'parse-over-budget' }] },
        { subject: 'elsewhere', text: 'Hello.\n', warnings: [] },
      ])
    })
    expect(fallbacks).toEqual(['parse-timeout', 'parse-over-budget'])
  })

  it.each([
    { whose: 'if no other account has mail', isAlone: true, receivedAt: new Date() },
    { whose: 'while the views are rebuilt', isAlone: false, receivedAt: new Date(Date.now() - 3_600_000) },
  ])('parses mail completely beyond its budget: $whose', async ({ isAlone, receivedAt }) => {
    const inboxId = mintId('inb')
    const accountId = mintId('acc')
    const costly = slowMail('costly')
    const mine = { accountId, inboxId, receivedAt }
    const [other, ...tasks] = await Promise.all([
      taskOf(smallMail('elsewhere')),
      taskOf(costly, mine),
      taskOf(costly, mine),
    ])
    await withPool({ inboxBudgetMs: 20, slowTimeoutMs: 20 }, async (pool) => {
      for (const { open, ...task } of isAlone ? tasks : [other, ...tasks]) {
        expect(open((await pool.parse([task], signal)).get(task.messageId)).warnings).toEqual([])
      }
    })
  })
})
