import iconv from 'iconv-lite'
import { charsetName } from './charset-names.js'
import { decodeText } from './charset.js'

/** Names of other runtimes and senders' variants, by the name that the decoder knows. */
const NAMES = {
  'euc-kr':
    'MS949 ms949 ks_c_5601 ks_c_5601-1987 KSC5601 ksc_5601 cp949 x-windows-949 UHC euc_kr euckr csEUCKR KS_C_5601-1989 windows-949 korean x-mac-korean x-cp20949 cp51949 949',
  'windows-874':
    'x-windows-874 TIS620 tis-620 tis_620 cp874 ms874 iso-8859-11 x-iso-8859-11 iso8859_11 TIS620-0 windows-874 dos-874 ibm-874',
  macintosh: 'x-MacRoman macroman mac_roman mac-roman x-mac-roman macintosh csMacintosh mac',
  'x-mac-cyrillic': 'x-MacCyrillic mac_cyrillic x-mac-cyrillic x-mac-ukrainian x-MacUkraine',
  'euc-jp': 'euc_jp eucjp EUC-JP x-euc-jp ujis x-eucJP-Open eucJP-win eucjp-ms euc_jis_2004 cp51932',
  'koi8-r': 'koi8r koi8_r KOI8-R cskoi8r koi8 cp878 cp20866 x-koi8-r',
  'koi8-u': 'koi8u koi8_u koi8-u koi8-ru cp21866',
  gb18030: 'gb18030-2005 gb18030-2000 gb18030_2022 GB18030 cp54936',
  gbk: 'euc-cn euccn euc_cn x-euc-cn gb2312 gb_2312-80 GB2312_CHARSET x-gbk cp936 ms936 x-mswin-936 windows-936 gb2312-80 csGB2312 gb2312.1980-0 x-cp20936 936 chinese cp1386',
  big5: 'big5hkscs big5-hkscs big5_hkscs Big5-HKSCS:2004 x-Big5-HKSCS-2001 hkscs cp950 ms950 x-windows-950 csBig5 big5-eten x-x-big5 cn-big5 big5_tw x-mac-chinesetrad',
  hz: 'hz-gb-2312 hz HZ-GB-2312 hz_gb hzgb x-cp52936',
  shift_jis:
    'sjis shift-jis Shift_JIS SJIS x-sjis MS932 cp932 windows-31j csWindows31J MS_Kanji shift_jis_2004 SJIS-win x-PCK x-MS932_0213 cp943c ibm-943 x-mac-japanese s-jis x-ms-cp932',
  'iso-2022-jp':
    'iso2022jp ISO-2022-JP csISO2022JP iso2022_jp iso-2022-jp-ms iso-2022-jp-2 x-windows-iso2022jp x-windows-50220 cp50221 JIS _iso-2022-jp$SIO',
  'iso-2022-kr': 'iso2022kr iso-2022-kr iso2022_kr csISO2022KR cp50225',
  'utf-8':
    'utf8 UTF_8 utf-8-sig utf_8_sig utf8mb4 cp65001 UTF-8-MAC unicode-1-1-utf-8 utf-8; "utf-8" utf-8?= utf-8//TRANSLIT utf-8, utf-8. charset=utf-8 utf-8(Unicode) \'utf-8\' utf8-unicode u8 65001 x-unicode20utf8 utf-8*en',
  'utf-16': 'utf16 UTF_16 utf-16',
  'utf-16le': 'utf_16_le utf16le x-UTF-16LE-BOM utf-16le UnicodeLittle UnicodeLittleUnmarked ucs-2 unicode',
  'utf-16be': 'utf_16_be unicodeFFFE UnicodeBig cp1201',
  'utf-7': 'utf7 UTF-7 unicode-1-1-utf-7 utf_7 csUnicode11UTF7 x-unicode-1-1-utf-7 x-unicode-2-0-utf-7',
  'us-ascii':
    'us-ascii ascii ANSI_X3.4-1968 iso646-us ISO_646.irv:1991 us cp367 646 csASCII US_ASCII iso-ir-6',
  'windows-1252':
    'iso-8859-1 ISO8859_1 8859_1 latin1 latin_1 latin-1 l1 cp1252 windows-1252 win1252 ms-1252 1252 iso-8859-1:1987 ISO_8859-1 iso88591 csISOLatin1 ibm819 iso-8859-1http-equivContent-Type x-ansi',
  'windows-1251':
    'cp1251 win-1251 windows1251 x-cp1251 ms1251 1251 windows_1251 windows-1251. ansi-1251 ms-cyrl',
  'windows-1250': 'cp1250 x-cp1250 ms-ee',
  'windows-1254': 'iso-8859-9 iso8859_9 latin5 cp1254 MS-TURK',
  'iso-8859-2': 'iso8859-2 latin2 ISO_8859-2:1987 8859_2 csisolatin2 iso_8859_2 cp28592',
  'iso-8859-15': 'iso8859_15 latin-9 latin9 iso-8859-15 l9 ISO-8859-15-euro',
  'iso-8859-8': 'iso-8859-8-i iso-8859-8-e logical hebrew iso88598i',
  maccenteuro: 'x-MacCentralEurope mac_latin2 x-mac-ce maccenteuro',
  macgreek: 'x-MacGreek mac_greek',
  macturkish: 'x-MacTurkish mac_turkish',
  macthai: 'x-MacThai',
  cp850: 'cp850 ibm850 ibm-850 850 dos-850 cspc850multilingual IBM00850',
  ibm866: 'cp866 ibm866 866 dos-866 csIBM866',
  cp437: 'cp437 ibm437 437 x-cp437',
  cp737: 'cp737 x-IBM737',
  viscii: 'viscii VISCII1.1-1 csVISCII',
  tcvn: 'tcvn tcvn5712-1',
  pt154: 'ptcp154 pt154',
  rk1048: 'kz1048 rk1048',
  koi8t: 'koi8-t koi8_t',
  hproman8: 'hp-roman8 hp_roman8 r8 roman8',
}

