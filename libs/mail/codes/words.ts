import * as codeWords from './code-words.js'
import { INSTRUCTION_WORDS } from './instructions.js'
import * as numberWords from './number-words.js'
import { words } from './vocabulary.js'

/*
 * Distinguishes codes that have only letters ("KWQM") from words ("VERIFY") by the pairs of letters that are frequent in
 * words.
 */

/** Words of buttons and headings, and words after "your code is", that other lists lack. */
const OTHER_WORDS = words(`
  yours, accepted, download, delete, decline, yes, details, settings, news, deal, install, update, upgrade, learn,
  watch, hidden, none, null, empty, hinweis, achtung, wichtig, important, notice, warning, icloud, iphone,
  android, annuler, copier, dalej, kirjaudu, pozdrawiamy, weiter, bestellen, ikea, nasa, acme, sony, lidl, aldi,
  klarna, uber, airbnb, openai, dropbox, adobe, asus, audi, nike, ebay, tiktok, spotify, stripe, shopify, slack,
  telegram, expedia, alpha, click, view, help, hello, next, back, skip, stop, info, note, from, team, dear, below,
  above, email, mail, text, thanks, thank, support, github, gitlab, youtube, whatsapp, facebook, google,
  microsoft, amazon, netflix, twitter, shown, ready, wrong, required, geheim, folgt, oben, hier, joint, correcto,
  abaixo, abajo, aqui, hieronder, hemlig, gotowy, ialah, adalah, this, that, will, only, once, also, always,
  public, enough, unknown, known, fixed, early, right, useful, typed, exactly, true, real, void, blank, lost, weak,
  last, full, saved, locked, issued, jetzt, leer, echt, wahr, nouveau, faux, exact, vrai, nuevo, nueva, nuovo, nuova,
  vuoto, vazio, novo, velho, nieuw, nieuwe, altijd, bijgevoegd, leeg, dobry, tajny, poufny, nowy, upload, block,
  dashboard, shop, leave, reload, hide, edit, refund, book, apply, lego, tesla, otto, fnac, disney, toyota, zara
`)

/** Whole words and stems in Latin letters. */
const LATIN_WORDS = new Set(
  [...Object.values(codeWords), ...Object.values(numberWords), INSTRUCTION_WORDS, OTHER_WORDS].flatMap(
    (list) => list.flatMap((word) => word.match(/(?<!\p{L})[a-z]{3,15}(?!\p{L})/gu) ?? []),
  ),
)

/** Whether letters are written as words usually are: "word", "Word", "CamelCase". */
export function isUsualCase(letters: string): boolean {
  return /^[A-Z]?[a-z]+$|^[A-Z][a-z]{2,}[A-Z][a-z]{2,}$/.test(letters)
}

/**
 * Whether ASCII letters have the form of a code, and do not look like a word of a European language. The bounds are chosen
 * so that about 1 % of random letters of any length look like a word, 4 % of those written as words usually are, and
 * 20 % if these are only four, because so many words have four letters.
 */
export function isLetterCode(letters: string): boolean {
  if (letters.length < 4 || letters.length > 12) return false
  const isUsual = isUsualCase(letters)
  const lower = letters.toLowerCase()
  if (LATIN_WORDS.has(lower)) return false
  const maxBits = isUsual ? 7.6 - 0.9 * lower.length : 7.8 - 0.45 * lower.length
  return wordBits(lower) <= (isUsual && lower.length === 4 ? 0 : maxBits)
}

/** The letters, and the start or end of a word. */
const LETTERS = 27

/** For each letter (1 to 26), or the start of a word (0), how often each letter, or the end, follows it. */
const FOLLOWING = Array.from({ length: LETTERS }, () => new Array<number>(LETTERS).fill(0.5))
for (const word of LATIN_WORDS) {
  for (let at = 0; at <= word.length; at++) {
    const counts = FOLLOWING[letterAt(word, at - 1)]
    if (counts !== undefined) counts[letterAt(word, at)] = (counts[letterAt(word, at)] ?? 0) + 1
  }
}
/** How much likelier each pair is in a word than at random, in bits. */
const PAIR_BITS = Float64Array.from(
  FOLLOWING.flatMap((counts) => {
    const total = counts.reduce((sum, count) => sum + count)
    return counts.map((count) => Math.log2((count / total) * 26))
  }),
)

/** How much likelier these small letters are in a word than at random, in bits. */
function wordBits(lower: string): number {
  let bits = 0
  let first = 0
  for (let at = 0; at <= lower.length; at++) {
    const second = letterAt(lower, at)
    bits += PAIR_BITS[first * LETTERS + second] ?? 0
    first = second
  }
  return bits
}

/** The number of a small letter; 0 before and after the word. */
function letterAt(lower: string, at: number): number {
  return at >= 0 && at < lower.length ? lower.charCodeAt(at) - 0x60 : 0
}
