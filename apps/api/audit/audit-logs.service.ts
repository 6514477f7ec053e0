import { Inject, Injectable } from '@nestjs/common'
import {
  checkpointBody,
  openWithAny,
  signCheckpoint,
  verifierKey,
  type OpenedCheckpoint,
} from '#libs/domain/audit/checkpoint.js'
import { logIdOf, originOf, readLeaf, writeRecord, type Leaf } from '#libs/domain/audit/leaf.js'
import type { AuditLog, CosignedCheckpoint } from '#libs/domain/audit/audit-log.js'
import { writeEntries } from '#libs/domain/audit/tiles.js'
import { join, proofOf, subtreesOf } from '#libs/domain/audit/tree.js'
import { cosignaturesIn, type WitnessPolicy } from '#libs/domain/audit/witness-policy.js'
import type { EventId, LogId } from '#libs/domain/ids/typeid.js'
import type { Engine } from '#libs/engines/engine.js'
import type { Position } from '#libs/ports/event-log/event-log.js'
import { SERVED_TOPICS } from '#libs/ports/event-log/topics.js'
import { auditKeysOf } from '#libs/ports/key-vault/master-key.js'
import type { HashRange } from '#libs/ports/read-model/audit-views.js'
import type { OffsetQuery } from '#libs/ports/read-model/lists.js'
import type { AuditQueries } from '#libs/ports/read-model/queries.js'
import { readWitnessPolicy } from '#libs/role/witness-policy.js'
import type { Principal } from '../access/principal.js'
import { noResource, Problem } from '../http/problems.js'
import { ENGINE, Instance } from '../instance.js'
import { messageOf } from '#libs/runtime/errors.js'
import { Views } from '../views.js'
import { readKeptCheckpoints } from './kept-checkpoints.js'
import { recordsAt } from './stored-records.js'

/** The checkpoint of a log that does not grow is signed with a later time after this one. */
const SIGN_AGAIN_MS = 600_000
const RETRY_SECONDS = 1
/** Leaves of other accounts between two of a log, whose records are read over. */
const MAX_BETWEEN = 8
/** Every event has a leaf after this time, unless the audit log is far behind. */
export const SEQUENCED_WITHIN_MS = 60_000

/** A leaf with its index. */
export type IndexedLeaf = Leaf & { index: number }

/** A log up to its last checkpoint. */
export interface CheckpointedLog {
  id: LogId
  size: number
  root: string
  /** The time of its own cosignature. */
  signedAt: Date
  /** Of witnesses, as lines of the note. */
  cosignatures: readonly string[]
}

/** The audit log of the caller's account. */
@Injectable()
export class AuditLogs {
  private readonly kept: ReadonlyMap<string, string>
  private readonly policy: WitnessPolicy | null
  /** The logs that continue the checkpoint that was kept, or have none. */
  private readonly continued = new Set<LogId>()

  constructor(
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'audit' | 'log' | 'secrets'>,
    private readonly views: Views,
    private readonly instance: Instance,
  ) {
    const { auditLastCheckpoint, auditWitnessPolicy } = instance.settings
    this.kept = readKeptCheckpoints(auditLastCheckpoint)
    this.policy = readWitnessPolicy(auditWitnessPolicy)
  }

  /** What its checkpoints are signed with, as verifier keys, the current one first. */
  publicKeysOf(id: LogId): string[] {
    return auditKeysOf(this.engine.secrets, id).map((key) => verifierKey(this.originOf(id), key))
  }

  originOf(id: LogId): string {
    return originOf(this.instance.settings.publicUrl, id)
  }

  /** Null if it has no leaves yet. Throws missing-scope for a member who may not see all environments. */
  async find(principal: Principal): Promise<AuditLog | null> {
    if (principal.member?.environments != null) {
      const detail = 'The audit log is for members who can use all environments.'
      throw new Problem('missing-scope', { detail })
    }
    // Views that are computed again have a shorter log, which must not be signed with the time of now.
    return this.read((audit) => audit.log(logIdOf(principal.accountId)))
  }

  /** Null before the first checkpoint. Throws not-found for a log of another account. */
  async upToCheckpoint(principal: Principal, logId: string): Promise<CheckpointedLog | null> {
    const id = logIdOf(principal.accountId)
    if (id !== logId) throw noResource('audit log', logId)
    const log = await this.find(principal)
    const checkpoint = log && this.servedOf(log)
    if (checkpoint === null) return null
    const { size, root, takenAt, cosignatures } = checkpoint
    const now = this.instance.now()
    const isOld = now.getTime() - takenAt.getTime() >= SIGN_AGAIN_MS
    return { id, size, root, signedAt: isOld && size === log?.tree.size ? now : takenAt, cosignatures }
  }

  /** With a quorum the last checkpoint that enough witnesses have cosigned, by the policy as it is now. */
  private servedOf({ id, checkpoint, cosigned }: AuditLog): CosignedCheckpoint | null {
    const { policy } = this
    const own = checkpoint && { ...checkpoint, cosignatures: [] }
    if (policy === null) return own
    if (cosigned !== null && (!policy.isOptional || cosigned.size === checkpoint?.size)) {
      const body = checkpointBody(this.originOf(id), cosigned)
      const { cosignatures, isMet } = cosignaturesIn(policy, body, cosigned.cosignatures.join(''))
      if (isMet) return { ...cosigned, cosignatures }
    }
    return policy.isOptional ? own : null
  }

