// Soft hyphens, joiners that join nothing, marks of direction, and what else takes no room. Between letters of
// scripts other than Latin the joiners (U+200C, U+200D) are spelling.
const invisible =
  /[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])/g
/** Anything that setting text would change; most text has nothing of it. */
const unset =
  /[^\S ]| {2}|[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/

/** Text set as HTML sets it: runs of white space are one space, blocks begin new lines. */
export class TextFlow {
  text = ''
  private isSpaceDue = false
  private isBreakDue = false
  private linesDepth = 0

  get length(): number {
    return this.text.length
  }

  add(data: string): void {
    if (this.linesDepth === 0) {
      this.append(data)
      return
    }
    for (const [index, line] of data.split('\n').entries()) {
      if (index > 0) this.breakLine()
      this.append(line)
    }
  }

  space(): void {
    this.isSpaceDue = true
  }

  breakLine(): void {
    this.isBreakDue = true
  }

  /** Until the matching `endLines`, line breaks in the data are line breaks in the text. */
  startLines(): void {
    this.linesDepth++
  }

  endLines(): void {
    this.linesDepth = Math.max(0, this.linesDepth - 1)
  }

  private append(data: string): void {
    const set = unset.test(data) ? data.replace(invisible, '').replace(/\s+/g, ' ') : data
    if (set === '') return
    const isSpaceFirst = set.startsWith(' ')
    const isSpaceLast = set.endsWith(' ')
    const words = isSpaceFirst || isSpaceLast ? set.trim() : set
    if (isSpaceFirst) this.isSpaceDue = true
    if (words === '') return
    if (this.text !== '') {
      if (this.isBreakDue) this.text += '\n'
      else if (this.isSpaceDue) this.text += ' '
    }
    this.text += words
    this.isBreakDue = false
    this.isSpaceDue = isSpaceLast
  }
}
