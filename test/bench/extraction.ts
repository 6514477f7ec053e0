import { findCodes } from '#libs/mail/codes/codes.js'
import { findLinks } from '#libs/mail/links/links.js'
import { parseMail } from '#libs/mail/parse.js'
import { readHtml } from '#libs/mail/links/visible-text.js'
import { codeGrids, wrongMails } from '#test/harness/code-grids.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import {
  readLabelledMails,
  scoreAllCodes,
  scoreBestCodes,
  scoreLinks,
  type Score,
} from '#test/harness/labelled-mails.js'
import type { Figure } from './figure.js'
import { hostileOpenings, hostilePieces } from './hostile-pieces.js'
import { realisticMail } from './realistic-mail.js'
import type { SectionContext } from './section.js'

const leastShare = 0.97
const megabytes = 5
const parsedMails = 1_000
const traps = [...hostilePieces.map((piece) => ['', piece] as const), ...hostileOpenings]

/** Precision and recall of links and codes in the labelled mails, and the speed in ordinary and in hostile ones. */
export function extraction({ plan, say }: SectionContext): Figure[] {
  const mails = readLabelledMails()
  const heldOut = mails.filter(({ label }) => label.set === 'held-out')
  const short = mails.filter(({ label }) => label.set === 'short')
  const rates: number[] = []
  for (let round = 0; round < plan.rounds; round++) rates.push(parseRate())
  const slowest = slowestPiece(say)
  return [
    ...shares('codes, the best of each mail', scoreBestCodes(mails), `Of ${mails.length} labelled mails.`),
    ...shares('codes, all that are listed', scoreAllCodes(mails)),
    ...shares('links, with their texts', scoreLinks(mails)),
    ...shares('codes, the best, held-out mails', scoreBestCodes(heldOut), `Of ${heldOut.length} mails.`),
    ...shares('codes, the best, short mails', scoreBestCodes(short), `Of ${short.length} mails.`),
    ...codeGrids().map((grid) => ({
      name: `generated mails, ${grid.name}`,
      unit: '',
      rounds: [1 - wrongMails(grid).length / grid.mails.length],
      target: { atLeast: grid.minShare },
      note: `Of ${grid.mails.length} mails.`,
    })),
    {
      name: 'parsed, one thread',
      unit: 'mails/s',
      rounds: rates,
      note: 'The same mails as for visible, sustained.',
    },
    {
      name: 'slowest hostile text or HTML',
      unit: 'ms/MB',
      rounds: [slowest.milliseconds / megabytes],
      note: `${JSON.stringify(slowest.piece)} for ${megabytes} MB, of ${traps.length} such.`,
    },
  ]
}

function shares(name: string, { precision, recall }: Score, note?: string): Figure[] {
  const target = { atLeast: leastShare }
  const noted = note === undefined ? {} : { note }
  return [
    { name: `${name}: precision`, unit: '', rounds: [precision], target, ...noted },
    { name: `${name}: recall`, unit: '', rounds: [recall], target },
  ]
}

function parseRate(): number {
  const sources = Array.from({ length: parsedMails }, (_, number) =>
    Buffer.from(realisticMail(number, 'someone@mayfly.test')),
  )
  const started = performance.now()
  for (const source of sources) parseMail(source, anyEnvelope)
  return parsedMails / ((performance.now() - started) / 1000)
}

function slowestPiece(say: (line: string) => void): { piece: string; milliseconds: number } {
  let slowest = { piece: '', milliseconds: 0 }
  for (const [opening, piece] of traps) {
    const text = opening + piece.repeat((megabytes * 1_000_000) / Buffer.byteLength(piece))
    const started = performance.now()
    const html = readHtml(text)
    findLinks(html, text, 1_000)
    findCodes(text, text, html.text, 20)
    const milliseconds = performance.now() - started
    if (milliseconds > slowest.milliseconds) slowest = { piece: opening + piece, milliseconds }
    if (milliseconds > 1_000) say(`${JSON.stringify(opening + piece)} took ${milliseconds.toFixed(0)} ms`)
  }
  return slowest
}
