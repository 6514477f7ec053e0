import {
  LogUnavailableError,
  type PartitionRange,
  type StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { ANSWER_WITHIN_MS, within } from './kafka-client.js'
import { isOutOfRange, type Fetched, type KafkaCluster } from './kafka-cluster.js'

const WAIT_MS = 100
/** After that many empty answers in a row, compaction has left nothing up to the end. */
const EMPTY_ANSWERS = 2

/**
 * The records of a range, in batches, without a group. It ends at the range's end, seen or not: compaction may have
 * removed the last records, retention the first. Rejects with LogUnavailableError if Kafka keeps giving
 * nothing of what it should hold.
 */
export async function* readRange(
  cluster: KafkaCluster,
  topic: string,
  { partition, first, end }: Pick<PartitionRange, 'partition' | 'first' | 'end'>,
): AsyncIterable<StoredRecord[]> {
  let from = first
  let emptyAnswers = 0
  let deadline = Date.now() + ANSWER_WITHIN_MS
  while (from < end) {
    const what = `Kafka could not be read at ${topic}/${partition}/${from}`
    const fetched = await within(ANSWER_WITHIN_MS, what, fetchOrSkip(cluster, topic, partition, from))
    const [answer] = fetched.partitions
    if (answer === undefined || answer.next === from) {
      const isAllRemoved = !fetched.isThrottled && answer !== undefined && answer.highWatermark >= end
      emptyAnswers = isAllRemoved ? emptyAnswers + 1 : 0
      if (emptyAnswers === EMPTY_ANSWERS) return
      if (Date.now() > deadline) {
        throw new LogUnavailableError(
          `Kafka gives no records of ${topic}/${partition} from ${from} on, up to ${end}`,
        )
      }
      continue
    }
    const records = answer.records.filter(({ offset }) => offset < end)
    from = answer.next
    emptyAnswers = 0
    if (records.length > 0) yield records
    deadline = Date.now() + ANSWER_WITHIN_MS
  }
}

/** If retention has removed the offset, an answer without records that continues at the first one left. */
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
