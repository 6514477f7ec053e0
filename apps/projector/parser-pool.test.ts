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
    timeoutMs: 20_000,
    patienceMs: 20_000,
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

describe('the pool of parsing threads', () => {
  const going = new AbortController().signal

  it('leaves what it has not begun where it is told to hurry, and goes on with the rest', async () => {
    const many = await Promise.all(Array.from({ length: 200 }, (_, n) => taskOf(smallMail(`left ${n}`))))
    const other = await taskOf(smallMail('wanted'))
    await withPool({ threads: 1 }, async (pool) => {
      const hurry = new AbortController()
      const left = pool.parse(
        many.map(({ open: _, ...task }) => task),
        hurry.signal,
      )
      const { open, ...task } = other
      const wanted = pool.parse([task], going)
      hurry.abort(new Error('the partition is another’s'))
      await expect(left).rejects.toThrow('the partition is another’s')
      expect(open((await wanted).get(other.messageId)).subject).toBe('wanted')
    })
  })

  it('answers for every mail, each under its own key', async () => {
    const tasks = await Promise.all(Array.from({ length: 100 }, (_, n) => taskOf(smallMail(`mail ${n}`))))
    await withPool({}, async (pool) => {
      const bodies = await pool.parse(
        tasks.map(({ open: _, ...task }) => task),
        going,
      )
      const subjects = tasks.map(({ messageId, open }) => open(bodies.get(messageId)).subject)
      expect(subjects).toEqual(tasks.map((_, n) => `mail ${n}`))
    })
  })

  it('says so of a mail that takes more memory than allowed, and reads the others', async () => {
    const [before, bomb, after] = await Promise.all([
      taskOf(smallMail('before')),
      taskOf(manyAttributes()),
      taskOf(smallMail('after')),
    ])
    await withPool({ memoryMib: 24 }, async (pool) => {
      const bodies = await pool.parse(
        [before, bomb, after].map(({ open: _, ...task }) => task),
        going,
      )
      const [first, defeated, last] = [before, bomb, after].map(({ messageId, open }) =>
        open(bodies.get(messageId)),
      )
      expect([first?.subject, last?.subject]).toEqual(['before', 'after'])
      expect(defeated).toMatchObject({
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
  ])('reads millions of $of in a bounded memory', async ({ charset, piece, begins }) => {
    const head = `Subject: many\r\nContent-Type: text/plain; charset=${charset}\r\n\r\n`
    const many = await taskOf(Buffer.concat([Buffer.from(head), Buffer.alloc(15 * 1024 * 1024, piece)]))
    await withPool({ memoryMib: 256 }, async (pool) => {
      const { open, ...task } = many
      const { text, warnings } = open((await pool.parse([task], going)).get(task.messageId))
      expect(text?.slice(0, 3)).toBe(begins)
      expect(warnings).toMatchObject([{ code: 'text-truncated' }])
    })
  })

  it('says so of a mail that takes longer than allowed', async () => {
    const slow = await taskOf(slowMail('slow'))
    await withPool({ timeoutMs: 1, threads: 1 }, async (pool) => {
      const { open: _, ...task } = slow
      const bodies = await pool.parse([task], going)
      expect(slow.open(bodies.get(slow.messageId)).warnings).toMatchObject([{ code: 'parse-timeout' }])
    })
  })

  it('says so of a mail whose bytes are damaged, and reads the others', async () => {
    const [whole, broken] = await Promise.all([taskOf(smallMail('whole')), taskOf(smallMail('broken'))])
    broken.sealed[broken.sealed.length - 1] = (broken.sealed.at(-1) ?? 0) ^ 1
    await withPool({}, async (pool) => {
      const bodies = await pool.parse(
        [broken, whole].map(({ open: _, ...task }) => task),
        going,
      )
      expect(whole.open(bodies.get(whole.messageId)).subject).toBe('whole')
      expect(broken.open(bodies.get(broken.messageId))).toMatchObject({
        subject: null,
        size: broken.size,
        warnings: [{ code: 'seal-broken' }],
      })
    })
  })

  it('reads another account’s mail while it is at those of one that take long', async () => {
    const accountId = mintId('acc')
    const slow = await Promise.all(Array.from({ length: 6 }, () => taskOf(slowMail('slow'), { accountId })))
    const swift = await taskOf(smallMail('swift'))
    await withPool({}, async (pool) => {
      await pool.warmUp()
      let read = 0
      const bombs = slow.map(async ({ open: _, ...task }) => {
        await pool.parse([task], going)
        read += 1
      })
      const { open, ...task } = swift
      const bodies = await pool.parse([task], going)
      expect(read).toBeLessThan(slow.length)
      expect(open(bodies.get(swift.messageId)).subject).toBe('swift')
      await Promise.all(bombs)
    })
  })

  it('shows the header of a mail that goes past its budget, and of those of its inbox behind it', async () => {
    const inboxId = mintId('inb')
    const defeats: string[] = []
    const costly = slowMail('costly')
    const [first, second, other] = await Promise.all([
      taskOf(costly, { inboxId }),
      taskOf(smallMail('behind'), { inboxId }),
      taskOf(smallMail('elsewhere')),
    ])
    const options = { inboxBudgetMs: 20, onDefeat: (code: string) => void defeats.push(code) }
    await withPool(options, async (pool) => {
      const mails = []
      for (const { open, ...task } of [other, first, second, other]) {
        mails.push(open((await pool.parse([task], going)).get(task.messageId)))
      }
      expect(mails).toMatchObject([
        { subject: 'elsewhere', text: 'Hello.\n', warnings: [] },
        { subject: 'costly', text: null, size: first.size, warnings: [{ code: 'parse-timeout' }] },
        { subject: 'behind', text: null, warnings: [{ code: 'parse-over-budget' }] },
        { subject: 'elsewhere', text: 'Hello.\n', warnings: [] },
      ])
    })
    expect(defeats).toEqual(['parse-timeout', 'parse-over-budget'])
  })

  it.each([
    { whose: 'of an account that is alone', isAlone: true, receivedAt: new Date() },
    { whose: 'of views that are rebuilt', isAlone: false, receivedAt: new Date(Date.now() - 3_600_000) },
  ])('reads mail whole past its budget: $whose', async ({ isAlone, receivedAt }) => {
    const inboxId = mintId('inb')
    const accountId = mintId('acc')
    const costly = slowMail('costly')
    const mine = { accountId, inboxId, receivedAt }
    const [other, ...tasks] = await Promise.all([
      taskOf(smallMail('elsewhere')),
      taskOf(costly, mine),
      taskOf(costly, mine),
    ])
    await withPool({ inboxBudgetMs: 20, patienceMs: 20 }, async (pool) => {
      for (const { open, ...task } of isAlone ? tasks : [other, ...tasks]) {
        expect(open((await pool.parse([task], going)).get(task.messageId)).warnings).toEqual([])
      }
    })
  })
})
