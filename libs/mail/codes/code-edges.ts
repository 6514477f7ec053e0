import { isHyphen } from './code-tokens.js'

// "661823,5分钟内有效": a comma of ASCII, and how long it is valid.
const validity = /^[.,]\d{1,3}[ \u00a0]?(?:分|秒|小时|小時|時間|天|日|초|시간)/

// "OTP=493201", but not the parameter of an address.
const assignment = /(?<![A-Za-z?&])(?:OTP|PIN|TAN|CODE)=$/i

const closedBefore = new Set('#$€£¥₹₽₩+/\\@_=&?%•')
const closedAfter = new Set('#%€£¥₹₽₩$@/\\_=°')

/** Whether a candidate stands by itself, not as a piece of a number, a price, an address, a path, a colour or a time. */
export function hasOpenEdges(text: string, start: number, end: number): boolean {
  const before = text.charAt(start - 1)
  const after = text.charAt(end)
  if (closedAfter.has(after)) return false
  if (closedBefore.has(before)) return assignment.test(text.slice(Math.max(0, start - 7), start))
  if (isHyphen(before.charCodeAt(0)) || isHyphen(after.charCodeAt(0))) return false
  if ('.,:'.includes(before) && /[0-9A-Za-z]/.test(text.charAt(start - 2)) && before !== '')
    return isLabel(text, start)
  if ('.,:'.includes(after) && after !== '' && /[0-9a-z]/.test(text.charAt(end + 1)))
    return validity.test(text.slice(end, end + 8))
  // Emphasis stands on both sides, a star to be dialled on one.
  if (before === '*' && after !== '*') return false
  return text.slice(start - 3, start) !== '***'
}

/** `code:493201` is a label; `12:4932` and `a.4932` are not. */
function isLabel(text: string, start: number): boolean {
  return text.charAt(start - 1) === ':' && /[A-Za-z]/.test(text.charAt(start - 2))
}
