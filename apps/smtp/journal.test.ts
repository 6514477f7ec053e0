import { pino } from 'pino'
import { Registry } from 'prom-client'
import { until } from '#test/harness/until.js'
import { Journal } from './journal.js'
import type { IncomingMail } from './mail-data.js'

const SESSION = { id: 'con_1', remoteAddress: '127.0.0.1' }
const MAIL: IncomingMail = {
  raw: Buffer.from('Subject: x\r\n'),
  recipients: [],
  trace: { mailFrom: '', helo: 'client.test', remoteAddress: '127.0.0.1', tls: null },
  senderKey: null,
  deadlineMs: Infinity,
  disconnected: new AbortController().signal,
}

describe('the journal', () => {
  let lines: { level: number; msg: string }[]
  let registry: Registry
  let journal: Journal

  beforeEach(() => {
    lines = []
    registry = new Registry()
    const write = (line: string) => lines.push(JSON.parse(line) as (typeof lines)[number])
    journal = new Journal(pino({ level: 'info' }, { write }), registry)
  })

  const accept = (mails: number) => {
    for (let n = 0; n < mails; n += 1) journal.mailAccepted(SESSION, MAIL, [], { receiveMs: 1, acceptMs: 1 })
  }
  const refuse = (mails: number) => {
    for (let n = 0; n < mails; n += 1) journal.refused(SESSION, 'inbox-full', 552)
  }
  const texts = () => lines.map(({ msg }) => msg)
  const mailLines = Array<string>(100).fill('mail accepted')

  it('logs a hundred mails of a second each in a line, the others together, and counts all', async () => {
    accept(250)
    expect(texts()).toEqual(mailLines)
    await until('the end of the second', () => lines.length > 100)
    expect(lines[100]).toMatchObject({ msg: 'more mails accepted within a second', mails: 150 })
    accept(1)
    expect(texts().slice(101)).toEqual(['mail accepted'])
    expect(await registry.getSingleMetricAsString('mayfly_mails_accepted_total')).toContain(' 251')
  })

  it('logs refusals likewise, apart from mails, and each that is a fault of this server', async () => {
    accept(100)
    refuse(120)
    journal.refused(SESSION, 'log-unavailable', 451)
    expect(texts()).toEqual([...mailLines, ...Array<string>(101).fill('refused')])
    await until('the end of the second', () => lines.length > 201)
    const more = { msg: 'more refusals within a second', refusals: 20 }
    expect(lines.slice(201)).toMatchObject([more])
  })
})
