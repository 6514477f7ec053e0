const replySubject =
  /^\s{0,9}(?:re|aw|antw|sv|vs|odp|ynt|res|rif|ref|ha|回复|回覆|答复|відп|отв)\s{0,3}(?:\[\d+\])?\s{0,3}[:：]/i

/** Whether a subject is that of an answer, which repeats what it answers. */
export function isReply(subject: string | null): boolean {
  return subject !== null && replySubject.test(subject)
}

// "On … wrote:" in the languages of the common mail programs, at the end of a line.
const attribution =
  /(?:wrote|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|skrev|kirjoitti|napisał|napisał\(a\)|napsal|napísal|írta|a scris|έγραψε|şunu yazdı|yazdı|пише|написал|написала|написав|كتب|כתב|نوشت|เขียนว่า|đã viết|menulis|写道|寫道|のメール|님이 작성)\s{0,2}[:：]$/i
const original =
  /^-{2,20}\s{0,3}(?:original message|ursprüngliche nachricht|message d'origine|mensaje original|mensagem original|messaggio originale|oorspronkelijk bericht|ursprungligt meddelande|原始邮件|原始郵件|исходное сообщение)/i
const forwarded = /^(?:-{2,20}\s{0,3}forwarded|begin forwarded|-{2,20}\s{0,3}weitergeleitet)/i

/**
 * What a text quotes of another mail: lines behind `>`, and in an answer all behind its "On … wrote:" or
 * "Original Message". Start and end of each stretch, in order. What is forwarded is no quotation.
 */
export function* quotedRanges(text: string, isAnswer: boolean): Generator<{ start: number; end: number }> {
  for (let start = 0; start < text.length;) {
    const lineFeed = text.indexOf('\n', start)
    const end = lineFeed === -1 ? text.length : lineFeed
    if (text.charAt(start) === '>') yield { start, end }
    else if (end - start < 300) {
      const line = text.slice(start, end).trim()
      if (forwarded.test(line)) return
      if (isAnswer && (original.test(line) || isAttribution(line))) {
        yield { start: end, end: text.length }
        return
      }
    }
    start = end + 1
  }
}

function isAttribution(line: string): boolean {
  return /[:：]$/.test(line) && /\d|@/.test(line) && attribution.test(line)
}
