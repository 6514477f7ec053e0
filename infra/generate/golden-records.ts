import fc from 'fast-check'
import { ACCOUNT_EVENTS } from '#libs/domain/account/events.js'
import { AUDIT_EVENTS } from '#libs/domain/audit/events.js'
import { anyEventOf } from '#libs/domain/event-sourcing/any-event.test-support.js'
import type { EventDeclaration } from '#libs/domain/event-sourcing/declare.js'
import { INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import { INBOX_KEY_EVENTS } from '#libs/domain/inbox/key-events.js'
import { USAGE_EVENTS } from '#libs/domain/usage/usage-events.js'
import { WEBHOOK_EVENTS } from '#libs/domain/webhook/events.js'
import { CODECS, TYPE_PREFIX } from '#libs/ports/event-log/cloud-event.js'
import type { LogRecord } from '#libs/ports/event-log/event-log.js'
import { LOG_TOPICS, type LogTopic } from '#libs/ports/event-log/topics.js'

const DECLARED: Record<LogTopic, Readonly<Record<string, EventDeclaration>>> = {
  'inbox-events': INBOX_EVENTS,
  'account-events': ACCOUNT_EVENTS,
  'webhook-events': WEBHOOK_EVENTS,
  'audit-leaves': AUDIT_EVENTS,
  'usage-events': USAGE_EVENTS,
  'inbox-keys': INBOX_KEY_EVENTS,
}

/** Appends a record for each type of event that has none to the JSON of the golden records. Others never change. */
export function withNewRecords(text: string): string {
  const known = new Set((JSON.parse(text) as { type: string }[]).map(({ type }) => type))
  const added = LOG_TOPICS.flatMap((topic) =>
    Object.entries(DECLARED[topic])
      .filter(([, { name }]) => !known.has(TYPE_PREFIX + name))
      .map(([type, declaration]) => JSON.stringify(recordOf(topic, { [type]: declaration }), mark)),
  )
  // A function, because `$` in a text would have a meaning.
  return text.replace(/\n\]\s*$/, () => `${added.map((record) => `,\n${record}`).join('')}\n]\n`)
}

function recordOf(topic: LogTopic, declared: Readonly<Record<string, EventDeclaration>>): object {
  const [event] = fc.sample(anyEventOf(declared), { seed: 1, numRuns: 1 })
  const codec: { encode(recorded: never): LogRecord } = CODECS[topic]
  const { key, headers, value } = codec.encode({ time: new Date(), keyId: null, event } as never)
  const contentType = headers['content-type']
  const written = Buffer.from(value).toString(contentType === 'application/json' ? 'utf8' : 'base64')
  return {
    topic,
    type: headers.ce_type,
    version: headers.ce_schemaversion,
    contentType,
    key,
    event,
    value: written,
  }
}

/** Times and bytes have no form in JSON. */
function mark(this: Readonly<Record<string, unknown>>, key: string, json: unknown): unknown {
  const value = this[key]
  if (value instanceof Date) return { $date: json }
  return value instanceof Uint8Array ? { $bytes: Buffer.from(value).toString('base64') } : json
}
