import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { anonymousBytes } from '#libs/runtime/process/metrics.js'
import { isExecutable } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import type { Compared } from './comparison.js'
import { cpuMs } from './cpu-time.js'
import { OTHER_PROGRAMS, startMayfly, type MailProgram } from './mail-program.js'
import { MIB, samplesOf } from './memory.js'
import { CannotRunError, type Command } from './plan.js'
import { findPostfix, sourceRate, type Postfix } from './postfix.js'
import { findWrk, measureReads, type Wrk } from './wrk.js'

/** As many as Mailpit keeps by default: its lists take longer the more there are. */
const MAILS_WHILE_READING = 500
const LISTED = 25
const READERS = 8
const SHOWN_WITHIN_MS = 300_000

/** In the order of the table. */
const UNITS = {
  'accepted, kept connections': 'mails/s',
  'accepted, a connection per mail': 'mails/s',
  'visible, sustained': 'mails/s',
  'CPU per mail until visible and counted': 'µs',
  'resident memory without files': 'MiB',
  'disk space per mail': 'KiB',
  'list of 25 messages': 'answers/s',
  'one message': 'answers/s',
  'source of a message': 'answers/s',
  start: 's',
} as const
type Figures = Partial<Record<keyof typeof UNITS, number>>

/** Measures other mail servers, and Mayfly with its default settings, in turn in each round. The first round warms up. */
export async function beside(
  { plan, beside: binaries, profileDir }: Command,
  say: (line: string) => void,
): Promise<Compared[]> {
  const [postfix, wrk] = [findPostfix(), findWrk()]
  if (postfix === null)
    throw new CannotRunError('smtp-source is missing; install it with: apt-get install postfix')
  if (wrk === null) throw new CannotRunError('wrk is missing; install it with: apt-get install wrk')
  const programs = binaries.map(({ name, binary }) => {
    const other = OTHER_PROGRAMS[name]
    if (other === undefined) {
      throw new CannotRunError(
        `unknown program "${name}"; known are ${Object.keys(OTHER_PROGRAMS).join(', ')}`,
      )
    }
    if (!isExecutable(binary)) throw new CannotRunError(`${binary} is not an executable file`)
    return { title: other.title, start: () => other.start(binary) }
  })
  programs.push({ title: 'Mayfly', start: () => startMayfly(profileDir) })

  const measured: Measured[] = []
  const inTurn = async (isRecorded: boolean, measure: (each: Measured) => Promise<Figures>) => {
    for (const each of measured) {
      const figures = await measure(each)
      if (isRecorded) each.rounds.push(figures)
    }
  }
  try {
    for (const { title, start } of programs) {
      measured.push(new Measured(title, start, await start(), postfix, wrk))
    }
    for (const each of measured) await each.fill()
    for (let round = 0; round <= plan.rounds; round++) {
      say(`starts and reads, round ${round} of ${plan.rounds}`)
      await inTurn(round > 0, (each) => each.startAgain())
      await inTurn(round > 0, (each) => each.read(plan.readingSeconds))
    }
    for (let round = 0; round <= plan.rounds; round++) {
      say(`mail, round ${round} of ${plan.rounds}`)
      await inTurn(round > 0, (each) => each.receive(plan.acceptedMails))
      // The first mails create the files.
      if (round === 0) for (const each of measured) await each.weigh()
    }
    await inTurn(true, (each) => each.weigh())
  } finally {
    await Promise.allSettled(measured.map(({ program }) => program.dispose()))
  }
  return Object.entries(UNITS).map(([name, unit]) => ({
    name,
    unit,
    rounds: Object.fromEntries(
      measured.map((each) => [each.title, each.valuesOf(name as keyof typeof UNITS)]),
    ),
  }))
}

class Measured {
  readonly rounds: Figures[] = []
  private address = ''
  private sent = 0
  private urls: [list: string, message: string, source: string] = ['', '', '']
  private weighed = { mails: 0, bytes: 0 }

