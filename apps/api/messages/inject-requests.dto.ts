import { applyDecorators } from '@nestjs/common'
import { IsString, Matches, MaxLength } from 'class-validator'
import Type from 'typebox'
import { IfGiven, IsWellFormed, Rule } from '../http/rules.js'
import { IsListOf } from '../http/validation.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

/*
 * The JSON of a mail that is injected into an inbox.
 */

const MAX_TEXT_CHARACTERS = 1024 * 1024
const MAX_HEADERS = 64
const MAX_ATTACHMENTS = 20

const CONTROLS = '\\u0000-\\u001f\\u007f-\\u009f'
/** RFC 5322, section 3.4.1, without quoted local parts and domain literals. */
const ATOM = `[^\\s<>@,;:"()\\[\\]\\\\${CONTROLS}]`
const ADDRESS = `${ATOM}{1,64}@${ATOM}{1,255}`
const FROM = new RegExp(`^(?:([^<>${CONTROLS}]{0,200})<(${ADDRESS})>|(${ADDRESS}))$`, 'u')
const SUBJECT = new RegExp(`^[^${CONTROLS}]{0,998}$`, 'u')
const FILENAME = new RegExp(`^[^${CONTROLS}]{1,255}$`, 'u')
/** RFC 2045, section 5.1, without parameters. A multipart would have to be a part with parts. */
const TOKEN = "[\\w!#$&'*+.^`{|}~-]{1,100}"
const CONTENT_TYPE = new RegExp(`^(?![Mm][Uu][Ll][Tt][Ii][Pp][Aa][Rr][Tt]/)${TOKEN}/${TOKEN}$`)
/** RFC 5322, section 3.6.8. */
const HEADER_NAME = /^[!-9;-~]{1,76}$/
const HEADER_VALUE = new RegExp(`^[^\\s${CONTROLS}][^${CONTROLS}]{0,997}$`, 'u')
/** Set from the other properties, or, like Bcc, not part of a mail that arrives. */
const RESERVED =
  /^([Ff][Rr][Oo][Mm]|[Ss][Uu][Bb][Jj][Ee][Cc][Tt]|[Bb][Cc][Cc]|[Cc][Oo][Nn][Tt][Ee][Nn][Tt]-.*|[Mm][Ii][Mm][Ee]-.*)$/
/** RFC 4648, section 4. */
const BASE64 = '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'

const MailHeaders = Type.Unsafe<Readonly<Record<string, string>>>({
  $id: 'MailHeaders',
  description: 'Header fields by their names, such as `To`, `Reply-To` or `X-Campaign`.',
  type: 'object',
  maxProperties: MAX_HEADERS,
  propertyNames: { pattern: HEADER_NAME.source, not: { pattern: RESERVED.source } },
  additionalProperties: { type: 'string', pattern: HEADER_VALUE.source },
  examples: [{ 'X-Campaign': 'spring' }],
})

/** An element of `attachments`. */
@DescribeBody({
  description: 'An attachment of the mail.',
  example: { filename: 'a.txt', content_type: 'text/plain', content: 'SGVsbG8=' },
})
export class AttachContent {
  @DescribeProperty('The file name.')
  @IsWellFormed()
  @Matches(FILENAME, { message: 'filename must be 1 to 255 characters, without control characters' })
  filename!: string

  @DescribeProperty('The media type, without parameters; not multipart.')
  @Matches(CONTENT_TYPE, { message: 'content_type must be like text/plain, and not multipart' })
  content_type!: string

  @DescribeProperty('The content in base64.', { type: 'string', pattern: BASE64, contentEncoding: 'base64' })
  @Rule('isBase64', isBase64, 'content must be base64, with padding and without line breaks')
  content!: string
}

/** The body of POST /v1/inboxes/{id}/messages. */
@DescribeBody({
  description: 'A mail. `To` is the address of the inbox, unless `headers` has another one.',
  example: {
    from: 'App <no-reply@app.example>',
    subject: 'Your code is 493201',
    text: 'Your code is 493201.',
  },
})
export class InjectMessage {
  @DescribeProperty('The sender: an address, or `Name <address>`.')
  @IsWellFormed()
  @Matches(FROM, { message: 'from must be an address, or like "Name <address>"' })
  from!: string

  @DescribeProperty('The subject.')
  @IsWellFormed()
  @Matches(SUBJECT, {
    message: 'subject must be a text of at most 998 characters, without control characters',
  })
  subject!: string

  @DescribeProperty('The text part.')
  @IsText()
  text?: string

  @DescribeProperty('The HTML part.')
  @IsText()
  html?: string

  @DescribeProperty('Further header fields.', MailHeaders)
  @IfGiven()
  @Rule(
    'areMailHeaders',
    areHeaders,
    `headers must be an object of at most ${MAX_HEADERS} pairs of a header name and a value of 1 to 998 characters, without ` +
      'control characters; not From, Subject, Bcc, Content-… and MIME-…',
  )
  headers?: Readonly<Record<string, string>>

  @DescribeProperty('The attachments.')
  @IfGiven()
  @IsListOf({ item: AttachContent, maxItems: MAX_ATTACHMENTS })
  attachments?: AttachContent[]
}

function IsText(): PropertyDecorator {
  const message = `$property must be a string of at most ${MAX_TEXT_CHARACTERS} characters`
  return applyDecorators(
    IfGiven(),
    IsString({ message }),
    MaxLength(MAX_TEXT_CHARACTERS, { message }),
    IsWellFormed(),
  )
}

function areHeaders(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const pairs = Object.entries(value as Record<string, unknown>)
  const isHeader = ([name, text]: [string, unknown]) =>
    HEADER_NAME.test(name) &&
    !RESERVED.test(name) &&
    typeof text === 'string' &&
    HEADER_VALUE.test(text) &&
    text.isWellFormed()
  return pairs.length <= MAX_HEADERS && pairs.every(isHeader)
}

/** Checked by decoding, since Node skips what is not base64: an expression would be slow for two megabytes. */
function isBase64(value: unknown): boolean {
  if (typeof value !== 'string' || value.length % 4 !== 0 || /[-_]/.test(value)) return false
  const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0
  return Buffer.from(value, 'base64').length === (value.length / 4) * 3 - padding
}

/** The name and address of a valid `from`. */
export function readSender(from: string): { name: string; address: string } {
  const [, name = '', named, bare] = FROM.exec(from) ?? []
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address: named ?? bare ?? '' }
}
