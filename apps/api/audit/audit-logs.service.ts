import { Inject, Injectable } from '@nestjs/common'
import { bodyOf, signCheckpoint, type SigningKey } from '#libs/domain/audit/checkpoint.js'
import { logIdOf, readLeaf, type Leaf } from '#libs/domain/audit/leaf.js'
import type { AuditLog } from '#libs/domain/audit/audit-log.js'
import { proofOf, join } from '#libs/domain/audit/tree.js'
import type { EventId, LogId } from '#libs/domain/ids/typeid.js'
import type { Engine } from '#libs/engines/engine.js'
import type { HashRange } from '#libs/ports/read-model/audit-views.js'
import type { OffsetQuery } from '#libs/ports/read-model/lists.js'
import type { AuditQueries } from '#libs/ports/read-model/queries.js'
import { signingKeysOf } from '#libs/ports/key-vault/signing-keys.js'
import type { Principal } from '../access/principal.js'
import { noResource, Problem } from '../http/problems.js'
import { ENGINE, Instance } from '../instance.js'
import { Views } from '../views.js'

/** A checkpoint of a log that does not grow is signed again after this time, so that its time is never much older. */
const SIGN_AGAIN_MS = 600_000
const RETRY_SECONDS = 1

/** A leaf as it was read. */
export interface ReadLeaf extends Omit<Leaf, 'time'> {
  index: number
  time: Date
}

/** A log up to its last checkpoint. */
export interface CheckpointedLog {
  id: LogId
  size: number
  note: string
}

/** The audit log of the caller's account. */
@Injectable()
export class AuditLogs {
  constructor(
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'audit' | 'secrets'>,
    private readonly views: Views,
    private readonly instance: Instance,
  ) {}

  keysOf(id: LogId): SigningKey[] {
    return signingKeysOf(this.engine.secrets, id)
  }

  /** Null if it has no leaves yet. Throws missing-scope for a member who may not see all environments. */
  async find(principal: Principal): Promise<AuditLog | null> {
    if (principal.member?.environments != null) {
      const detail = 'The audit log is for members who can use all environments.'
      throw new Problem('missing-scope', { detail })
    }
    return this.views.find('audit-leaves', () => this.engine.audit.log(logIdOf(principal.accountId)))
  }

  /** Null before the first checkpoint. Throws not-found for a log of another account. */
  async upToCheckpoint(principal: Principal, logId: string): Promise<CheckpointedLog | null> {
    const log = await this.find(principal)
    const id = logIdOf(principal.accountId)
    if (id !== logId) throw noResource('audit log', logId)
    if (log?.checkpoint == null) return null
    const { tree, checkpoint } = log
    const { size, signedAt, note } = checkpoint
    const now = this.instance.now()
    const isOld = now.getTime() - signedAt.getTime() >= SIGN_AGAIN_MS && size === tree.size
    return { id, size, note: isOld ? signCheckpoint(bodyOf(note), this.keysOf(id), now) : note }
  }

  /** As `upToCheckpoint`. Throws not-yet-checkpointed before the first one. */
  async checkpointed(principal: Principal, logId: string): Promise<CheckpointedLog> {
    const log = await this.upToCheckpoint(principal, logId)
    if (log === null) throw notYetCheckpointed()
    return log
  }

  /** Leaves of a range that the log has. */
  async leaves(log: CheckpointedLog, query: OffsetQuery): Promise<ReadLeaf[]> {
    const found = await this.read((audit) => audit.leaves(log.id, query))
    return found.map(({ index, text }) => {
      const { time, ...leaf } = readLeaf(text)
      return { ...leaf, index, time: new Date(time) }
    })
  }

  /** The place of an event in the log, which may be after the checkpoint; null if it is not there. */
  indexOf({ id }: CheckpointedLog, eventId: EventId): Promise<number | null> {
    return this.read((audit) => audit.leafOf(id, eventId))
  }

  /** Hashes of a level of tiles, one after the other. */
  async hashes({ id }: CheckpointedLog, range: HashRange): Promise<Buffer> {
    const [found = []] = await this.read((audit) => audit.hashes(id, [range]))
    return Buffer.concat(found)
  }

  /** Leaves, each after its length in two bytes. */
  async entries({ id }: CheckpointedLog, { from, to }: Omit<HashRange, 'level'>): Promise<Buffer> {
    const leaves = await this.read((audit) => audit.leaves(id, { from, to, order: 'asc', limit: to - from }))
    return Buffer.concat(
      leaves.flatMap(({ text }) => {
        const leaf = Buffer.from(text)
        const length = Buffer.alloc(2)
        length.writeUInt16BE(leaf.length)
        return [length, leaf]
      }),
    )
  }

  /** The hashes that prove that a leaf is in the log, from its sibling up to a child of the root. */
  async proof({ id, size }: CheckpointedLog, leaf: number): Promise<Buffer[]> {
    const siblings = proofOf(leaf, size)
    const found = await this.read((audit) => audit.subtreeHashes(id, siblings.flat()))
    return siblings.map((sibling) => join(found.splice(0, sibling.length)))
  }

  /** Views that are emptied to be computed again have only some of the leaves. Throws ViewsCatchingUpError then. */
  private read<Found>(query: (audit: AuditQueries) => Promise<Found>): Promise<Found> {
    return this.views.readComplete('audit-leaves', () => query(this.engine.audit))
  }
}

/** Throw this if the log has it, but its last checkpoint does not. */
export function notYetCheckpointed(): Problem {
  return new Problem('not-yet-checkpointed', {
    detail: 'No checkpoint has it yet.',
    headers: { 'retry-after': String(RETRY_SECONDS) },
  })
}
