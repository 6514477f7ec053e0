import { setImmediate as nextTurn } from 'node:timers/promises'

/*
 * How texts are compared with what a filter or a search wants: as a reader sees them.
 */

const ASCII = /^[\0-\x7f]*$/
const WHITE_SPACE = /[\s\x85][\s\x85\p{Default_Ignorable_Code_Point}]*/gu
const INVISIBLE = /\p{Default_Ignorable_Code_Point}+/gu
/** Reordering the marks on one letter takes quadratic time, so a run of them is split (UAX #15, section 13). */
const LONG_RUN_OF_MARKS = /\p{M}{30}/gu
const SPLIT = '$&\u034f'

/**
 * A text as it is compared: in NFC, with one space for any white space, without invisible characters such as soft
 * hyphens, and with full case folding (ß is ss). Two folds differ from Unicode's: ı is i, and ς is σ also within a word.
 */
export function comparable(text: string): string {
  if (ASCII.test(text)) return text.replace(WHITE_SPACE, ' ').toLowerCase()
  return (
    text
      .replace(LONG_RUN_OF_MARKS, SPLIT)
      .normalize('NFC')
      // The capital ẞ becomes ß, which becomes SS, which becomes ss.
      .toLowerCase()
      .toUpperCase()
      .toLowerCase()
      .replaceAll('ς', 'σ')
      .normalize('NFC')
      .replace(WHITE_SPACE, ' ')
      .replace(INVISIBLE, '')
  )
}

/** UTF-16 code units that are compared at once, before other requests run. */
const PIECE = 64 * 1024
/** A piece may be this much longer, so that it ends before a letter or digit that never combines with the one before. */
const MAX_EXTRA = 64
const INDEPENDENT = /(?![\u1160-\u11ff])[\p{L}\p{N}]/u

/**
 * The wanted texts that none of the texts contains. Each piece is passed to `prepare` once. `wanted` must have been prepared
 * with the same function.
 */
export async function missingTexts(
  wanted: Iterable<string>,
  texts: Iterable<string | null>,
  prepare: (text: string) => string = comparable,
): Promise<Set<string>> {
  const missing = new Set(wanted)
  const overlap = Math.max(...Array.from(missing, ({ length }) => length), 1) - 1
  for (const text of texts) {
    if (missing.size === 0) break
    if (text === null) continue
    let end = ''
    for await (const piece of piecesOf(text)) {
      const searched = end + prepare(piece)
      for (const each of missing) if (searched.includes(each)) missing.delete(each)
      if (missing.size === 0) break
      end = searched.slice(Math.max(searched.length - overlap, 0))
    }
  }
  return missing
}

async function* piecesOf(text: string): AsyncGenerator<string> {
  let at = 0
  do {
    if (at > 0) await nextTurn()
    const end = endOfPiece(text, at + PIECE)
    yield text.slice(at, end)
    at = end
  } while (at < text.length)
}

function endOfPiece(text: string, earliest: number): number {
  const found = INDEPENDENT.exec(text.slice(earliest, earliest + MAX_EXTRA))
  return Math.min(earliest + (found?.index ?? MAX_EXTRA), text.length)
}
