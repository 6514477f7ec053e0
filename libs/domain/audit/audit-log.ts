import type { LogId } from '#libs/domain/ids/typeid.js'
import type { EventOf } from '#libs/domain/event-sourcing/declare.js'
import type { AUDIT_EVENTS, AuditEvent } from './events.js'
import { writeLeaf, type Leaf } from './leaf.js'
import { append, EMPTY_TREE, hashOfLeaf, TILE_HEIGHT, type Subtree, type Tree } from './tree.js'

/** The audit log of an account: a Merkle tree with a leaf for each of the account's events. */
export interface AuditLog {
  id: LogId
  tree: Tree
  /** Of each partition that has leaves, such as `inbox-events/3`: the offset of the last one. */
  sequencedTo: Readonly<Record<string, number>>
  checkpoint: Checkpoint | null
  /** Whether the checkpoint is still to be cosigned by witnesses. */
  awaitsWitnesses: boolean
  /** The last one that enough witnesses have cosigned. */
  cosigned: CosignedCheckpoint | null
}

/** What is signed of the log. */
export interface Checkpoint {
  size: number
  /** In base64. */
  root: string
  takenAt: Date
}

export interface CosignedCheckpoint extends Checkpoint {
  /** Lines of a note, one of each witness. */
  cosignatures: readonly string[]
}

export interface AddedLeaf {
  index: number
  leaf: Leaf
  /** The leaf as it is hashed. */
  text: string
}

interface Evolved {
  log: AuditLog
  added: AddedLeaf[]
  /** The subtrees that are in tiles above the lowest level, and are full now. */
  completed: (Subtree & { hash: string })[]
}

/** A log that an event does not change is returned as it is. */
export function evolve(before: AuditLog | null, event: AuditEvent): Evolved {
  const log = before ?? {
    id: event.logId,
    tree: EMPTY_TREE,
    sequencedTo: {},
    checkpoint: null,
    awaitsWitnesses: false,
    cosigned: null,
  }
  switch (event.type) {
    case 'LeavesSequenced':
      return withLeaves(log, event.leaves)
    case 'CheckpointTaken':
      return { log: withCheckpoint(log, event), added: [], completed: [] }
    case 'CheckpointCosigned':
      return { log: withCosigned(log, event), added: [], completed: [] }
  }
}

function withLeaves(log: AuditLog, leaves: readonly Leaf[]): Evolved {
  const sequencedTo: Record<string, number> = { ...log.sequencedTo }
  const added: AddedLeaf[] = []
  for (const leaf of leaves) {
    const source = `${leaf.topic}/${leaf.partition}`
    if (leaf.offset <= (sequencedTo[source] ?? -1)) continue
    sequencedTo[source] = leaf.offset
    added.push({ index: log.tree.size + added.length, leaf, text: writeLeaf(leaf) })
  }
  if (added.length === 0) return { log, added, completed: [] }
  const hashes = added.map(({ text }) => hashOfLeaf(text))
  const { tree, completed } = append(log.tree, hashes)
  const inTiles = completed.filter(({ height }) => height % TILE_HEIGHT === 0)
  return {
    log: { ...log, tree, sequencedTo },
    added,
    completed: inTiles.map(({ hash, ...subtree }) => ({ ...subtree, hash: hash.toString('base64') })),
  }
}

/** The last one of the largest size counts, since several processes may take them. */
function withCheckpoint(log: AuditLog, event: EventOf<typeof AUDIT_EVENTS, 'CheckpointTaken'>): AuditLog {
  const { size, root, takenAt, awaitsWitnesses } = event
  if (size < (log.checkpoint?.size ?? 0) || size > log.tree.size) return log
  return { ...log, checkpoint: { size, root, takenAt }, awaitsWitnesses }
}

function withCosigned(log: AuditLog, { size, root, takenAt, cosignatures }: CosignedCheckpoint): AuditLog {
  if (size < (log.cosigned?.size ?? 0) || size > log.tree.size) return log
  const awaitsWitnesses = log.awaitsWitnesses && size < (log.checkpoint?.size ?? 0)
  return { ...log, awaitsWitnesses, cosigned: { size, root, takenAt, cosignatures } }
}

const CHECKPOINT_EVERY_MS = 10_000

/** When the log's next checkpoint is due, or its last one is to be sent to witnesses again; null if neither. */
export function checkpointDueAt({ tree, checkpoint, awaitsWitnesses }: AuditLog): Date | null {
  if (tree.size === (checkpoint?.size ?? 0) && !awaitsWitnesses) return null
  return new Date((checkpoint?.takenAt.getTime() ?? -CHECKPOINT_EVERY_MS) + CHECKPOINT_EVERY_MS)
}
