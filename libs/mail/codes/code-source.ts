import { findCandidates, type Candidate } from './code-candidates.js'
import { isBeginning, isDecoration, lastSentenceEnd } from './code-clauses.js'
import {
  codeMentionBehind,
  isAboutApproval,
  isAboutSigningIn,
  isPast,
  readBefore,
  type Mention,
} from './code-context.js'
import { isMeasure, isNumbered, isYear } from './code-measures.js'
import { instructionAround, tellsToEnter } from './code-instructions.js'
import { withoutForeignText } from './code-foreign-text.js'
import { isListedBehind, isOrdinal } from './code-lists.js'
import { plainCharacters } from './plain-characters.js'

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
  /** Whether it is a code only if the mail is about a parcel or a ride. */
  isForHandover?: boolean
  /** 0 if they say nothing. */
  confidence: number
}

/** The line that a candidate stands on. */
interface Line {
  start: number
  end: number
  /** Whether nothing else stands there. */
  isAlone: boolean
}

/** Lines of at least so many characters may have been broken by the mail program that sent them. */
const longLine = 50

/** One of the texts in which a code may stand. */
export class CodeSource {
  readonly candidates: Candidate[]
  private readonly plain: string
  private latest: { candidate: Candidate; surroundings: Surroundings } | null = null
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

  /** To be asked of one candidate after the other: of a list ("Your backup codes: …") what is said above holds for all. */
  surroundingsOf(candidate: Candidate): Surroundings {
    const { latest } = this
    const isNext = latest !== null && isListedBehind(this.lower, latest.candidate, candidate)
    const surroundings =
      isNext && latest.surroundings.isStrong ? latest.surroundings : this.readAround(candidate)
    this.latest = { candidate, surroundings }
    return surroundings
  }

  private readAround(candidate: Candidate): Surroundings {
    const { start, end } = candidate
    const line = this.lineOf(candidate)
    if (isMeasure(this.lower, candidate) || isNumbered(this.plain, candidate) || this.isPast(start, end)) {
      return { isRefused: true, isDirect: false, isAlone: line.isAlone, isStrong: false, confidence: 0 }
    }
    const before = this.lower.slice(this.unwrappedStart(line.start, start), start)
    return (
      this.saidBefore(candidate, before, line) ??
      this.saidBehind(candidate, before, line) ??
      this.onOtherLines(line, isBeginning(before))
    )
  }

  private lineOf({ start, end }: Candidate): Line {
    const lineStart = this.lower.lastIndexOf('\n', start - 1) + 1
    const nextBreak = this.lower.indexOf('\n', end)
    const lineEnd = nextBreak === -1 ? this.lower.length : nextBreak
    const ahead = this.lower.slice(Math.max(lineStart, start - 20), start)
    const isAlone =
      (isDecoration(ahead) || isOrdinal(ahead)) &&
      isDecoration(this.lower.slice(end, Math.min(lineEnd, end + 20))) &&
      start - lineStart < 20 &&
      lineEnd - end < 20
    return { start: lineStart, end: lineEnd, isAlone }
  }

  private saidBefore(candidate: Candidate, before: string, { isAlone }: Line): Surroundings | null {
    const reading = readBefore(before)
    if (reading === null) return null
    const { mention, isDisputed } = reading
    if (mention.kind === 'other') {
      const told = this.instructed(candidate, before, mention.end)
      if (told !== null && told.confidence >= 0.7) return { ...told, isAlone }
      return said(mention, { isAlone, isDirect: false, ifStrong: 0, ifWeak: 0 })
    }
    const gap = before.slice(mention.end)
    const sentenceEnd = lastSentenceEnd(gap)
    const isClose = gap.length <= (mention.kind === 'strong' ? 60 : 40)
    if (sentenceEnd === 0 && isClose && !isDisputed && !/\d/.test(gap)) {
      return said(mention, { isAlone, isDirect: true, ifStrong: 0.95, ifWeak: 0.88 })
    }
    const rest = gap.slice(sentenceEnd)
    if (sentenceEnd === 0 || isDecoration(rest)) {
      return said(mention, { isAlone, isDirect: false, ifStrong: 0.82, ifWeak: 0.6 })
    }
    if (rest.length > 40 || isDisputed) return null
    const told = this.instructed(candidate, before)
    if (told !== null) return { ...told, isAlone }
    return said(mention, { isAlone, isDirect: false, ifStrong: 0.55, ifWeak: 0.25 })
  }

