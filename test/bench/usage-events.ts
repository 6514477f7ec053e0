import { usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { LogRecord } from '#libs/ports/event-log/event-log.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { idFromBytes, type AccountId, type KeyId } from '#libs/domain/ids/typeid.js'
import type { UsageEvent } from '#libs/domain/usage/usage-events.js'
import { usageRows, type UsageRow } from '#libs/ports/usage/usage-rows.js'

const KEYS = 50
const RUNS = 20
const ENVIRONMENT = 'staging'

export const ACCOUNT: AccountId = idFromBytes('acc', Buffer.alloc(16, 1))

/** All keys of the account. */
export const KEY_IDS: readonly KeyId[] = Array.from({ length: KEYS }, (_, number) => keyId(number))

export function keyId(number: number): KeyId {
  return idFromBytes('key', Buffer.alloc(16, number + 1))
}

/** The event with this number: of ten events, seven are requests, the others the stages of a mail. */
export function usageEventOf(number: number, at: Date): UsageEvent {
  const key = keyId(number % KEYS)
  const inboxId = mintId('inb')
  const labels = { run: String(number % RUNS), suite: 'smoke' }
  const about = { keyId: key, labels }
  switch (number % 10) {
    case 7:
      return { type: 'MailAccepted', ...about, ms: [1.5 + (number % 7)], at }
    case 8:
      return { type: 'MessageShown', ...about, ms: [number % 50], at }
    case 9: {
      const receivedAt = new Date(at.getTime() - (number % 50))
      return { type: 'MessageRead', ...about, inboxId, messageId: mintId('msg'), receivedAt, readAt: at }
    }
    default:
      return {
        ...{
          type: 'ApiRequestServed',
          count: 1,
          keyId: key,
          method: 'GET',
          route: '/v1/inboxes/{id}/messages',
        },
        ...{ status: 200, isRefused: false, durationMs: 1 + (number % 97) / 10, requestBytes: 0 },
        ...{ responseBytes: 1_200, inboxId, labels, servedAt: at },
      }
  }
}

/** The event as a record of the log. */
export function recordOf(event: UsageEvent, at: Date): LogRecord {
  const { keyId: key } = event
  return usageEventCodec.encode({ ...occurrenceOf(at), keyId: key, event })
}

/** The event as rows of ClickHouse. */
export function rowsOf(number: number, at: Date): UsageRow[] {
  const event = usageEventOf(number, at)
  const recorded = { ...occurrenceOf(at), keyId: event.keyId, event }
  return usageRows(recorded, { partition: 0, offset: number })
}

function occurrenceOf(time: Date) {
  return {
    id: mintId('evt'),
    time,
    source: '/mayfly/api',
    accountId: ACCOUNT,
    environment: ENVIRONMENT,
  } as const
}
