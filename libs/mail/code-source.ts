import { bareUrls } from './bare-urls.js'
import { findCandidates, plainCharacters, type Candidate } from './code-candidates.js'
import { codeMentionBehind, isAboutSigningIn, isPast, readBefore, type Mention } from './code-context.js'
import { isMeasure, isNumbered, isYear } from './code-measures.js'
import { quotedRanges } from './code-quotes.js'

/** What the words around a candidate say of it. */
export interface Surroundings {
  /** That it is something else. */
  isRefused: boolean
  /** Just of this that it is a code. */
  isDirect: boolean
  /** Nothing else stands on its line. */
  isAlone: boolean
  /** Whether the words are about codes and nothing else. */
  isStrong: boolean
  /** 0 where they say nothing. */
  confidence: number
}

/** Stands in for what is no text to search; neither letter nor digit. */
const blank = '\ue000'
/** Lines of at least so many characters may have been broken by the mail program that sent them. */
const longLine = 50

/** One of the texts in which a code may stand. */
export class CodeSource {
  readonly candidates: Candidate[]
  private readonly plain: string
  private lowerCased: string | null = null

  constructor(
    readonly original: string,
    isAnswer: boolean,
  ) {
    this.plain = withoutForeignText(plainCharacters(original), isAnswer)
    this.candidates = findCandidates(this.plain)
  }

  get lower(): string {
    // İ grows by one when lower-cased; positions have to stay.
    return (this.lowerCased ??= this.plain.replaceAll('İ', 'i').toLowerCase())
  }

  surroundingsOf(candidate: Candidate): Surroundings {
    const { start, end } = candidate
    const lineStart = this.lower.lastIndexOf('\n', start - 1) + 1
    const nextBreak = this.lower.indexOf('\n', end)
    const lineEnd = nextBreak === -1 ? this.lower.length : nextBreak
    const isAlone =
      isDecoration(this.lower.slice(Math.max(lineStart, start - 20), start)) &&
      isDecoration(this.lower.slice(end, Math.min(lineEnd, end + 20))) &&
      start - lineStart < 20 &&
      lineEnd - end < 20
    const said = (mention: Mention | null, isDirect: boolean, ifStrong: number, ifWeak: number) => {
      const isStrong = mention?.kind === 'strong'
      const confidence = mention === null ? 0 : isStrong ? ifStrong : ifWeak
      return { isRefused: mention?.kind === 'other', isDirect, isAlone, isStrong, confidence }
    }

    if (isMeasure(this.lower, candidate) || isNumbered(this.plain, candidate) || this.isPast(start, end)) {
      return { isRefused: true, isDirect: false, isAlone, isStrong: false, confidence: 0 }
    }
    const sentenceStart = this.unwrappedStart(lineStart, start)
    const before = this.lower.slice(sentenceStart, start)
    const reading = readBefore(before)
    if (reading !== null) {
      const { mention, isDisputed } = reading
      if (mention.kind === 'other') return said(mention, false, 0, 0)
      const gap = before.slice(mention.end)
      const sentenceEnd = lastSentenceEnd(gap)
      if (sentenceEnd === 0) {
        const isClose = gap.length <= (mention.kind === 'strong' ? 60 : 40)
        const isDirect = isClose && !isDisputed && !/\d/.test(gap)
        return isDirect ? said(mention, true, 0.95, 0.88) : said(mention, false, 0.82, 0.6)
      }
      const rest = gap.slice(sentenceEnd)
      if (isDecoration(rest)) return said(mention, false, 0.82, 0.6)
      if (rest.length <= 40 && !isDisputed) return said(mention, false, 0.55, 0.25)
    }

    const behind = codeMentionBehind(this.lower.slice(end, Math.min(lineEnd, end + 60)))
    if (behind !== null && (behind.kind === 'strong' || isBeginning(before))) {
      return said(behind, true, 0.94, 0.87)
    }
    const isPlain = candidate.form === 'digits' && !isYear(candidate.value)
    if (isPlain && isBeginning(before) && isAboutSigningIn(this.clauseBehind(end, lineEnd))) {
      // "Enter 493201 to sign in": what it is for is told, what it is goes without saying.
      return { isRefused: false, isDirect: true, isAlone, isStrong: false, confidence: 0.7 }
    }
    return this.onOtherLines(lineStart, lineEnd, { isAlone, isFirst: isBeginning(before) }, said)
  }

