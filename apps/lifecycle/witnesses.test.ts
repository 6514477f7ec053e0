import { sign } from 'node:crypto'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { checkpointBody, signingKey, verifierKey } from '#libs/domain/audit/checkpoint.js'
import type { AuditEvent } from '#libs/domain/audit/events.js'
import { logIdOf, originOf } from '#libs/domain/audit/leaf.js'
import { fold, hashOfLeaf } from '#libs/domain/audit/tree.js'
import { parsePolicy } from '#libs/domain/audit/witness-policy.js'
import { brand } from '#libs/domain/ids/typeid.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { until } from '#test/harness/until.js'
import { Witnesses, type UncosignedLog } from './witnesses.js'

const COSIGNATURE = 0x04
const LEAVES = Array.from({ length: 16 }, (_, index) => hashOfLeaf(`leaf ${index}`))
const KEY = signingKey(Buffer.alloc(32, 3))
const OTHER = signingKey(Buffer.alloc(32, 4))
const [NAME, OTHER_NAME] = ['w.example/1', 'w.example/2']
const idOf = (letter: string) => logIdOf(brand('acc', `acc_${letter.repeat(26)}`))
const [logId, secondLogId] = [idOf('1'), idOf('2')]

const logOf = (size: number, id = logId): UncosignedLog => {
  const root = fold(LEAVES.slice(0, size)).toString('base64')
  return { id, cosigned: null, checkpoint: { size, root, takenAt: new Date('2026-11-30T12:00:00.000Z') } }
}

/** The line of a genuine cosignature. */
function lineOf({ id, checkpoint }: UncosignedLog, key = KEY, name = NAME): string {
  const time = Buffer.alloc(8)
  time.writeBigUInt64BE(1_800_000_000n)
  const message = `cosignature/v1\ntime 1800000000\n${checkpointBody(originOf(null, id), checkpoint)}`
  const [, keyId = ''] = verifierKey(name, key, COSIGNATURE).split('+')
  const bytes = [Buffer.from(keyId, 'hex'), time, sign(null, Buffer.from(message), key.privateKey)]
  return `\u2014 ${name} ${Buffer.concat(bytes).toString('base64')}\n`
}