  private saidBehind(candidate: Candidate, before: string, line: Line): Surroundings | null {
    const { end } = candidate
    const { isAlone } = line
    const behind = codeMentionBehind(this.lower.slice(end, Math.min(line.end, end + 60)))
    if (behind !== null && (behind.kind === 'strong' || isBeginning(before))) {
      return said(behind, { isAlone, isDirect: true, ifStrong: 0.94, ifWeak: 0.87 })
    }
    const isPlain = candidate.form === 'digits' && !isYear(candidate.value)
    if (isPlain && isBeginning(before) && isAboutSigningIn(this.clauseBehind(end, line.end))) {
      // "Enter 493201 to sign in": what it is for is told, what it is goes without saying.
      return { isRefused: false, isDirect: true, isAlone, isStrong: false, confidence: 0.7 }
    }
    const told = this.instructed(candidate, before)
    return told === null ? null : { ...told, isAlone }
  }

  /** What a sentence says of a number in it by telling what to do with it; `after` what names another number. */
  private instructed(candidate: Candidate, before: string, after = 0): Omit<Surroundings, 'isAlone'> | null {
    const isPlain = candidate.form === 'digits' && !isYear(candidate.value)
    if (!isPlain && candidate.form !== 'capitals-and-digits') return null
    const start = lastSentenceEnd(before)
    const behind = this.lower.slice(candidate.end, candidate.end + 100)
    const instruction = instructionAround(before.slice(start), behind, Math.max(0, after - start))
    if (instruction === null || !(isPlain || instruction.isForPurpose)) return null
    const { kind, isForPurpose } = instruction
    return {
      isRefused: false,
      isDirect: true,
      isStrong: false,
      isForHandover: kind === 'handing' && !isForPurpose,
      confidence: isForPurpose ? 0.75 : 0.65,
    }
  }

  private onOtherLines({ start, end, isAlone }: Line, isFirst: boolean): Surroundings {
    const above = this.lower.slice(Math.max(0, start - 200), start)
    const reading = readBefore(above)
    if (reading !== null) {
      const { mention } = reading
      if (mention.kind === 'other') {
        const isNext = above.slice(mention.end).trim().length < 4
        if (isNext) return said(mention, { isAlone, isDirect: false, ifStrong: 0, ifWeak: 0 })
      } else if (isAlone) return said(mention, { isAlone, isDirect: false, ifStrong: 0.93, ifWeak: 0.88 })
      else if (isFirst) return said(mention, { isAlone, isDirect: false, ifStrong: 0.55, ifWeak: 0 })
    }
    if (!isAlone) return said(null, { isAlone, isDirect: false, ifStrong: 0, ifWeak: 0 })
    const behind = this.lower.slice(end, end + 120)
    const below = codeMentionBehind(behind)
    if (below === null && (tellsToEnter(above.slice(-120)) || tellsToEnter(behind))) {
      return { isRefused: false, isDirect: false, isAlone, isStrong: false, confidence: 0.65 }
    }
    return said(below, { isAlone, isDirect: false, ifStrong: 0.75, ifWeak: 0.7 })
  }

  /** Whether it is named as a bank's approval of a payment. */
  isOfApproval({ start }: Candidate): boolean {
    return isAboutApproval(this.lower.slice(Math.max(0, start - 60), start))
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

interface Stand extends Pick<Surroundings, 'isAlone' | 'isDirect'> {
  /** The confidence that a strong mention deserves there, and a weak one. */
  ifStrong: number
  ifWeak: number
}

function said(mention: Mention | null, { isAlone, isDirect, ifStrong, ifWeak }: Stand): Surroundings {
  const isStrong = mention?.kind === 'strong'
  const confidence = mention === null ? 0 : isStrong ? ifStrong : ifWeak
  return { isRefused: mention?.kind === 'other', isDirect, isAlone, isStrong, confidence }
}
