import Type from 'typebox'
import { QUOTAS } from '#libs/domain/account/quota.js'
import { COMMON_HEADERS, RATE_LIMIT_HEADERS, RESPONSE_HEADERS, type ResponseHeader } from '../http/headers.js'
import {
  Problem as ApiProblem,
  PROBLEM_CODES,
  PROBLEMS,
  type ProblemCode,
  type ProblemForm,
} from '../http/problems.js'
import { Count, IdOf, OneOf, OrNull, Time } from './describe.js'
import { headerRefs, type ResponseJson } from './openapi-json.js'

const Fault = Type.Object(
  {
    detail: Type.String({ description: 'What is wrong there.' }),
    pointer: Type.Optional(
      Type.String({ description: 'The location in the body (RFC 6901); empty for the whole body.' }),
    ),
    parameter: Type.Optional(Type.String({ description: 'The parameter of the query or the path.' })),
    header: Type.Optional(Type.String({ description: 'The header.' })),
  },
  {
    $id: 'Fault',
    description: 'An error in a request, and its location: `pointer`, `parameter` or `header`.',
  },
)

const NearMiss = Type.Object(
  {
    id: IdOf('msg', 'The id of the message.'),
    inbox_id: IdOf('inb', 'The id of its inbox.'),
    subject: OrNull(Type.String(), 'Its subject.'),
    received_at: Time('When it was accepted.'),
    mismatches: Type.Array(Type.String(), {
      description: 'A sentence for each filter that it does not match.',
    }),
  },
  { $id: 'NearMiss', description: 'A message that a wait examined, and why it did not match.' },
)

const InboxMessages = Type.Object(
  { inbox_id: IdOf('inb', ''), count: Count('The number of messages that it has received.') },
  { $id: 'InboxMessages', description: 'How many messages an inbox has received.' },
)

export const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri', description: 'The URL of a page about the problem.' }),
    title: Type.String({ description: 'The same for every problem with this `code`.' }),
    status: Type.Integer({ description: 'The status of the answer.' }),
    detail: Type.String({ description: 'What is wrong with this request.' }),
    code: Type.Unsafe<ProblemCode>({
      type: 'string',
      enum: PROBLEM_CODES,
      description: 'The kind of the problem, for programs.',
    }),
    fix: Type.String({ description: 'What to do.' }),
    request_id: Type.String({ description: 'The value of the header `X-Request-Id`.' }),
    errors: Type.Optional(
      Type.Array(Fault, { description: 'With `invalid-request`: all errors in the request.' }),
    ),
    ended_at: Type.Optional(Time('When the inbox ended.')),
    ended_by: Type.Optional(OrNull(IdOf('key', ''), 'The key that deleted the inbox; null if it expired.')),
    deleted_at: Type.Optional(Time('When the message was deleted.')),
    examined: Type.Optional(Count('With `no-matching-message`: the number of messages that were examined.')),
    nearest: Type.Optional(
      Type.Array(NearMiss, { description: 'With `no-matching-message`: the messages nearest to a match.' }),
    ),
    count: Type.Optional(
      Count(
        'With `no-matching-message`, if `count` was sent: the number of messages that the label has received.',
      ),
    ),
    expected: Type.Optional(Count('The `count` that was sent.')),
    too_few: Type.Optional(
      Type.Array(InboxMessages, { description: 'The first 100 inboxes of the label with too few messages.' }),
    ),
    too_many: Type.Optional(
      Type.Array(InboxMessages, {
        description: 'The first 100 inboxes of the label with too many messages.',
      }),
    ),
    quota: Type.Optional(OneOf(QUOTAS, 'With `quota-exceeded`: the quota that is used up.')),
    environment: Type.Optional(
      OrNull(Type.String(), 'The environment that the quota is of; null if it is not of one.'),
    ),
    key_id: Type.Optional(OrNull(Type.String(), 'The key that the quota is of; null if it is not of one.')),
    limit: Type.Optional(Count('The limit of the quota.')),
    used: Type.Optional(Count('How much of it is used, with what is under way.')),
    cursor: Type.Optional(
      Type.String({
        description: 'With `no-matching-message`: the position after the last message that was examined.',
      }),
    ),
  },
  { $id: 'Problem', description: 'An error (RFC 9457).' },
)

/** Problems with the same status, which share a response in the document. */
export interface ProblemGroup {
  status: string
  codes: readonly ProblemCode[]
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

/** The headers of problems. A header is required if all of the problems have it. */
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
  const about = { detail: `${PROBLEMS[code].title}.`, members: EXAMPLES[code] ?? {} }
  return new ApiProblem(code, about).toJson(String(RESPONSE_HEADERS['X-Request-Id'].example), publicUrl)
}

/** Additional members in the examples of some problems. */
const EXAMPLES: Partial<Record<ProblemCode, Readonly<Record<string, unknown>>>> = {
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
        inbox_id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
        subject: 'Your code is 493201',
        received_at: '2026-11-21T09:30:02.417Z',
        mismatches: ['subject does not contain "invoice"'],
      },
    ],
    cursor: RESPONSE_HEADERS['Mayfly-Cursor'].example,
  },
  'quota-exceeded': {
    detail: 'The account has 20000 of at most 20000 active inboxes, and the request adds 1.',
    ...{ quota: 'inboxes', environment: null, key_id: null, limit: 20_000, used: 20_000 },
  },
  'inbox-deleted': { ended_at: '2026-11-21T09:41:07.122Z', ended_by: 'key_01jd6aycj4e7p8s9v1w3x5z7b2' },
  'inbox-expired': {
    detail: 'The inbox inb_01jd6b8w0mf2ja3yz5c7e9g1hk expired at 2026-11-21T10:00:00.000Z.',
    ended_at: '2026-11-21T10:00:00.000Z',
    ended_by: null,
  },
}

/** The table of problems in docs/api.md, sorted by status. */
export function renderProblems(): string {
  const rows = PROBLEM_CODES.map(
    (code) => `| ${PROBLEMS[code].status} | \`${code}\` | ${PROBLEMS[code].title} |`,
  )
  return ['| status | code | what it says |', '| --- | --- | --- |', ...rows.toSorted(), ''].join('\n')
}