describe('witnesses', () => {
  const log8 = logOf(8)
  let endpoint: HttpEndpoint
  let witnesses: Witnesses
  let recorded: AuditEvent[]
  let output: string

  const logged = (what: string) => until(what, () => Promise.resolve(output.includes(what)))

  async function start(
    answer: Parameters<typeof startEndpoint>[0],
    policyOf = (url: string) => `witness w ${verifierKey(NAME, KEY, COSIGNATURE)} ${url}\nquorum w`,
  ): Promise<void> {
    endpoint = await startEndpoint(answer)
    const secrets = MasterKeys.parse(Buffer.alloc(32, 7).toString('base64'))
    if (secrets === null) throw new Error('the key is malformed')
    recorded = []
    output = ''
    const write = (chunk: Buffer, _encoding: string, done: () => void) => {
      output += chunk.toString()
      done()
    }
    witnesses = new Witnesses({
      policy: parsePolicy(policyOf(`http://127.0.0.1:${endpoint.port}`)),
      publicUrl: null,
      secrets,
      audit: {
        subtreeHashes: (_logId, subtrees) =>
          Promise.resolve(
            subtrees.map(({ height, index }) =>
              fold(LEAVES.slice(index * 2 ** height, (index + 1) * 2 ** height)),
            ),
          ),
      },
      record: (event) => Promise.resolve(void recorded.push(event)),
      logger: pino(new Writable({ write })),
    })
  }

  afterEach(async () => {
    await witnesses.stop()
    await endpoint.dispose()
  })

  it('are sent a checkpoint, and of the answer only the genuine cosignature is recorded', async () => {
    const lines = ['junk', `\u2014 ${NAME} AAAA`, lineOf(log8, OTHER), lineOf(logOf(4)), lineOf(log8)]
    await start((response) => response.end(lines.join('\n')))
    witnesses.add({ ...log8, cosigned: { ...logOf(4).checkpoint, cosignatures: [] } })
    await until('the cosignature', () => Promise.resolve(recorded.length > 0))
    const cosignatures = [lineOf(log8)]
    expect(recorded).toEqual([{ type: 'CheckpointCosigned', logId, ...log8.checkpoint, cosignatures }])
    const [request] = endpoint.requests
    const proof = fold(LEAVES.slice(4, 8)).toString('base64')
    expect(request?.url).toBe('/add-checkpoint')
    expect(request?.body.startsWith(`old 4\n${proof}\n\n${originOf(null, logId)}\n8\n`)).toBe(true)
  })

  it('are asked again with the size that they have seen', async () => {
    const sizes = ['2\n', '4\n']
    await start((response) => {
      const size = sizes.shift()
      if (size === undefined) response.end(lineOf(log8))
      else response.writeHead(409, { 'content-type': 'text/x.tlog.size' }).end(size)
    })
    witnesses.add(log8)
    await until('the cosignature', () => Promise.resolve(recorded.length > 0))
    expect(endpoint.requests.map(({ body }) => body.split('\n')[0])).toEqual(['old 0', 'old 2', 'old 4'])
  })

  it.each([
    ['another root', 409, '0\n', 'it has seen another root of the first 0 leaves'],
    ['a later checkpoint', 409, '16\n', 'it has seen a checkpoint of 16 leaves, which is later than 8'],
    ['no size', 409, '', 'it answered 409 without the size'],
    ['a size that is not decimal', 409, '0x4', 'it answered 409 without the size'],
    ['an error', 422, 'the proof is wrong\n', 'it answered 422: the proof is wrong'],
    ['no line', 200, '', 'its cosignature is not genuine'],
    ['a line of another checkpoint', 200, lineOf(logOf(4)), 'its cosignature is not genuine'],
    ['a line of another key', 200, lineOf(log8, OTHER), 'its cosignature is not genuine'],
    ['too much', 200, 'x'.repeat(100_000), 'its answer is too long'],
  ])('have not cosigned if they answer %s, which is logged once', async (_what, status, body, why) => {
    await start((response) => response.writeHead(status).end(body))
    witnesses.add(log8)
    await logged(why)
    witnesses.add(log8)
    await until('a second request', () => Promise.resolve(endpoint.requests.length === 2))
    witnesses.add(logOf(8, secondLogId))
    await logged(secondLogId)
    expect(output.split(why)).toHaveLength(3)
    expect(recorded).toEqual([])
  })

  it('are not followed elsewhere, and not asked for a while after that', async () => {
    await start((response) => response.writeHead(307, { location: '/elsewhere' }).end())
    witnesses.add(log8)
    await logged('has not cosigned')
    witnesses.add(log8)
    await witnesses.stop()
    expect(endpoint.requests).toHaveLength(1)
  })

  it('do not count alone if the quorum needs more', async () => {
    const [one, other] = [verifierKey(NAME, KEY, COSIGNATURE), verifierKey(OTHER_NAME, OTHER, COSIGNATURE)]
    let isAway = true
    await start(
      (response, { url }) => {
        if (url.startsWith('/one')) response.end(lineOf(log8))
        else if (isAway) response.writeHead(503).end()
        else response.end(lineOf(log8, OTHER, OTHER_NAME))
      },
      (url) => `witness a ${one} ${url}/one\nwitness b ${other} ${url}/other\ngroup g all a b\nquorum g`,
    )
    witnesses.add(log8)
    await logged('it answered 503')
    expect(recorded).toEqual([])
    isAway = false
    witnesses.add(log8)
    await until('both cosignatures', () => Promise.resolve(recorded.length > 0))
    expect(recorded).toMatchObject([{ cosignatures: [lineOf(log8), lineOf(log8, OTHER, OTHER_NAME)] }])
  })
})
