import { CODECS } from './cloud-event.js'
import { LOG_TOPICS, type LogTopic } from './topics.js'

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

/** Every type of event, as the written schema (docs/events.md) must have it. */
export const EVENT_SCHEMAS: readonly EventSchema[] = LOG_TOPICS.flatMap((topic) =>
  CODECS[topic].forms.map(({ name: type, version, contentType, schema }) => ({
    topic,
    type,
    version,
    contentType,
    schema: plain(schema),
  })),
)

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
