import { Controller, Get, Param } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import { tilePath } from '#libs/domain/audit/tiles.js'
import { TILE_WIDTH } from '#libs/domain/audit/tree.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { Reply } from '../http/headers.js'
import { BYTES, Produces } from '../http/media-types.js'
import { notFound } from '../http/problems.js'
import { AuditLogs } from './audit-logs.service.js'

/** What tiles consist of never changes. */
const IMMUTABLE = 'private, max-age=604800, immutable'

/** The index of a tile in groups of three digits, and the width of a partial one (C2SP tlog-tiles). */
const TILE_PATH = /^((?:x\d{3}\/){0,3}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/

/** The tiles of an audit log up to its last checkpoint, for tools that read transparency logs (C2SP tlog-tiles). */
@Controller('v1/audit/logs/:logId')
export class TilesController {
  constructor(private readonly logs: AuditLogs) {}

  /** `level` is `entries` for the leaves. */
  @Get([
    'tile/:level/:one',
    'tile/:level/:one/:two',
    'tile/:level/:one/:two/:three',
    'tile/:level/:one/:two/:three/:four',
  ])
  @RequireScope('audit')
  @Produces(BYTES)
  async getTile(
    @Caller() principal: Principal,
    @Param() { logId = '', level = '', ...segments }: Readonly<Record<string, string>>,
    @Reply() reply: FastifyReply,
  ) {
    const log = await this.logs.checkpointed(principal, logId)
    const { one, two, three, four } = segments
    const path = [one, two, three, four].filter((segment) => segment !== undefined).join('/')
    // Level 6 would need 2^48 leaves, and what is not a level has no tiles.
    const height = level === 'entries' ? 0 : /^[0-5]$/.test(level) ? Number(level) : Infinity
    const hashCount = Math.floor(log.size / TILE_WIDTH ** height)
    const range = readTilePath(path, hashCount)
    if (range === null) throw notFound(`The log has no tile ${level}/${path} at its checkpoint.`)
    const bytes = await (level === 'entries'
      ? this.logs.entries(log, range)
      : this.logs.hashes(log, { level: height, ...range }))
    // After the read, so that no problem is cached instead of the tile.
    void reply.header('cache-control', IMMUTABLE)
    return bytes
  }
}

/** The hashes of a tile; null if a level with so many hashes has no such tile. */
function readTilePath(path: string, hashCount: number): { from: number; to: number } | null {
  const [, digits, partial] = TILE_PATH.exec(path) ?? []
  if (digits === undefined) return null
  const index = Number(digits.replaceAll(/[x/]/g, ''))
  // The shortest form is the only one.
  if (digits !== tilePath(index)) return null
  const width = partial === undefined ? TILE_WIDTH : Number(partial)
  const from = index * TILE_WIDTH
  const to = from + width
  const isPartial = partial !== undefined
  return to > hashCount || (isPartial && width >= TILE_WIDTH) ? null : { from, to }
}
