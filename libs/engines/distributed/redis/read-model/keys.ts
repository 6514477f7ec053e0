import type { Partition } from '#libs/ports/event-log/event-log.js'
import { partitionCount, partitionOf, type ViewedTopic } from '#libs/ports/event-log/topics.js'
import { TABLES } from '#libs/ports/read-model/tables.js'
import type { Entry, IndexInfo, Range, RowKey, TableOf } from '#libs/ports/read-model/view-store.js'

/*
 * The keys of the views in Redis. Every key of a partition has the partition's hash tag (`{p0}:inboxes`,
 * `{p0}:messages:inb_…`), so that all of them are in one slot of a Cluster and one script can change them together. Only
 * the key of a lookup can be in any slot.
 *
 * - A table is a hash of rows, or one hash for each owner. Contents are strings that expire.
 * - A list is a sorted set, or one for each owner, whose members all have the score 0: `group sort key value`.
 * - A queue is one whose members are scored by when they can be claimed: their due time, or the end of their lease.
 */

export type ViewKeys = ReturnType<typeof viewKeys>

/** The names of all keys. `partitions` is that of `ViewStore`. */
export function viewKeys(prefix: string, partitions: number) {
  const inPartition = ({ topic, partition }: Partition, name: string) =>
    `${prefix}{${topic === 'account-events' ? 'accounts' : `p${partition}`}}:${name}`
  const partitionOfRow = ({ topic }: { topic: ViewedTopic }, { owner, key }: RowKey) =>
    topic === 'account-events' ? 0 : partitionOf(owner ?? key, partitions)
  const ofOwner = (name: string, owner: string | null | undefined) =>
    owner == null ? name : `${name}:${owner}`

  return {
    partitionOfRow,
    partitionsOf: ({ topic }: { topic: ViewedTopic }): number[] => [
      ...Array(partitionCount(topic, partitions)).keys(),
    ],

    rows: ({ name, topic }: TableOf<unknown>, partition: number, owner: string | null) =>
      inPartition({ topic, partition }, ofOwner(name, owner)),

    entries: ({ name, topic, isOwned }: IndexInfo, partition: number, group: readonly string[]) =>
      inPartition({ topic, partition }, ofOwner(name, isOwned ? group[0] : null)),

    /** Hash: the number of entries and their sum, by group. */
    totals: ({ name, topic }: IndexInfo, partition: number) =>
      inPartition({ topic, partition }, `${name}-totals`),

    /** Sorted set: the owners of entries in a queue, scored by when the first of them can be claimed, or earlier. */
    owners: ({ name, topic }: IndexInfo, partition: number) =>
      inPartition({ topic, partition }, `${name}-owners`),

    content: (table: TableOf<unknown>, key: RowKey, part: string) =>
      inPartition({ topic: table.topic, partition: partitionOfRow(table, key) }, `${part}:${key.key}`),

    /** String: the key of a text, which may be out of date. */
    lookup: ({ name }: IndexInfo, text: string) => `${prefix}${name}:${text}`,

    /** Hash: log, form, position, target, begun. If it is missing, the views are being emptied. */
    progress: (partition: Partition) => inPartition(partition, `slot:${partition.topic}`),

    /** The keys that are removed together when a partition is emptied, after those of each owner. */
    ofPartition(partition: Partition): string[] {
      const names: string[] = []
      for (const { name, topic, ownedBy, indexes } of TABLES) {
        if (topic !== partition.topic) continue
        if (ownedBy === null) names.push(name)
        for (const index of indexes) {
          if (!index.isOwned) names.push(index.name)
          if (index.isTotalled) names.push(`${index.name}-totals`)
          if (index.kind === 'queue' && index.isOwned) names.push(`${index.name}-owners`)
        }
      }
      return names.map((name) => inPartition(partition, name))
    },

    ofOwner(partition: Partition, owner: string): string[] {
      const names: string[] = []
      for (const { name, topic, ownedBy, indexes } of TABLES) {
        if (topic !== partition.topic) continue
        if (ownedBy !== null) names.push(name)
        names.push(...indexes.filter(({ isOwned }) => isOwned).map((index) => index.name))
      }
      return names.map((name) => inPartition(partition, ofOwner(name, owner)))
    },
  }
}

/** Hexadecimal digits of every number, so that the order of the members is that of the numbers. */
const DIGITS = 14

function writeSort(sort: number | string): string {
  return typeof sort === 'number' ? sort.toString(16).padStart(DIGITS, '0') : sort
}

/** What the members of a group begin with; empty if the key has no other group. As JSON, none is a prefix of another. */
export function groupPrefix({ isOwned }: IndexInfo, group: readonly string[]): string {
  const named = isOwned ? group.slice(1) : group
  return named.length === 0 ? '' : `${JSON.stringify(named)} `
}

/** An entry as a member of its sorted set. The due time of a queue's entry is its score. */
export function memberOf(index: IndexInfo, { group, sort, key, value }: Entry): string {
  const sorted = index.sort === 'none' ? key : `${writeSort(sort)} ${key}`
  return `${groupPrefix(index, group)}${sorted}${value === '' ? '' : ` ${value}`}`
}

export function entryOf(index: IndexInfo, group: readonly string[], member: string, dueAtMs = 0): Entry {
  const rest = member.slice(groupPrefix(index, group).length)
  const [first, afterFirst] = cut(rest)
  if (index.sort === 'none') return { group, sort: '', key: first, value: afterFirst, dueAtMs }
  const [key, value] = cut(afterFirst)
  const sort = index.sort === 'number' ? Number.parseInt(first, 16) : first
  return { group, sort, key, value, dueAtMs }
}

function cut(text: string): [string, string] {
  const at = text.indexOf(' ')
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** The bounds of a range for ZRANGE BYLEX: the lower and the upper one. */
export function boundsOf(index: IndexInfo, { group, from, to }: Range): [low: string, high: string] {
  const prefix = groupPrefix(index, group)
  // `!` is the character after the space, which ends the prefix.
  const first = prefix === '' ? '-' : `[${prefix}`
  const last = prefix === '' ? '+' : `(${prefix.slice(0, -1)}!`
  return [
    from === null ? first : `[${prefix}${writeSort(from)}`,
    to === null ? last : `(${prefix}${writeSort(to)}`,
  ]
}
