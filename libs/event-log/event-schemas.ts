import { ACCOUNT_EVENT_FORMS } from './account-events.js'
import { INBOX_EVENT_FORMS } from './inbox-events.js'
import { INBOX_KEY_EVENT_FORMS } from './inbox-key-events.js'
import type { LogTopic } from './topics.js'
import { USAGE_EVENT_FORMS } from './usage-events.js'
import { WEBHOOK_EVENT_FORMS } from './webhook-events.js'

/** What another language's consumer must know of one type of event. */
export interface EventSchema {
  topic: LogTopic
  /** The attribute `type`. */
  type: string
  version: number
  contentType: string
  /** Of the event's data. */
  schema: object
}

const FORMS = {
  'inbox-events': INBOX_EVENT_FORMS,
  'account-events': ACCOUNT_EVENT_FORMS,
  'webhook-events': WEBHOOK_EVENT_FORMS,
  'usage-events': USAGE_EVENT_FORMS,
  'inbox-keys': INBOX_KEY_EVENT_FORMS,
} as const satisfies Record<LogTopic, object>

/** Every type of event, as the written schema (docs/events.md) must have it. */
export const EVENT_SCHEMAS: readonly EventSchema[] = [
  ...Object.values(FORMS['inbox-events']).map((form) => describeForm('inbox-events', form)),
  ...Object.values(FORMS['account-events']).map((form) => describeForm('account-events', form)),
  ...Object.values(FORMS['webhook-events']).map((form) => describeForm('webhook-events', form)),
  ...Object.values(FORMS['usage-events']).map((form) => describeForm('usage-events', form)),
  ...Object.values(FORMS['inbox-keys']).map((form) => describeForm('inbox-keys', form)),
]

function describeForm(
  topic: LogTopic,
  form: { name: string; version: number; contentType: string; schema: object },
): EventSchema {
  const { name: type, version, contentType, schema } = form
  return { topic, type, version, contentType, schema: plain(schema) }
}

/** Without what JSON Schema does not know: the checks that are functions stand under keys with a tilde. */
function plain(schema: object): object {
  const text = JSON.stringify(schema, (key, value: unknown) => (key.startsWith('~') ? undefined : value))
  return JSON.parse(text) as object
}

/** The part of docs/events.md that follows from the code. */
export function renderEventSchemas(): string {
  return EVENT_SCHEMAS.map(
    ({ topic, type, version, contentType, schema }) => `### ${type}

Topic \`${topic}\`, schema version ${version}, \`${contentType}\`.

\`\`\`json
${JSON.stringify(schema, null, 2)}
\`\`\`
`,
  ).join('\n')
}
