/** Just past the last end of a sentence; 0 for none. */
export function lastSentenceEnd(text: string): number {
  let last = 0
  for (const match of text.matchAll(/[.!?](?=\s)|[。！？]/g)) last = match.index + 1
  return last
}

/** Neither letters nor digits. */
export function isDecoration(text: string): boolean {
  return !/[\p{L}\p{N}]/u.test(text)
}

/** Whether a number behind this begins its sentence, or follows its first word: "Use 493201 as …". */
export function isBeginning(before: string): boolean {
  const sentence = before.slice(lastSentenceEnd(before))
  const clause = sentence.slice(sentence.search(/[^:：,，—–]{0,200}$/)).trim()
  return isDecoration(clause) || /^[^\p{L}\p{N}]{0,3}\p{L}{2,12}$/u.test(clause)
}