  /**
   * As `upToCheckpoint`, for what is signed. Throws not-yet-checkpointed before the first one, and audit-log-contradicted
   * for a log that does not continue the checkpoint that the operator has kept.
   */
  async checkpointed(principal: Principal, logId: string): Promise<CheckpointedLog> {
    const log = await this.upToCheckpoint(principal, logId)
    const id = log?.id ?? logIdOf(principal.accountId)
    if (!this.continued.has(id)) await this.requireContinued(id)
    if (log === null) throw notYetCheckpointed()
    return log
  }

  /** What is added to a log later never changes its beginning, so this is checked once. */
  private async requireContinued(id: LogId): Promise<void> {
    const note = this.kept.get(this.originOf(id))
    if (note !== undefined) {
      const kept = this.openKept(note, id)
      // With a quorum, the checkpoint that is served may be an earlier one.
      const size = (await this.read((audit) => audit.log(id)))?.tree.size ?? 0
      if (kept.size > size)
        throw contradicted(`It has ${size} leaves; the one that was kept has ${kept.size}.`)
      const subtrees = await this.read((audit) => audit.subtreeHashes(id, subtreesOf(0, kept.size)))
      const root = join(subtrees).toString('base64')
      if (root !== kept.root) {
        throw contradicted(
          `Its first ${kept.size} leaves have the root ${root}; the one that was kept has ${kept.root}.`,
        )
      }
    }
    this.continued.add(id)
  }

  private openKept(note: string, id: LogId): OpenedCheckpoint {
    try {
      return openWithAny(note, this.publicKeysOf(id))
    } catch (error) {
      throw contradicted(`The one that was kept is not genuine: ${messageOf(error)}.`)
    }
  }

  /** The checkpoint as a signed note. */
  sign({ id, signedAt, cosignatures, ...checkpoint }: CheckpointedLog): string {
    const keys = auditKeysOf(this.engine.secrets, id)
    return signCheckpoint(this.originOf(id), checkpoint, keys, signedAt) + cosignatures.join('')
  }

  /** Leaves of a range that the log has. */
  async leaves(log: CheckpointedLog, query: OffsetQuery): Promise<IndexedLeaf[]> {
    const found = await this.read((audit) => audit.leaves(log.id, query))
    return found.map(({ index, text }) => ({ ...readLeaf(text), index }))
  }

  /**
   * The leaf of an event; null if the log does not have it. Throws not-yet-checkpointed for a leaf after the checkpoint,
   * and for an event without one that is not older than `withinMs`.
   */
  async leafOf(
    log: CheckpointedLog,
    { id, time }: { id: EventId; time: Date },
    withinMs: number,
  ): Promise<IndexedLeaf | null> {
    const index = await this.read((audit) => audit.leafOf(log.id, id))
    const ageMs = Math.abs(this.instance.now().getTime() - time.getTime())
    if (index === null && ageMs > withinMs) return null
    if (index === null || index >= log.size) throw notYetCheckpointed('No checkpoint includes the event yet.')
    const [leaf = null] = await this.leaves(log, { from: index, to: index + 1, order: 'asc', limit: 1 })
    return leaf
  }

  /** The records of leaves, as they are hashed, in the same order; null for each that the event log no longer has. */
  async *records(leaves: readonly Leaf[]): AsyncGenerator<string | null, void> {
    for await (const record of recordsAt(this.engine.log, leaves.map(positionOf), MAX_BETWEEN)) {
      yield record === null ? null : writeRecord(record)
    }
  }

  /** Hashes of a level of tiles, one after the other. */
  async hashes({ id }: CheckpointedLog, range: HashRange): Promise<Buffer> {
    const [found = []] = await this.read((audit) => audit.hashes(id, [range]))
    return Buffer.concat(found)
  }

  /** Leaves, each after its length in two bytes. */
  async entries({ id }: CheckpointedLog, { from, to }: Omit<HashRange, 'level'>): Promise<Buffer> {
    const leaves = await this.read((audit) => audit.leaves(id, { from, to, order: 'asc', limit: to - from }))
    return writeEntries(leaves.map(({ text }) => text))
  }

  /** What proves that a leaf is in the log (C2SP tlog-proof): hashes from its sibling up to a child of the root. */
  async prove(log: CheckpointedLog, index: number): Promise<string> {
    const siblings = proofOf(index, log.size)
    const found = await this.read((audit) => audit.subtreeHashes(log.id, siblings.flat()))
    const hashes = siblings.map((sibling) => join(found.splice(0, sibling.length)).toString('base64'))
    return `c2sp.org/tlog-proof@v1\nindex ${index}\n${hashes.map((hash) => `${hash}\n`).join('')}\n${this.sign(log)}`
  }

  /** Views that are emptied to be computed again have only some of the leaves. Throws ViewsCatchingUpError then. */
  read<Found>(query: (audit: AuditQueries) => Promise<Found>): Promise<Found> {
    return this.views.readComplete('audit-leaves', () => query(this.engine.audit))
  }
}

function contradicted(detail: string): Problem {
  return new Problem('audit-log-contradicted', { detail })
}

/** Throws for a topic that has no leaves. */
function positionOf({ topic, partition, offset }: Leaf): Position {
  const source = SERVED_TOPICS.find((each) => each === topic)
  if (source === undefined) throw new Error(`no leaves of ${topic}`)
  return { topic: source, partition, offset }
}

export function notYetCheckpointed(detail = 'The log has no checkpoint yet.'): Problem {
  return new Problem('not-yet-checkpointed', {
    detail,
    headers: { 'retry-after': String(RETRY_SECONDS) },
  })
}
