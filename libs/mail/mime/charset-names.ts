/**
 * The names of each charset, without separators and prefixes: those of the Encoding Standard, Java, .NET, Python, iconv
 * and databases. `latin1`, `iso88591` and `cp1252` are read by rules.
 */
const NAMES = new Map(
  Object.entries({
    'us-ascii':
      '7bit 646 ansix341968 ansix341986 ascii cp367 ia5 iso646irv iso646irv1991 iso646us isoir6 us usascii',
    'utf-8': 'cp65001 u8 unicode11utf8 unicode20utf8 utf8 utf8mac utf8mb3 utf8mb4',
    'utf-7': 'cp65000 u7 unicode11utf7 unicode20utf7 utf7',
    'utf-16': 'u16 utf16',
    'utf-16le': 'cp1200 iso10646ucs2 ucs2 unicode unicodefeff unicodelittle unicodelittleunmarked utf16le',
    'utf-16be': 'cp1201 unicodebig unicodebigunmarked unicodefffe utf16be',
    'utf-32': 'ucs4 utf32',
    'utf-32le': 'cp12000 ucs4le utf32le',
    'utf-32be': 'cp12001 ucs4be utf32be',
    'windows-1252': 'ansi cp819 isoir100',
    'windows-1254': 'isoir148',
    'windows-874': 'cp874 isoir166 thai thai8 tis620',
    'iso-8859-2': 'isoir101',
    'iso-8859-3': 'isoir109',
    'iso-8859-4': 'isoir110',
    'iso-8859-5': 'cyrillic isoir144 isolatincyrillic',
    'iso-8859-6': 'arabic asmo708 cp708 ecma114 isoir127 isolatinarabic',
    'iso-8859-7': 'ecma118 elot928 greek greek8 isoir126 isolatingreek suneugreek',
    'iso-8859-8': 'cp38598 hebrew isoir138 isolatinhebrew logical visual',
    'iso-8859-10': 'isoir157',
    'koi8-r': 'cp20866 cp878 koi koi8 koi8r',
    'koi8-u': 'cp21866 koi8ru koi8u',
    ibm866: 'cp866',
    macintosh: 'cp10000 mac macintosh macroman',
    'x-mac-cyrillic': 'cp10007 cp10017 maccyrillic macukraine macukrainian',
    maccenteuro: 'cp10029 maccenteuro maccentraleurope maccentraleuropean macce maclatin2',
    shift_jis:
      'cp10001 cp932 cp942 cp943 macjapanese ms31j mskanji pck shiftjis shiftjis2004 shiftjisx0213 sjis sjisopen ' +
      'sjiswin windows31j',
    'euc-jp':
      'cp20932 cp51932 eucjis2004 eucjisx0213 eucjp eucjpms eucjpopen eucjpwin eucpkdfmtjapanese ujis',
    'iso-2022-jp': 'cp50220 cp50221 cp50222 jis jis7 junet windowsiso2022jp',
    'euc-kr':
      'cp10003 cp20949 cp51949 cp949 euckr isoir149 korean ksc5601 ksc56011987 ksc56011989 ksc56011992 ksx1001 ' +
      'mackorean uhc',
    'iso-2022-kr': 'cp50225',
    gbk:
      'chinese cp10008 cp1386 cp20936 cp51936 cp936 euccn gb2312 gb231280 gb23121980 gbk iso58gb231280 isoir58 ' +
      'macchinesesimp',
    gb18030: 'cp54936 gb18030',
    hz: 'cp52936 hz hzgb hzgb2312',
    big5: 'big5 big5hkscs bigfive cnbig5 cp10002 cp1375 cp950 cp951 hkscs macchinesetrad xbig5',
    armscii8: 'armscii8',
    georgianacademy: 'georgianacademy',
    georgianps: 'georgianps',
    hproman8: 'cp1051 hproman8 r8 roman8',
    koi8t: 'koi8t',
    maccroatian: 'cp10082 maccroatian',
    macgreek: 'cp10006 macgreek',
    maciceland: 'cp10079 maciceland macicelandic',
    macromania: 'cp10010 macromania macromanian',
    macthai: 'cp10021 macthai',
    macturkish: 'cp10081 macturkish',
    pt154: 'cyrillicasian pt154 ptcp154',
    rk1048: 'kz1048 rk1048 strk1048 strk10482002',
    tcvn: 'tcvn tcvn5712 tcvn57121',
    viscii: 'viscii viscii11 viscii111',
  }).flatMap(([name, names]) => names.split(' ').map((each) => [each, name] as const)),
)

