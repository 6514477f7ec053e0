import Type, { type TProperties } from 'typebox'
import { PROBLEM_CODES, PROBLEMS, type ProblemCode, type ProblemForm } from '../http/problems.js'
import { COMMON_HEADERS, RATE_LIMIT_HEADERS, RESPONSE_HEADERS, type ResponseHeader } from '../http/headers.js'
import type { ResponseJson } from './openapi-json.js'
import { Count, IdOf, OrNull, Time } from './schema-parts.js'

const Fault = Type.Object(
  {
    detail: Type.String({ description: 'What is not right there.' }),
    pointer: Type.Optional(
      Type.String({ description: 'The location in the body (RFC 6901); empty for the whole body.' }),
    ),
    parameter: Type.Optional(Type.String({ description: 'The parameter, of query or path.' })),
    header: Type.Optional(Type.String({ description: 'The header.' })),
  },
  {
    $id: 'Fault',
    description: 'An error in a request, and its location: `pointer`, `parameter` or `header`.',
  },
)

const NearMiss = Type.Object(
  {
    id: IdOf('msg', 'The message.'),
    subject: OrNull(Type.String(), 'Its subject.'),
    received_at: Time('When it was accepted.'),
    mismatches: Type.Array(Type.String(), { description: 'Each filter that it is not as, in words.' }),
  },
  { $id: 'NearMiss', description: 'A message that a wait looked at, and why it did not match.' },
)

/** What some problems say beyond what every problem does. */
const MEMBERS: TProperties = {
  ended_at: Type.Optional(Time('Of an inbox that has ended: when.')),
  ended_by: Type.Optional(
    OrNull(IdOf('key', ''), 'Of an inbox that has ended: the key which ended it, null where time did.'),
  ),
  deleted_at: Type.Optional(Time('Of a message that has been deleted: when.')),
  examined: Type.Optional(Count('Of a wait: how many messages were looked at in vain.')),
  nearest: Type.Optional(Type.Array(NearMiss, { description: 'Of a wait: those nearest to a match.' })),
  cursor: Type.Optional(
    Type.String({ description: 'Of a wait: the position after the last message that was examined.' }),
  ),
}

export const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri', description: 'Leads to a page about the problem.' }),
    title: Type.String({ description: 'The same for every problem of the code.' }),
    status: Type.Integer({ description: 'That of the answer.' }),
    detail: Type.String({ description: 'What was not right this time.' }),
    code: Type.Unsafe<ProblemCode>({ type: 'string', enum: PROBLEM_CODES, description: 'For programs.' }),
    fix: Type.String({ description: 'What to do.' }),
    request_id: Type.String({ description: 'That of the header `X-Request-Id`.' }),
    errors: Type.Optional(Type.Array(Fault, { description: 'With `invalid-request`: each fault.' })),
    ...MEMBERS,
  },
  { $id: 'Problem', description: 'Every error (RFC 9457).' },
)

/** The name of the answer for the codes that an operation has at one status. */
export function problemResponseName(codes: readonly ProblemCode[]): string {
  return codes.join('_or_')
}

/** The answer for some codes of one status. */
export function problemResponse(codes: readonly ProblemCode[], publicUrl: string): ResponseJson {
  const described = codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}. ${PROBLEMS[code].fix}`)
  const examples = codes.map((code) => [
    code,
    { summary: PROBLEMS[code].title, value: exampleOf(code, publicUrl) },
  ])
  return {
    description: described.join('\n\n'),
    headers: problemHeaders(codes),
    content: {
      'application/problem+json': {
        schema: {
          $ref: '#/components/schemas/Problem',
          properties: { code: { enum: [...codes] }, status: { const: statusOf(codes) } },
        },
        examples: Object.fromEntries(examples) as object,
      },
    },
  }
}

/** A header that not all of the codes have is not required. */
function problemHeaders(codes: readonly ProblemCode[]): ResponseJson['headers'] {
  const lists = codes.map(headersOf)
  const names = [...new Set(lists.flat())]
  const headers = names.map((name) => {
    const isAlways = lists.every((list) => list.includes(name))
    return [name, isAlways ? headerRef(name) : { ...RESPONSE_HEADERS[name], required: false }]
  })
  const counted = statusOf(codes) === 401 ? [] : RATE_LIMIT_HEADERS
  return {
    ...Object.fromEntries(COMMON_HEADERS.map((name) => [name, headerRef(name)])),
    ...(Object.fromEntries(headers) as object),
    ...Object.fromEntries(counted.map((name) => [name, headerRef(name)])),
  }
}

export function headerRef(name: ResponseHeader): { $ref: string } {
  return { $ref: `#/components/headers/${name}` }
}

function headersOf(code: ProblemCode): readonly ResponseHeader[] {
  const { headers }: ProblemForm = PROBLEMS[code]
  return headers ?? []
}

function statusOf(codes: readonly ProblemCode[]): number {
  const [status, ...others] = new Set(codes.map((code) => PROBLEMS[code].status))
  if (status === undefined || others.length > 0) throw new Error(`not of one status: ${codes.join(', ')}`)
  return status
}

function exampleOf(code: ProblemCode, publicUrl: string): object {
  const { status, title, fix } = PROBLEMS[code]
  return {
    type: `${publicUrl}/problems/${code}`,
    title,
    status,
    detail: DETAILS[code] ?? `${title}.`,
    code,
    fix,
    request_id: RESPONSE_HEADERS['X-Request-Id'].example,
    ...(EXAMPLE_MEMBERS[code] ?? {}),
  }
}

const DETAILS: Partial<Record<ProblemCode, string>> = {
  'invalid-request': 'limit must be at most 100',
  'no-matching-message': 'Messages examined without a match: 3.',
  'inbox-expired': 'The inbox inb_01jd6b8w0mf2ja3yz5c7e9g1hk expired at 2026-11-21T10:00:00.000Z.',
}

const EXAMPLE_MEMBERS: Partial<Record<ProblemCode, object>> = {
  'invalid-request': { errors: [{ detail: 'limit must be at most 100', parameter: 'limit' }] },
  'message-deleted': { deleted_at: '2026-11-21T09:38:10.004Z' },
  'no-matching-message': {
    examined: 3,
    nearest: [
      {
        id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p',
        subject: 'Your code is 493201',
        received_at: '2026-11-21T09:30:02.417Z',
        mismatches: ['subject does not contain "invoice"'],
      },
    ],
    cursor: RESPONSE_HEADERS['Mayfly-Cursor'].example,
  },
  'inbox-deleted': { ended_at: '2026-11-21T09:41:07.122Z', ended_by: 'key_01jd6aycj4e7p8s9v1w3x5z7b2' },
  'inbox-expired': { ended_at: '2026-11-21T10:00:00.000Z', ended_by: null },
}
