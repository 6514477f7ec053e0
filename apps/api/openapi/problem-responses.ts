import Type from 'typebox'
import { COMMON_HEADERS, RATE_LIMIT_HEADERS, RESPONSE_HEADERS, type ResponseHeader } from '../http/headers.js'
import { PROBLEM_CODES, PROBLEMS, type ProblemCode, type ProblemForm } from '../http/problems.js'
import { Count, IdOf, OrNull, Time } from './describe.js'
import { headerRefs, type ResponseJson } from './openapi-json.js'

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

const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri', description: 'Leads to a page about the problem.' }),
    title: Type.String({ description: 'The same for every problem of the code.' }),
    status: Type.Integer({ description: 'That of the answer.' }),
    detail: Type.String({ description: 'What was not right this time.' }),
    code: Type.Unsafe<ProblemCode>({ type: 'string', enum: PROBLEM_CODES, description: 'For programs.' }),
    fix: Type.String({ description: 'What to do.' }),
    request_id: Type.String({ description: 'That of the header `X-Request-Id`.' }),
    errors: Type.Optional(Type.Array(Fault, { description: 'With `invalid-request`: each fault.' })),
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
  },
  { $id: 'Problem', description: 'Every error (RFC 9457).' },
)

/** Problems of one status, which share a response in the document. */
export interface ProblemGroup {
  status: string
  codes: readonly ProblemCode[]
  /** Of the response. */
  name: string
}

export function groupByStatus(problems: readonly ProblemCode[]): ProblemGroup[] {
  const taken = PROBLEM_CODES.filter((code) => problems.includes(code))
  const groups = Object.groupBy(taken, (code) => String(PROBLEMS[code].status))
  return Object.entries(groups).map(([status, codes = []]) => ({ status, codes, name: codes.join('_or_') }))
}

export function problemResponse({ status, codes }: ProblemGroup, publicUrl: string): ResponseJson {
  const described = codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}. ${PROBLEMS[code].fix}`)
  const examples = codes.map((code) => [
    code,
    { summary: PROBLEMS[code].title, value: example(code, publicUrl) },
  ])
  const schema: object = {
    $ref: Problem,
    properties: { code: { enum: codes }, status: { const: Number(status) } },
  }
  return {
    description: described.join('\n\n'),
    headers: {
      ...headerRefs(COMMON_HEADERS),
      ...ownHeaders(codes),
      ...(status === '401' ? {} : headerRefs(RATE_LIMIT_HEADERS)),
    },
    content: { 'application/problem+json': { schema, examples: Object.fromEntries(examples) as object } },
  }
}

/** A header that not all of the problems have is not required. */
function ownHeaders(codes: readonly ProblemCode[]): ResponseJson['headers'] {
  const lists = codes.map((code): readonly ResponseHeader[] => (PROBLEMS[code] as ProblemForm).headers ?? [])
  const isAlways = (name: ResponseHeader) => lists.every((list) => list.includes(name))
  const optional = lists.flat().filter((name) => !isAlways(name))
  return {
    ...headerRefs(lists.flat().filter(isAlways)),
    ...Object.fromEntries(optional.map((name) => [name, { ...RESPONSE_HEADERS[name], required: false }])),
  }
}

function example(code: ProblemCode, publicUrl: string): object {
  const { status, title, fix } = PROBLEMS[code]
  return {
    type: `${publicUrl}/problems/${code}`,
    title,
    status,
    detail: `${title}.`,
    code,
    fix,
    request_id: RESPONSE_HEADERS['X-Request-Id'].example,
    ...EXAMPLES[code],
  }
}

/** What the examples of some problems have of their own. */
const EXAMPLES: Partial<Record<ProblemCode, object>> = {
  'invalid-request': {
    detail: 'limit must be at most 100',
    errors: [{ detail: 'limit must be at most 100', parameter: 'limit' }],
  },
  'message-deleted': { deleted_at: '2026-11-21T09:38:10.004Z' },
  'no-matching-message': {
    detail: 'Messages examined without a match: 3.',
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
  'inbox-expired': {
    detail: 'The inbox inb_01jd6b8w0mf2ja3yz5c7e9g1hk expired at 2026-11-21T10:00:00.000Z.',
    ended_at: '2026-11-21T10:00:00.000Z',
    ended_by: null,
  },
}

/** The part of docs/api.md that follows from the code: every problem, by its status. */
export function renderProblems(): string {
  const rows = PROBLEM_CODES.map(
    (code) => `| ${PROBLEMS[code].status} | \`${code}\` | ${PROBLEMS[code].title} |`,
  )
  return ['| status | code | what it says |', '| --- | --- | --- |', ...rows.toSorted(), ''].join('\n')
}
