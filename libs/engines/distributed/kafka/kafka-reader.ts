import {
  LogUnavailableError,
  type PartitionRange,
  type StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { ANSWER_WITHIN_MS, within } from './kafka-client.js'
import { isOutOfRange, type Fetched, type KafkaCluster } from './kafka-cluster.js'

const WAIT_MS = 100
/** After this many empty responses in a row, compaction has left no record up to the end. */
const EMPTY_RESPONSES = 2

/**
 * The records of a range, in batches, without a consumer group. Retention may have removed the first records, and
 * compaction the last. Rejects with LogUnavailableError if Kafka returns no records for 10 s although it should have some.
 */
export async function* readRange(
  cluster: KafkaCluster,
  topic: string,
  { partition, first, end }: Pick<PartitionRange, 'partition' | 'first' | 'end'>,
): AsyncIterable<StoredRecord[]> {
  let from = first
  let emptyResponses = 0
  let deadline = Date.now() + ANSWER_WITHIN_MS
  while (from < end) {
    const failure = `Kafka could not be read at ${topic}/${partition}/${from}`
    const fetched = await within(ANSWER_WITHIN_MS, failure, fetchOrSkip(cluster, topic, partition, from))
    const [answer] = fetched.partitions
    if (answer === undefined || answer.next === from) {
      const isAllRemoved = !fetched.isThrottled && answer !== undefined && answer.highWatermark >= end
      emptyResponses = isAllRemoved ? emptyResponses + 1 : 0
      if (emptyResponses === EMPTY_RESPONSES) return
      if (Date.now() > deadline) {
        throw new LogUnavailableError(
          `Kafka returns no records of ${topic}/${partition} from ${from} on, up to ${end}`,
        )
      }
      continue
    }
    const records = answer.records.filter(({ offset }) => offset < end)
    from = answer.next
    emptyResponses = 0
    if (records.length > 0) yield records
    deadline = Date.now() + ANSWER_WITHIN_MS
  }
}

/** Fetches records. If retention has removed the offset, the result has no records and continues at the first one left. */
async function fetchOrSkip(
  cluster: KafkaCluster,
  topic: string,
  partition: number,
  offset: number,
): Promise<Fetched> {
  try {
    return await cluster.fetchOne(topic, { partition, offset }, WAIT_MS)
  } catch (error) {
    if (!isOutOfRange(error)) throw error
    const held = (await cluster.offsets(topic)).find((offsets) => offsets.partition === partition)
    if (held === undefined || held.first <= offset) throw error
    const skipped = { partition, from: offset, records: [], next: held.first, highWatermark: held.end }
    return { partitions: [skipped], isThrottled: false }
  }
}
