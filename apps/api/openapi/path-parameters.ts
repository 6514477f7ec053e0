import { idPattern } from '#libs/domain/ids/typeid.js'
import { PROBLEM_CODES } from '../http/problems.js'
import type { Parameter, SchemaJson } from './openapi-json.js'

interface PathParameter {
  description: string
  schema: SchemaJson
}

const INBOX: PathParameter = {
  description: 'The id of an inbox.',
  schema: { type: 'string', pattern: idPattern('inb'), examples: ['inb_01jd6b8w0mf2ja3yz5c7e9g1hk'] },
}

/** What may stand in a path, by the beginning of the path and its name there. */
const PARAMETERS: readonly (readonly [under: string, name: string, parameter: PathParameter])[] = [
  ['/v1/inboxes', 'id', INBOX],
  ['/v1/emails', 'id', INBOX],
  [
    '/v1/',
    'message_id',
    {
      description: 'The id of a message in that inbox.',
      schema: { type: 'string', pattern: idPattern('msg'), examples: ['msg_01jd6b90cxf2jb8yqv4t6m2n0p'] },
    },
  ],
  [
    '/v1/accounts',
    'id',
    {
      description: 'The id of an account.',
      schema: { type: 'string', pattern: idPattern('acc'), examples: ['acc_01jd6axq2ve9r5t1y3n7m4k8c6'] },
    },
  ],
  [
    '/v1/keys',
    'id',
    {
      description: 'The id of a key of the account.',
      schema: { type: 'string', pattern: idPattern('key'), examples: ['key_01jd6aycj4e7p8s9v1w3x5z7b2'] },
    },
  ],
  [
    '/v1/webhooks',
    'id',
    {
      description: 'The id of a webhook.',
      schema: { type: 'string', pattern: idPattern('whk'), examples: ['whk_01jd6b2k8nf3gq6r9t2w5y8z1c'] },
    },
  ],
  [
    '/v1/webhooks',
    'delivery_id',
    {
      description: 'The id of a delivery of the webhook.',
      schema: { type: 'string', pattern: idPattern('dlv'), examples: ['dlv_01jd6b90czf2jb8z0w6s8p1q3r'] },
    },
  ],
  [
    '/v1/webhooks',
    'replay_id',
    {
      description: 'The id of a replay of the webhook.',
      schema: { type: 'string', pattern: idPattern('rpl'), examples: ['rpl_01jd6b9t3mf2ka7xw5v1n8q4se'] },
    },
  ],
  ['/v1/', 'index', { description: "The attachment's `index`.", schema: { type: 'integer', minimum: 0 } }],
  [
    '/problems',
    'code',
    { description: "A problem's `code`.", schema: { type: 'string', enum: PROBLEM_CODES } },
  ],
]

/** A parameter of a path. Throws if nothing is said of it. */
export function parameterOf(path: string, name: string): Parameter {
  const found = PARAMETERS.find(([under, known]) => path.startsWith(under) && known === name)
  if (found === undefined) throw new Error(`nothing is said of {${name}} in ${path}`)
  return { name, in: 'path', required: true, ...found[2] }
}