  private onOtherLines(
    lineStart: number,
    lineEnd: number,
    { isAlone, isFirst }: { isAlone: boolean; isFirst: boolean },
    said: (mention: Mention | null, isDirect: boolean, ifStrong: number, ifWeak: number) => Surroundings,
  ): Surroundings {
    const above = this.lower.slice(Math.max(0, lineStart - 200), lineStart)
    const reading = readBefore(above)
    if (reading !== null) {
      const { mention } = reading
      if (mention.kind === 'other') {
        if (above.slice(mention.end).trim().length < 4) return said(mention, false, 0, 0)
      } else if (isAlone) return said(mention, false, 0.93, 0.88)
      else if (isFirst) return said(mention, false, 0.55, 0)
    }
    const below = isAlone ? codeMentionBehind(this.lower.slice(lineEnd, lineEnd + 120)) : null
    return said(below, false, 0.75, 0.7)
  }

  private clauseBehind(end: number, lineEnd: number): string {
    const rest = this.lower.slice(end, Math.min(lineEnd, end + 60))
    const stop = rest.search(/[.,!?，。！？;；|(]|\d/)
    return stop === -1 ? rest : rest.slice(0, stop)
  }

  /** Where what is said before a number begins: on its own line, or on the one before if that was only wrapped. */
  private unwrappedStart(lineStart: number, start: number): number {
    const earliest = Math.max(0, start - 160)
    if (lineStart <= earliest) return earliest
    const previousStart = this.lower.lastIndexOf('\n', lineStart - 2) + 1
    const isWrapped =
      lineStart - previousStart > longLine &&
      !/[.:!?。：！？]\s{0,3}$/.test(this.lower.slice(lineStart - 4, lineStart))
    return isWrapped ? Math.max(previousStart, earliest) : lineStart
  }

  /** Whether its sentence says that its time is over. */
  private isPast(start: number, end: number): boolean {
    const before = this.lower.slice(Math.max(0, start - 100), start)
    const behind = this.lower.slice(end, end + 120)
    const stop = behind.search(/[.!?。！？](?:\s|$)/)
    return (
      isPast(before.slice(lastSentenceEnd(before))) || isPast(stop === -1 ? behind : behind.slice(0, stop))
    )
  }
}

/** Blanks out addresses, and what the mail quotes: no code stands there, and their words are none of its own. */
function withoutForeignText(text: string, isAnswer: boolean): string {
  const ranges: { start: number; end: number }[] = [...quotedRanges(text, isAnswer)]
  if (text.includes('://')) ranges.push(...bareUrls(text))
  if (text.includes('www.')) {
    for (const match of text.matchAll(/www\.[^\s<>"]+/gi)) {
      ranges.push({ start: match.index, end: match.index + match[0].length })
    }
  }
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) ranges.push(mailbox(text, at))
  if (ranges.length === 0) return text
  ranges.sort((one, other) => one.start - other.start)
  const pieces: string[] = []
  let done = 0
  for (const { start, end } of ranges) {
    if (end <= done) continue
    const from = Math.max(start, done)
    pieces.push(text.slice(done, from), blank.repeat(end - from))
    done = end
  }
  pieces.push(text.slice(done))
  return pieces.join('')
}

const maxMailboxSide = 64

function mailbox(text: string, at: number): { start: number; end: number } {
  let start = at
  while (start > 0 && at - start < maxMailboxSide && isMailboxCharacter(text.charCodeAt(start - 1))) start--
  let end = at + 1
  while (end - at < maxMailboxSide && isMailboxCharacter(text.charCodeAt(end))) end++
  return start === at ? { start: at, end: at } : { start, end }
}

/** Letters, digits, and `.`, `+`, `-`, `_`. */
function isMailboxCharacter(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    code === 0x2e ||
    code === 0x2b ||
    code === 0x2d ||
    code === 0x5f
  )
}

/** Just past the last end of a sentence; 0 for none. */
function lastSentenceEnd(text: string): number {
  let last = 0
  for (const match of text.matchAll(/[.!?](?=\s)|[。！？]/g)) last = match.index + 1
  return last
}

function isDecoration(text: string): boolean {
  return !/[\p{L}\p{N}]/u.test(text)
}

/** Whether a number behind this begins its sentence, or follows its first word: "Use 493201 as …". */
function isBeginning(before: string): boolean {
  const sentence = before.slice(lastSentenceEnd(before))
  const clause = sentence.slice(sentence.search(/[^:：,，—–]{0,200}$/)).trim()
  return isDecoration(clause) || /^[^\p{L}\p{N}]{0,3}\p{L}{2,12}$/u.test(clause)
}