test.each(Object.entries(NAMES))('%s has these names: %s', (name, names) => {
  const wrong = names.split(' ').filter((each) => charsetName(each) !== name)
  expect(wrong).toEqual([])
  const upper = names
    .toUpperCase()
    .split(' ')
    .filter((each) => charsetName(each) !== name)
  expect(upper).toEqual([])
})

test.each(
  'x-nonsense unknown-8bit base64 hex binary x-user-defined iso-8859-99 none default utf-99 replacement _internal'
    .split(' ')
    .concat('', '=', '-'.repeat(80), '1'.repeat(1_000)),
)('%j is unknown', (name) => expect(charsetName(name)).toBeNull())

test.each([
  'utf-8 ',
  ' "utf-8"',
  'utf 8',
  'utf-8; format=flowed',
  'UTF-8\r\n',
  'charset="utf-8"',
  'utf-8 (Unicode)',
])('%j is UTF-8', (name) => expect(charsetName(name)).toBe('utf-8'))

test('each charset can be decoded', () => {
  const own = ['us-ascii', 'utf-16', 'utf-7', 'iso-2022-jp', 'iso-2022-kr', 'hz', 'x-mac-cyrillic']
  for (const name of Object.keys(NAMES)) {
    expect(own.includes(name) || iconv.encodingExists(name)).toBe(true)
    expect(decodeText(Buffer.from(''), name)).toEqual({ text: '', guessed: null })
  }
})

test.each([
  ['MS949', 'b9e6b1ddb1d4', '방금규'],
  ['x-windows-874', 'cabad2c2b4d5', 'สบายดี'],
  ['x-MacRoman', '53cb6f20db', 'SÀo €'],
  ['euc_jp', 'c6fccbdc', '日本'],
  ['koi8r', 'f0d2c9d7c5d4', 'Привет'],
  ['gb18030-2005', 'd6d0a2e3', '中€'],
  ['euc-cn', 'd6d0cec4', '中文'],
  ['big5hkscs', 'a4a4a4e5', '中文'],
  ['hz-gb-2312', Buffer.from('~{VPND~} ~~ ~{VP~\nND~}x~{VP\nVP').toString('hex'), '中文 ~ 中文x中\nVP'],
])('%s is decoded', (name, hex, text) => {
  expect(decodeText(Buffer.from(hex, 'hex'), name)).toEqual({ text, guessed: null })
})
