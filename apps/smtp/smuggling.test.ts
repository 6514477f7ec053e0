import type { Address } from '#libs/domain/inbox/events.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import type { ReceivedMail } from '#test/smtp/logged-mail.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
let inbox: { id: InboxId; address: Address }

beforeAll(async () => {
  fixture = await SmtpFixture.started()
})
beforeEach(async () => {
  inbox = await fixture.createInbox()
})

afterEach(() => Dialogue.closeAll())
afterAll(() => fixture.close())

/** Sequences that some servers accept as the end of a mail, or convert into it. */
const ENDS = [
  '\n.\n',
  '\n.\r',
  '\n.\r\n',
  '\r.\r',
  '\r.\n',
  '\r.\r\n',
  '\r\n.\n',
  '\r\n.\r',
  '\r\n.\r\r\n',
  '\r\n\n.\r\n',
  '\r\n\0.\r\n',
  '\r\n.\0\r\n',
  '\r\n. \r\n',
  '\r\n..\r\n',
  '\r\n.\u0085',
]

async function received(): Promise<ReceivedMail[]> {
  return (await fixture.received()).filter(({ event }) => event.inboxId === inbox.id)
}

/** Ways to divide the bytes: not at all, into single bytes, and in two at each offset around the sequence. */
function* cuts(wire: Buffer, around: number): Generator<Buffer[]> {
  yield [wire]
  yield Array.from(wire, (byte) => Buffer.of(byte))
  for (let at = around; at <= around + 6; at += 1) yield [wire.subarray(0, at), wire.subarray(at)]
}

describe('smuggling', () => {
  it.each(ENDS)('text after %j is content, in chunks of any size', async (end) => {
    const smuggled = `MAIL FROM:<evil@x.test>\r\nRCPT TO:<${inbox.address}>\r\nDATA\r\nSubject: evil\r\n\r\n`
    const content = Buffer.from(`Subject: one\r\n\r\nbody${end}${smuggled}`, 'latin1')
    const wire = Buffer.concat([content, Buffer.from('\r\n.\r\nNOOP\r\n')])
    const codes = new Set<string>()
    let runs = 0
    for (const pieces of cuts(wire, 'Subject: one\r\n\r\nbody'.length)) {
      const client = await Dialogue.open(fixture.port)
      await client.address(inbox.address)
      expect(await client.ask('DATA')).toMatch(/^354 /)
      await client.sendInPieces(pieces)
      codes.add((await client.reply()).slice(0, 3))
      // One reply to the mail, then the reply to NOOP, and nothing in between.
      expect(await client.reply()).toBe('250 2.0.0 OK')
      client.close()
      runs += 1
    }
    expect(codes.size).toBe(1)
    const mails = await received()
    expect(mails).toHaveLength(codes.has('250') ? runs : 0)
    for (const { envelope, raw } of mails) {
      expect(envelope.mailFrom).toBe('a@x.test')
      expect(raw.toString('latin1')).toContain('MAIL FROM:<evil@x.test>')
    }
  })

  it.each(ENDS)('a pipelined mail with %j is one mail or refused', async (end) => {
    const mail = `MAIL FROM:<a@x.test>\r\nRCPT TO:<${inbox.address}>\r\nDATA\r\n`
    const client = await Dialogue.greeted(fixture.port)
    client.send(Buffer.from(`${mail}body${end}${mail}x\r\n.\r\nQUIT\r\n`, 'latin1'))
    const codes = ((await client.rest()).match(/^\d{3}/gm) ?? []).map(Number)
    const isAccepted = codes[3] === 250
    expect(codes).toEqual([250, 250, 354, isAccepted ? 250 : 554, 221])
    expect(await received()).toHaveLength(isAccepted ? 1 : 0)
  })

  it.each(['\r\r\n.\r\n', '\n\r\n.\r\n'])(
    '%j ends a mail, which is refused for its bare CR or LF',
    async (end) => {
      const client = await Dialogue.open(fixture.port)
      await client.address(inbox.address)
      expect(await client.data(`body${end}NOOP\r\n`)).toMatch(/^554 5\.6\.0 /)
      expect(await client.reply()).toBe('250 2.0.0 OK')
      expect(await received()).toEqual([])
    },
  )

  it('commands that end in a bare LF are refused one by one', async () => {
    const client = await Dialogue.greeted(fixture.port)
    client.send(`MAIL FROM:<a@x.test>\nRCPT TO:<${inbox.address}>\nDATA\nx\n.\nQUIT\r\n`)
    const codes = (await client.rest()).match(/^\d{3}/gm)
    expect(codes).toEqual([...Array<string>(5).fill('500'), '221'])
    expect(await received()).toEqual([])
  })
})
