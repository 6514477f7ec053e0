import { hash } from 'node:crypto'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { INBOX_ID, messageId } from '#libs/domain/inbox/inbox.test-support.js'
import { Comparison, type RunMessage } from './comparison.js'
import { Manifest, type ManifestLine } from './manifest.js'

const OTHER_INBOX = idFromBytes('inb', Buffer.alloc(16, 9))
const SENT_AT = new Date('2026-11-25T20:00:00.000Z')
const digestOf = (text: string): Buffer => hash('sha256', text, 'buffer')

function comparisonOf(
  lines: readonly Partial<ManifestLine>[],
  options: { lateMs?: number; isOrdered?: boolean } = {},
): Comparison {
  const manifest = new Manifest((recipient) => recipient)
  for (const line of lines) {
    manifest.add({ recipient: 'a@x', id: '<1>', sentAtMs: SENT_AT.getTime(), digest: null, ...line })
  }
  return new Comparison(manifest, { lateMs: null, isOrdered: false, ...options })
}

function message(more: Partial<RunMessage> & { delayMs?: number; source?: string } = {}): RunMessage {
  const { delayMs = 0, source = '', ...given } = more
  return {
    ...{ id: messageId(1), inboxId: INBOX_ID, mailbox: 'a@x', recipient: 'a+tag@x', headerId: '<1>' },
    receivedAt: new Date(SENT_AT.getTime() + delayMs),
    digest: () => Promise.resolve(digestOf(source)),
    ...given,
  }
}

const kindsOf = async (comparison: Comparison, ...messages: RunMessage[]): Promise<string[][]> => {
  const kinds: string[][] = []
  for (const each of messages) kinds.push((await comparison.add(each)).map(({ kind }) => kind))
  return kinds
}

describe('a message', () => {
  it('is late if it was received more than that after it was sent', async () => {
    const options = { lateMs: 1_000 }
    const one = () => comparisonOf([{}], options)
    expect(await kindsOf(one(), message({ delayMs: 1_000 }))).toEqual([[]])
    const [late] = await one().add(message({ delayMs: 1_001 }))
    expect(late).toMatchObject({ kind: 'late', line: 1, recipient: 'a@x', delay_ms: 1_001, late_by_ms: 1 })
    expect(await kindsOf(comparisonOf([{ sentAtMs: null }], options), message({ delayMs: 9_999 }))).toEqual([
      [],
    ])
    expect(await kindsOf(comparisonOf([{}]), message({ delayMs: 9_999 }))).toEqual([[]])
  })

  it('is altered if its source has another digest, which is read only if the line has one', async () => {
    const lines = [{ digest: digestOf('sent') }]
    expect(await kindsOf(comparisonOf(lines), message({ source: 'sent' }))).toEqual([[]])
    const [altered] = await comparisonOf(lines).add(message({ source: 'received' }))
    const received = digestOf('received').toString('hex')
    expect(altered).toMatchObject({ kind: 'altered', received_sha256: received })
    const unread = message({ digest: () => Promise.reject(new Error('read')) })
    expect(await kindsOf(comparisonOf([{}]), unread)).toEqual([[]])
  })

  it('can be late, altered and out of order at once', async () => {
    const lines = [{ id: '<1>', digest: digestOf('sent') }, { id: '<2>' }]
    const comparison = comparisonOf(lines, { lateMs: 0, isOrdered: true })
    const messages = [message({ headerId: '<2>' }), message({ delayMs: 1 })]
    expect(await kindsOf(comparison, ...messages)).toEqual([[], ['late', 'altered', 'reordered']])
    const counts = { expected: 2, found: 2, duplicate: 0, unexpected: 0, late: 1, altered: 1, reordered: 1 }
    expect(comparison.counts).toEqual(counts)
  })

  it('is a duplicate beyond the lines with its recipient and id, and otherwise unexpected', async () => {
    const comparison = comparisonOf([{}, {}])
    const others = [message({ headerId: '<2>' }), message({ mailbox: 'b@x' }), message({ headerId: null })]
    const kinds = await kindsOf(comparison, message(), message(), message(), ...others)
    expect(kinds).toEqual([[], [], ['duplicate'], ['unexpected'], ['unexpected'], ['unexpected']])
    expect(comparison.counts).toMatchObject({ found: 2, duplicate: 1, unexpected: 3 })
  })

  it('is compared only with the order of its own inbox', async () => {
    const lines = ['<1>', '<2>', '<3>', '<4>'].map((id) => ({ id }))
    const comparison = comparisonOf(lines, { isOrdered: true })
    const inFirst = ['<2>', '<4>', '<3>'].map((headerId) => message({ headerId }))
    const inSecond = message({ headerId: '<1>', inboxId: OTHER_INBOX })
    expect(await kindsOf(comparison, ...inFirst, inSecond)).toEqual([[], [], ['reordered'], []])
  })
})
