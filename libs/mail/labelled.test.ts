import { readdirSync } from 'node:fs'
import {
  bestCode,
  readLabelledMails,
  scoreAllCodes,
  scoreBestCodes,
  scoreLinks,
  type Score,
} from '#test/harness/labelled-mails.js'

const minScore = 0.97

const all = readLabelledMails()

test('every mail has a label, and about half of them have no code', () => {
  const files = readdirSync('libs/mail/labelled').filter((name) => name.endsWith('.eml'))
  expect(all.map(({ name }) => `${name}.eml`).sort()).toEqual(files.sort())
  expect(all.length).toBeGreaterThanOrEqual(873)
  const share = all.filter(({ label }) => label.codes.length === 0).length / all.length
  expect(share).toBeGreaterThan(0.4)
  expect(share).toBeLessThan(0.6)
})

describe.each(['whole', 'short'])('in the %s mails', (length) => {
  const mails = all.filter(({ label }) => (label.set === 'short') === (length === 'short'))

  test('the most likely code is the right one', () => {
    const wrong = mails.flatMap((mail) => {
      const { name, label } = mail
      const best = bestCode(mail)
      const isRight = best === null ? label.codes.length === 0 : label.codes.includes(best)
      return isRight ? [] : [`${name}: ${String(best)} instead of ${label.codes.join(' or ') || 'none'}`]
    })
    expectScore(scoreBestCodes(mails), wrong)
  })

  test('all codes and no others are listed', () => {
    const wrong = mails.flatMap(({ name, label, codes }) => {
      const listed = codes.map(({ value }) => value)
      return sameMembers(listed, label.codes)
        ? []
        : [`${name}: [${listed.join(', ')}] instead of [${label.codes.join(', ')}]`]
    })
    expectScore(scoreAllCodes(mails), wrong)
  })

  test('all links are listed, in order, with their texts', () => {
    const wrong = mails.flatMap(({ name, label, links }) => {
      const listed = JSON.stringify(links.map(({ href, text }) => [href, text]))
      const labelled = JSON.stringify(label.links)
      return listed === labelled ? [] : [`${name}: ${listed} instead of ${labelled}`]
    })
    expectScore(scoreLinks(mails), wrong)
  })
})

/** Fails with the names of the mails with wrong results. */
function expectScore({ precision, recall }: Score, wrong: readonly string[]): void {
  const message = `precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)}\n${wrong.join('\n')}`
  if (!(precision >= minScore && recall >= minScore)) throw new Error(message)
}

function sameMembers(one: readonly string[], other: readonly string[]): boolean {
  return JSON.stringify([...one].sort()) === JSON.stringify([...other].sort())
}
