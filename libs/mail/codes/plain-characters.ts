/** Where the digits of scripts begin: Arabic, Persian, those of India, Thai, Lao, Burmese, Khmer. */
const zeros = [
  ...[0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66],
  ...[0xe50, 0xed0, 0x1040, 0x17e0],
]
const digits = new Map(
  zeros.flatMap((zero) => Array.from({ length: 10 }, (_, digit) => [zero + digit, String(digit)])),
)
const digitRanges = zeros.map((zero) => String.fromCharCode(zero, 0x2d, zero + 9)).join('')
const notPlain = new RegExp(`[${digitRanges}\\uff10-\\uff19\\uff21-\\uff3a\\uff41-\\uff5a\\uff0d]`, 'g')

/** Fullwidth characters and the digits of all scripts as ASCII, one for one, so that positions stay. */
export function plainCharacters(text: string): string {
  return text.replace(notPlain, (character) => {
    const code = character.charCodeAt(0)
    return code >= 0xff00 ? String.fromCharCode(code - 0xfee0) : (digits.get(code) ?? character)
  })
}
