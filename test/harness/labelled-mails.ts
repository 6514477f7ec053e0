import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { Link, OneTimeCode } from '#libs/mail/message.js'
import { parseMail } from '#libs/mail/parse.js'
import { anyEnvelope } from './envelope.js'

/** Folder of the mails and of `labels.yaml`, which has the expected codes and links of each. */
const folder = 'libs/mail/labelled'

/** Codes with at least this confidence count as found, as docs/links-and-codes.md recommends. */
export const likelyConfidence = 0.5

export interface Label {
  /** The rules were tuned on `tuned` mails, and not on `held-out` ones. `short` mails have a few lines. */
  set: 'tuned' | 'held-out' | 'short'
  /** Values of the one-time codes, in any order. */
  codes: string[]
  /** Address and text of each link, in order. */
  links: [string, string | null][]
}

/** The expected codes and links of a mail, and those that were found. */
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

export function readLabelledMails(): LabelledMail[] {
  const labels = parse(readFileSync(`${folder}/labels.yaml`, 'utf8')) as Record<string, Label>
  const mails: LabelledMail[] = []
  for (const [name, label] of Object.entries(labels)) {
    const { codes, links } = parseMail(sourceOf(name), anyEnvelope)
    mails.push({ name, label, codes, links })
  }
  return mails
}

export function sourceOf(name: string): Buffer {
  return readFileSync(`${folder}/${name}.eml`)
}

/** The code that a test would enter: the best one, or null if its confidence is too low. */
export function bestCode({ codes }: LabelledMail): string | null {
  const [best] = codes
  return best !== undefined && best.confidence >= likelyConfidence ? best.value : null
}

/** Recall: the share of mails with codes whose best code is right. Precision: the share of best codes that are right. */
export function scoreBestCodes(mails: readonly LabelledMail[]): Score {
  const given = mails.filter((mail) => bestCode(mail) !== null)
  const right = given.filter((mail) => mail.label.codes.includes(bestCode(mail) ?? ''))
  const withCodes = mails.filter(({ label }) => label.codes.length > 0)
  return { precision: right.length / given.length, recall: right.length / withCodes.length }
}

/** Precision and recall of all listed codes, with any confidence. */
export function scoreAllCodes(mails: readonly LabelledMail[]): Score {
  return score(
    mails,
    ({ codes }) => codes.map(({ value }) => value),
    ({ codes }) => codes,
  )
}

/** Precision and recall of all links. A link with a different text counts as a different link. */
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
