import { CODECS } from './cloud-event.js'
import { LOG_TOPICS } from './topics.js'

/** The JSON Schemas of all events, for consumers in other languages, as in docs/events.md. */
export const EVENT_SCHEMAS = LOG_TOPICS.flatMap((topic) =>
  CODECS[topic].formats.map(({ name: type, version, contentType, schema }) => ({
    topic,
    type,
    version,
    contentType,
    schema: plain(schema),
  })),
)

/** Removes typebox's checks that are functions, which are not JSON Schema: their keys start with a tilde. */
function plain(schema: object): object {
  const text = JSON.stringify(schema, (key, value: unknown) => (key.startsWith('~') ? undefined : value))
  return JSON.parse(text) as object
}

/** Renders the generated part of docs/events.md. */
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
