import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { Link, OneTimeCode } from '#libs/mail/message.js'
import { parseMail } from '#libs/mail/parse.js'

/** Where the mails lie, beside `labels.yaml`, which says of each what is to be found in it. */
const folder = 'libs/mail/labelled'

/** From this confidence on a code is taken to be one; docs/links-and-codes.md tells users so. */
export const likelyConfidence = 0.5

export interface Label {
  /** `tuned` mails were looked at while the rules were made, `held-out` ones only afterwards; `short` ones are of a few lines. */
  set: 'tuned' | 'held-out' | 'short'
  /** Values of the one-time codes, in any order. */
  codes: string[]
  /** Address and text of each link, in order. */
  links: [string, string | null][]
}

/** What is to be found in a mail, and what was found. */
export interface LabelledMail {
  name: string
  label: Label
  codes: OneTimeCode[]
  links: Link[]
}

export interface Score {
  precision: number
  recall: number
}

export async function readLabelledMails(): Promise<LabelledMail[]> {
  const labels = parse(readFileSync(`${folder}/labels.yaml`, 'utf8')) as Record<string, Label>
  const envelope = {
    mailFrom: 'bounce@app.example',
    rcptTo: 'someone@mayfly.test',
    helo: 'mx.app.example',
    remoteAddress: '192.0.2.1',
    tls: null,
  }
  const mails: LabelledMail[] = []
  for (const [name, label] of Object.entries(labels)) {
    const { codes, links } = await parseMail(sourceOf(name), envelope)
    mails.push({ name, label, codes, links })
  }
  return mails
}

export function sourceOf(name: string): Buffer {
  return readFileSync(`${folder}/${name}.eml`)
}

/** The one code that a test would type: none if the best is not likely enough. */
export function bestCode({ codes }: LabelledMail): string | null {
  const [best] = codes
  return best !== undefined && best.confidence >= likelyConfidence ? best.value : null
}

/** Of the mails with codes, how many give one of theirs as the best; and of those that give any, how many rightly. */
export function scoreBestCodes(mails: readonly LabelledMail[]): Score {
  const given = mails.filter((mail) => bestCode(mail) !== null)
  const right = given.filter((mail) => mail.label.codes.includes(bestCode(mail) ?? ''))
  const withCodes = mails.filter(({ label }) => label.codes.length > 0)
  return { precision: right.length / given.length, recall: right.length / withCodes.length }
}

/** Of all codes listed, whatever their confidence, and of all that should be. */
export function scoreAllCodes(mails: readonly LabelledMail[]): Score {
  return score(
    mails,
    ({ codes }) => codes.map(({ value }) => value),
    ({ codes }) => codes,
  )
}

/** Of all links; one with another text is another link. */
export function scoreLinks(mails: readonly LabelledMail[]): Score {
  return score(
    mails,
    ({ links }) => links.map(({ href, text }) => JSON.stringify([href, text])),
    ({ links }) => links.map((link) => JSON.stringify(link)),
  )
}

function score(
  mails: readonly LabelledMail[],
  found: (mail: LabelledMail) => string[],
  expected: (label: Label) => string[],
): Score {
  let right = 0
  let given = 0
  let wanted = 0
  for (const mail of mails) {
    const labelled = expected(mail.label)
    const listed = found(mail)
    right += listed.filter((each) => labelled.includes(each)).length
    given += listed.length
    wanted += labelled.length
  }
  return { precision: right / given, recall: right / wanted }
}
