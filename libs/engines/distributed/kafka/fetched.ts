import type { StoredRecord } from '#libs/ports/event-log/event-log.js'

/** What kafkajs decodes of an answer to a fetch (version 11 of the request), as far as it is looked at. */
export interface FetchResponse {
  clientSideThrottleTime?: number
  responses: readonly {
    partitions: readonly {
      partition: number
      highWatermark: string
      messages: readonly FetchedMessage[]
    }[]
  }[]
}

interface FetchedMessage {
  offset: string
  key: Buffer | null
  value: Buffer | null
  headers?: Record<string, unknown>
  isControlRecord?: boolean
  batchContext?: { firstOffset: string; lastOffsetDelta: number }
}

export interface FetchedPartition {
  partition: number
  /** The offset that was asked for. */
  from: number
  records: StoredRecord[]
  /** The offset behind all that came, past gaps too. */
  next: number
  /** Behind the last offset that consumers may see. */
  highWatermark: number
}

export interface Fetched {
  partitions: FetchedPartition[]
  /** The broker gave nothing because the client asked for too much (KIP-219). */
  isThrottled: boolean
}

export function readFetched(
  response: FetchResponse,
  wanted: readonly { partition: number; offset: number }[],
): Fetched {
  const partitions = response.responses
    .flatMap((topic) => topic.partitions)
    .map(({ partition, highWatermark, messages }) => {
      const from = wanted.find((candidate) => candidate.partition === partition)?.offset ?? 0
      // A batch comes whole, also where its first records lie before the offset; transactions leave markers.
      const records = messages
        .filter(({ offset, isControlRecord }) => Number(offset) >= from && isControlRecord !== true)
        .map(storedRecord)
      const next = Math.max(from, behind(messages.at(-1)))
      return { partition, from, records, next, highWatermark: Number(highWatermark) }
    })
  return { partitions, isThrottled: (response.clientSideThrottleTime ?? 0) > 0 }
}

/** Compaction keeps a batch's extent where it removes its last records. */
function behind(last: FetchedMessage | undefined): number {
  if (last === undefined) return 0
  const { batchContext } = last
  if (batchContext === undefined) return Number(last.offset) + 1
  return Number(batchContext.firstOffset) + batchContext.lastOffsetDelta + 1
}

function storedRecord({ offset, key, value, headers = {} }: FetchedMessage): StoredRecord {
  return {
    offset: Number(offset),
    key: key === null ? '' : key.toString(),
    headers: Object.fromEntries(Object.entries(headers).map(([name, held]) => [name, textOf(held)])),
    value: value ?? Buffer.alloc(0),
  }
}

/** Of a header that stands there more than once the last one counts. */
function textOf(header: unknown): string {
  const last: unknown = Array.isArray(header) ? header.at(-1) : header
  return Buffer.isBuffer(last) ? last.toString() : ''
}
