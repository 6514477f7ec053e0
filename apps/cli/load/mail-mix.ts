/** The kinds of mail in the mix. */
export const MAIL_KINDS = ['text', 'html', 'code', 'link', 'attachment'] as const

export type MailKind = (typeof MAIL_KINDS)[number]

/** What differs between two mails of a kind. ASCII, without line breaks. */
export interface MailValues {
  /** Message-ID, with its angle brackets. */
  id: string
  recipient: string
  /** As in the header `Date`. */
  date: string
  /** Six digits. */
  code: string
}

const SLOT = /\{(id|recipient|date|code)\}/

/** Lengths as in most mails, by which the filler is measured. */
const SAMPLE: MailValues = {
  id: `<${'x'.repeat(16)}.123456@load.mayfly>`,
  recipient: `${'x'.repeat(20)}@mayfly.test`,
  date: 'Wed, 25 Nov 2026 20:00:00 +0000',
  code: '123456',
}

const BOUNDARY = '=_part_5f1c93ab'
const PLAIN = ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 7bit', '']

interface Content {
  subject: string
  /** The subtype of a multipart type; without it, there is one part. */
  multipart?: string
  /** The lines of each part, with its header. */
  parts: readonly (readonly string[])[]
}

const CONTENTS: Readonly<Record<MailKind, Content>> = {
  text: {
    subject: 'Your weekly summary',
    // A line that begins with a dot is stuffed on the wire.
    parts: [[...PLAIN, 'Hello,', '', '.profile has been updated.', '']],
  },
  html: {
    subject: '=?utf-8?Q?Welcome_=E2=80=93_your_workspace_is_ready?=',
    multipart: 'alternative',
    parts: [
      [...PLAIN, 'Welcome. Your workspace is ready.'],
      [
        'Content-Type: text/html; charset=utf-8',
        'Content-Transfer-Encoding: quoted-printable',
        '',
        '<!doctype html><html><body style=3D"margin:0">',
        '<p>Welcome =E2=80=93 your <b>workspace</b> is ready.</p>',
      ],
    ],
  },
  code: {
    subject: 'Your code is {code}',
    parts: [[...PLAIN, 'Hello,', '', 'Your code is {code}. It is valid for ten minutes.', '']],
  },
  link: {
    subject: 'Confirm your address',
    parts: [
      [...PLAIN, 'Hello,', '', 'Confirm your address:', 'https://app.example/verify?token=t{code}', ''],
    ],
  },
  attachment: {
    subject: 'Your report',
    multipart: 'mixed',
    parts: [
      [...PLAIN, 'The report is attached.'],
      [
        'Content-Type: application/octet-stream; name="report.bin"',
        'Content-Disposition: attachment; filename="report.bin"',
        'Content-Transfer-Encoding: base64',
        '',
      ],
    ],
  },
}

const SENTENCES = [
  'Your workspace is ready, and the people you invited can sign in now.',
  'Nothing was deployed last week, so the list of changes is empty.',
  'The invoice for this month will be sent to the billing contact.',
  'Reply to this mail if anything looks wrong, and we will look into it.',
]

/**
 * Returns a function that makes the source of mails, which are valid, have about `bytes` bytes with CRLF line ends, in
 * ASCII, and `from` in their header From. The texts of each kind are prepared once, so that making a mail only puts its
 * values between them.
 */
export function mailMix(bytes: number, from: string): (kind: MailKind, values: MailValues) => string {
  const templates = new Map(MAIL_KINDS.map((kind) => [kind, sourceOf(kind, bytes, from).split(SLOT)]))
  return (kind, values) => filled(templates.get(kind) ?? [], values)
}

/** A template is texts, and between them the names of values. */
function filled(template: readonly string[], values: MailValues): string {
  let source = ''
  for (let index = 0; index < template.length; index += 2) {
    const slot = template[index + 1] as keyof MailValues | undefined
    source += (template[index] ?? '') + (slot === undefined ? '' : values[slot])
  }
  return source
}

function sourceOf(kind: MailKind, bytes: number, from: string): string {
  const bare = linesOf(kind, from, []).join('\r\n')
  const missing = bytes - filled(bare.split(SLOT), SAMPLE).length
  return linesOf(kind, from, kind === 'attachment' ? base64Lines(missing) : textLines(missing)).join('\r\n')
}

/** The filler is at the end of the last part. */
function linesOf(kind: MailKind, from: string, filler: readonly string[]): string[] {
  const { subject, multipart, parts } = CONTENTS[kind]
  const head = [
    `From: "The App" <${from}>`,
    'To: {recipient}',
    `Subject: ${subject}`,
    'Message-ID: {id}',
    'Date: {date}',
    'MIME-Version: 1.0',
  ]
  if (multipart === undefined) return [...head, ...parts.flat(), ...filler, '']
  const type = `Content-Type: multipart/${multipart}; boundary="${BOUNDARY}"`
  const divided = parts.flatMap((part) => [`--${BOUNDARY}`, ...part])
  return [...head, type, '', ...divided, ...filler, `--${BOUNDARY}--`, '']
}

/** Lines of text with that many bytes together, or none if there is no space for one. */
function textLines(bytes: number): string[] {
  const lines: string[] = []
  let missing = bytes
  for (let index = 0; missing > 2; index += 1) {
    const line = (SENTENCES[index % SENTENCES.length] ?? '').slice(0, missing - 2).trimEnd()
    lines.push(line)
    missing -= line.length + 2
  }
  return lines
}

/** Lines of base64 with about that many bytes together. The decoded bytes follow no visible pattern. */
function base64Lines(bytes: number): string[] {
  const characters = Math.max(Math.floor((bytes * 76) / 78), 4)
  const content = Buffer.alloc(Math.floor(characters / 4) * 3)
  let state = 1
  for (let index = 0; index < content.length; index += 1) {
    // A linear congruential generator (Numerical Recipes).
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    content[index] = state >>> 24
  }
  return content.toString('base64').match(/.{1,76}/g) ?? []
}
