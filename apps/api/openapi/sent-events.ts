import { WEBHOOK_EVENT_TYPES, type WebhookEventType } from '#libs/domain/webhook/events.js'
import { idPattern } from '#libs/domain/ids/typeid.js'
import { EVENT_BODIES } from '../events/event-schemas.js'
import type { NamedSchemas } from './named-schemas.js'
import type { Document, Operation, Parameter } from './openapi-json.js'

const SAYINGS: Record<WebhookEventType, { id: string; summary: string }> = {
  'message.received': { id: 'messageReceived', summary: 'Mail has come in' },
  'message.deleted': { id: 'messageDeleted', summary: 'A message was deleted' },
  'inbox.expired': { id: 'inboxExpired', summary: 'An inbox has expired' },
  'inbox.deleted': { id: 'inboxDeleted', summary: 'An inbox was deleted' },
}

const HEADERS = [
  header('webhook-id', 'The delivery: the same for each of its attempts, and for replays.', {
    pattern: idPattern('dlv'),
  }),
  header('webhook-timestamp', 'Unix seconds of the attempt.', { pattern: '^[0-9]+$' }),
  header(
    'webhook-signature',
    '`v1,` and the base64 of HMAC-SHA256 over id, timestamp and body with full stops in between; during a rotation ' +
      'two of them, with a space in between.',
    { pattern: '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?$' },
  ),
]

/** What is posted to the URLs of webhooks: `webhooks` of the document (OpenAPI 3.1.1, section 4.8.1). */
export function describeSent(schemas: NamedSchemas): Document['webhooks'] {
  return Object.fromEntries(WEBHOOK_EVENT_TYPES.map((type) => [type, { post: operationOf(type, schemas) }]))
}

function operationOf(type: WebhookEventType, schemas: NamedSchemas): Operation {
  const { id, summary } = SAYINGS[type]
  return {
    operationId: id,
    tags: ['Webhooks'],
    summary,
    description:
      `What webhooks are sent of \`${type}\`, at least once and in no promised order, signed as Standard Webhooks ` +
      'has it.',
    security: [],
    parameters: HEADERS,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemas.name(EVENT_BODIES[type]) } },
    },
    responses: {
      '2XX': { description: 'It was taken.', headers: {} },
      '410': { description: 'It is taken no longer: the webhook is disabled.', headers: {} },
      default: { description: 'It is tried again later.', headers: {} },
    },
  }
}

function header(name: string, description: string, schema: { pattern: string }): Parameter {
  return { name, in: 'header', required: true, description, schema: { type: 'string', ...schema } }
}
