import { Controller, Get, Param, Query, Res } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import { RECORDS_AT_ONCE, tilePath } from '#libs/domain/audit/tiles.js'
import { TILE_WIDTH } from '#libs/domain/audit/tree.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { RequestBudgets } from '../http/budgets.js'
import { Reply } from '../http/headers.js'
import { LinesAnswer } from '../http/lines-answer.js'
import { NDJSON, Produces } from '../http/media-types.js'
import { invalid, notFound } from '../http/problems.js'
import { FromDigits, IsWholeNumber } from '../http/rules.js'
import { nextTurn } from '../http/request-turns.js'
import { AuditLogs } from './audit-logs.service.js'

const PLAIN_TEXT = 'text/plain; charset=utf-8'
const BYTES = 'application/octet-stream'
/** What tiles consist of never changes. */
const IMMUTABLE = 'private, max-age=604800, immutable'

class LeafRange {
  @IsWholeNumber(0, Number.MAX_SAFE_INTEGER)
  @FromDigits()
  from?: number

  @IsWholeNumber(0, Number.MAX_SAFE_INTEGER)
  @FromDigits()
  to?: number
}

/** The index of a tile in groups of three digits, and the width of a partial one (C2SP tlog-tiles). */
const TILE_PATH = /^((?:x\d{3}\/){0,3}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/

/** An audit log as files, for tools that read transparency logs (C2SP tlog-tiles). Tiles end at the last checkpoint. */
@Controller('v1/audit/logs/:logId')
export class TilesController {
  constructor(
    private readonly logs: AuditLogs,
    private readonly budgets: RequestBudgets,
    private readonly lines: LinesAnswer,
  ) {}

  @Get('checkpoint')
  @RequireScope('audit')
  @Produces(PLAIN_TEXT)
  async getCheckpoint(@Caller() principal: Principal, @Param('logId') logId: string) {
    return this.logs.sign(await this.logs.checkpointed(principal, logId))
  }

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
    const height = level === 'entries' ? 0 : readLevel(level)
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

  /**
   * The records of the leaves of a range, by default the first 256, as they are hashed, each on a line; an empty line for
   * one that the event log no longer has. If they can't be read to the end, the last line is a problem instead.
   */
  @Get('records')
  @RequireScope('audit')
  @Produces(NDJSON)
  async getRecords(
    @Caller() principal: Principal,
    @Param('logId') logId: string,
    @Query() range: LeafRange,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { from = 0, to = from + RECORDS_AT_ONCE } = range
    if (to <= from || to - from > RECORDS_AT_ONCE) {
      const detail = `to must be more than from, by ${RECORDS_AT_ONCE} at most`
      throw invalid({ detail, parameter: 'to' })
    }
    const { request } = reply
    const lines = async function* (records: AsyncGenerator<string | null>) {
      for await (const record of records) {
        yield `${record ?? ''}\n`
        await nextTurn(request)
      }
    }
    // Mail may be large: an account has a batch at a time.
    await this.budgets.bulk(reply, async () => {
      const log = await this.logs.checkpointed(principal, logId)
      const end = range.to === undefined ? Math.min(to, log.size) : to
      if (end > log.size || from >= end) throw notFound(`The log has ${log.size} leaves at its checkpoint.`)
      const leaves = await this.logs.leaves(log, { from, to: end, order: 'asc', limit: end - from })
      const records = lines(this.logs.records(leaves))
      await this.lines.send(reply, 200, records, (problem) => `{"problem":${problem}}\n`)
    })
  }
}

/** Level 6 would need 2^48 leaves. Infinity for what is not a level: it has no tiles. */
function readLevel(text: string): number {
  return /^[0-5]$/.test(text) ? Number(text) : Infinity
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