/** Code pages that keep their number as a name, and those of Windows. */
const CODE_PAGE = /^cp(437|720|737|775|808|85[025678]|86[0-5]|869|922|1046|112[459]|1133|116[123]|125[0-8])$/
/** The parts of ISO 8859 by the numbers of Latin alphabets. */
const LATIN_PARTS = [1, 2, 3, 4, 9, 10, 13, 14, 15, 16]
/** The names that iconv has for the code pages from 1250 on. */
const WINDOWS_PAGES = ['msee', 'mscyrl', 'msansi', 'msgreek', 'msturk', 'mshebr', 'msarab']
/** The Encoding Standard reads three parts of ISO 8859 as the code pages that extend them. */
const EXTENDED_PARTS = new Map([
  [1, 'windows-1252'],
  [9, 'windows-1254'],
  [11, 'windows-874'],
])

/** How often a name is shortened. */
const MAX_CUTS = 4
const LETTERS_AFTER_NUMBER = /(?<=\d)[a-z]+$/
const LAST_WORD = /[-_.:+$*]+[^-_.:+$*]*$/

/**
 * The name of a charset, which is the same for all of its names; null for an unknown one. `x-`, `cs`, case and
 * separators do not count, the words for a code page are equal (`MS949`, `windows-949`), and if a name is unknown, the
 * words at its end are ignored: years (`gb18030-2005`), variants and rubbish.
 */
export function charsetName(declared: string): string | null {
  let label = cleaned(declared)
  for (let cuts = 0; cuts <= MAX_CUTS; cuts++) {
    const name = nameOf(label.replace(/[^a-z0-9]/g, ''))
    if (name !== null) return name
    const shorter = label.replace(LETTERS_AFTER_NUMBER.test(label) ? LETTERS_AFTER_NUMBER : LAST_WORD, '')
    if (shorter === label) return null
    label = shorter
  }
  return null
}

const START = /^[\s"'=_]*(?:charset\s*=[\s"']*)?/
const CANNOT_BE_IN_NAMES = /["',;?=<>()\\/][^]*$/

/** In lower case, without quotes and what can't be in a name, and with hyphens for spaces. */
function cleaned(declared: string): string {
  const label = declared.slice(0, 80).toLowerCase().replace(START, '').replace(CANNOT_BE_IN_NAMES, '')
  return label.trim().replace(/\s+/g, '-')
}

function nameOf(whole: string): string | null {
  const compact = whole
    .replace(/^(?:x|cs)(?=[a-z])/, '')
    .replace(/^(?:cp|codepage|mswin|windows|win|ansi|ms|ibm|dos|oem|pc|pc8codepage)*0*(?=\d{3,5}$)/, 'cp')
  const known = NAMES.get(whole) ?? NAMES.get(compact)
  if (known !== undefined) return known
  const [, state] = /^iso2022(jp|kr)/.exec(compact) ?? []
  if (state !== undefined) return `iso-2022-${state}`
  if (WINDOWS_PAGES.includes(compact)) return `windows-125${String(WINDOWS_PAGES.indexOf(compact))}`
  const [, page] = CODE_PAGE.exec(compact) ?? []
  if (page !== undefined) return page.startsWith('125') ? `windows-${page}` : `cp${page}`
  const [, part] = /^(?:iso|cp)?8859(\d{1,2})[ei]?$/.exec(compact) ?? []
  if (part !== undefined) return partName(Number(part))
  const [, latin] = /^(?:iso)?(?:latin|l)(\d{1,2})$/.exec(compact) ?? []
  if (latin !== undefined) return partName(LATIN_PARTS[Number(latin) - 1] ?? 0)
  const [, offset] = /^cp28[56](\d{2})$/.exec(compact) ?? []
  return offset === undefined ? null : partName((Number(offset) + 10) % 100)
}

/** The name of a part of ISO 8859; part 12 was never published. */
function partName(part: number): string | null {
  if (part < 1 || part > 16 || part === 12) return null
  return EXTENDED_PARTS.get(part) ?? `iso-8859-${part}`
}
