import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { ClickHouseClient } from '@clickhouse/client'
import type { LimitFunction } from 'p-limit'
import { USAGE_TABLES } from '#libs/ports/usage/usage-rows.js'
import type { UsageBatch, UsageSink } from '#libs/ports/usage/usage-store.js'
import { orUnavailable } from './clients.js'

/*
 * Relies on deduplication by token (`insert_deduplication_token`), in the tables and in those that their materialized
 * views write to (`deduplicate_blocks_in_dependent_materialized_views`), within `non_replicated_deduplication_window`
 * blocks. An insert is one block, so that its token covers all its rows.
 */

/** As long as ClickHouse remembers its token, a repeated insert is dropped as a whole, in each table and view. */
const EXACTLY_ONCE = [
  'async_insert = 0',
  'insert_deduplicate = 1',
  'deduplicate_blocks_in_dependent_materialized_views = 1',
  // An insert of any size is one block. Further blocks would be recognized by their number only.
  'input_format_parallel_parsing = 0',
  'max_insert_threads = 1',
  // A lone surrogate is stored as its escape sequence: the content of one event must not stop all others.
  'input_format_json_throw_on_bad_escape_sequence = 0',
].join(', ')

export class ClickHouseUsageSink implements UsageSink {
  constructor(
    private readonly client: ClickHouseClient,
    private readonly limit: LimitFunction,
  ) {}

  writtenTo(logId: string, topic: string): Promise<Map<number, number>> {
    return orUnavailable(async () => {
      const answer = await this.client.query({
        query: `SELECT partition, toFloat64(max(written_to)) AS writtenTo FROM sink_positions
          WHERE log_id = {logId:String} AND topic = {topic:String} GROUP BY partition`,
        query_params: { logId, topic },
        format: 'JSONEachRow',
      })
      const rows = await answer.json<{ partition: number; writtenTo: number }>()
      return new Map(rows.map(({ partition, writtenTo }) => [partition, writtenTo]))
    })
  }

  write({ logId, topic, ranges, rows }: UsageBatch): Promise<void> {
    const token = tokenOf(logId, topic, ranges)
    return this.limit(orUnavailable, async () => {
      for (const [table, group] of Map.groupBy(rows, (each) => each.table)) {
        const settings = `${EXACTLY_ONCE}, insert_deduplication_token = '${table}/${token}'`
        const texts = group.map(({ json }, index) => (index === 0 ? json : `,${json}`))
        await this.insert(table, USAGE_TABLES[table], settings, texts)
      }
      // Written after all rows: if the position says that a range is written, it is.
      const positions = ranges.map(({ partition, end }) => [logId, topic, partition, end])
      const columns = ['log_id', 'topic', 'partition', 'written_to']
      await this.insert('sink_positions', columns, EXACTLY_ONCE, [JSON.stringify(positions).slice(1, -1)])
    })
  }

  private async insert(
    table: string,
    columns: readonly string[],
    settings: string,
    texts: readonly string[],
  ): Promise<void> {
    const { stream } = await this.client.exec({
      query: `INSERT INTO ${table} (${columns.join(', ')}) SETTINGS ${settings} FORMAT JSONCompactEachRow`,
      // As strings, because chDB's connection would convert bytes to a string.
      values: Readable.from(texts),
    })
    await stream.resume().toArray()
  }
}

function tokenOf(logId: string, topic: string, ranges: UsageBatch['ranges']): string {
  const parts = ranges.map(({ partition, first, end }) => `${partition}:${first}-${end}`)
  return hash('sha256', [logId, topic, ...parts].join(' '), 'hex')
}