  constructor(
    readonly title: string,
    private readonly start: () => Promise<MailProgram>,
    readonly program: MailProgram,
    private readonly postfix: Postfix,
    private readonly wrk: Wrk,
  ) {}

  valuesOf(name: keyof typeof UNITS): number[] {
    return this.rounds.flatMap(({ [name]: value }) => (value === undefined ? [] : [value]))
  }

  /** Creates an inbox for the mail of all rounds, and one with the messages to read. */
  async fill(): Promise<void> {
    const [inbox, listed] = [await this.program.createInbox('many'), await this.program.createInbox('listed')]
    this.address = inbox.address
    await this.send(MAILS_WHILE_READING - LISTED, true)
    await this.send(LISTED, true, listed.address)
    await this.untilSent('visible', () => this.program.visibleMails())
    const { apiKey } = this.program
    const headers = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }
    const list = await (await fetch(listed.listUrl, { headers })).text()
    const id = /"id":"([^"]+)"/i.exec(list)?.[1]
    if (id === undefined) throw new Error(`${this.title} lists no message: ${list.slice(0, 200)}`)
    this.urls = [listed.listUrl, listed.messageUrl(id), listed.sourceUrl(id)]
  }

  /** Starts another process with an empty data folder. */
  async startAgain(): Promise<Figures> {
    const started = performance.now()
    const program = await this.start()
    const seconds = (performance.now() - started) / 1_000
    await program.dispose()
    return { start: seconds }
  }

  async read(seconds: number): Promise<Figures> {
    const { apiKey } = this.program
    const rate = async (url: string) =>
      (await measureReads(this.wrk, { url, apiKey, connections: READERS, seconds })).perSecond
    const [list, message, source] = this.urls
    return {
      'list of 25 messages': await rate(list),
      'one message': await rate(message),
      'source of a message': await rate(source),
    }
  }

  async receive(mails: number): Promise<Figures> {
    const { program } = this
    let [kept, visible] = [NaN, NaN]
    const cpu = await cpuMs(program.pids, async () => {
      const started = performance.now()
      kept = await this.send(mails, true)
      await this.untilSent('visible', () => program.visibleMails())
      visible = mails / ((performance.now() - started) / 1_000)
      await this.untilSent('counted', () => program.countedMails())
    })
    const single = await this.send(mails, false)
    await this.untilSent('counted', () => program.countedMails())
    return {
      'accepted, kept connections': kept,
      'accepted, a connection per mail': single,
      'visible, sustained': visible,
      'CPU per mail until visible and counted': (cpu * 1_000) / mails,
    }
  }

  /** Memory, and the growth of the data folder since the last call. */
  async weigh(): Promise<Figures> {
    const { pids, dataDir } = this.program
    const memory = await samplesOf(() => pids.reduce((sum, pid) => sum + (anonymousBytes(pid) ?? NaN), 0))
    const { sent, weighed } = this
    this.weighed = { mails: sent, bytes: await diskBytes(dataDir) }
    return {
      'resident memory without files': Math.min(...memory) / MIB,
      'disk space per mail': (this.weighed.bytes - weighed.bytes) / (sent - weighed.mails) / 1_024,
    }
  }

  private async send(mails: number, isKept: boolean, to = this.address): Promise<number> {
    const rate = await sourceRate(this.postfix, { port: this.program.smtpPort, to, mails, isKept })
    this.sent += mails
    return rate
  }

  private async untilSent(what: string, countMails: () => Promise<number>): Promise<void> {
    const isReached = async () => (await countMails()) >= this.sent
    await until(`${this.sent} mails of ${this.title} to be ${what}`, isReached, SHOWN_WITHIN_MS)
  }
}

/** Allocated blocks: files of databases have holes. */
async function diskBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true })
  const blocks = entries.map(async (entry) => (await stat(join(folder, entry))).blocks)
  return (await Promise.all(blocks)).reduce((sum, count) => sum + count, 0) * 512
}
