import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { call, createInbox } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { freePort } from '#infra/servers/ports.js'
import { runProgram } from '#test/harness/run-program.js'
import { describeWith } from '#test/harness/tools.js'
import {
  auditLogOf,
  fileOf,
  verifyCheckpoint,
  verifyCosignature,
  type AuditLogJson,
} from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'

/** SHA-256 of nothing: the root of a log without leaves. */
const NO_LEAVES = '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='

/** litewitness of Torchwood, another implementation of C2SP tlog-witness. */
describeWith('litewitness')('a witness of audit logs', () => {
  const children: ChildProcess[] = []
  let folder: string
  let mayfly: Mayfly
  let log: AuditLogJson
  let witnessKey: string

  const start = (program: string, ...args: string[]) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(child)
    return child
  }

  /** Starts a witness with a new key. Resolves with its URL. */
  async function startWitness(): Promise<string> {
    const [key, socket] = [join(folder, 'key'), join(folder, 'agent.sock')]
    await runProgram('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key], {})
    start('ssh-agent', '-D', '-a', socket)
    const env = { PATH: process.env.PATH ?? '', SSH_AUTH_SOCK: socket }
    await until('the agent', async () => (await runProgram('ssh-add', [key], { env })).code === 0)
    const { stdout } = await runProgram('ssh-keygen', ['-l', '-f', `${key}.pub`], {})
    const [, fingerprint = ''] = stdout.split(' ')
    const address = `127.0.0.1:${await freePort()}`
    const args = ['-name', 'witness.test/w', '-key', fingerprint, '-ssh-agent', socket, '-listen', address]
    const witness = start('litewitness', '-db', join(folder, 'witness.db'), ...args)
    let output = ''
    witness.stderr.on('data', (text: Buffer) => (output += text.toString()))
    witnessKey = await until('its key', () => Promise.resolve(/vkey=(\S+)/.exec(output)?.[1] ?? null))
    return `http://${address}`
  }

  /** Makes the log known to the witness, as its command witnessctl does. */
  function addLog({ origin, public_key: key }: AuditLogJson): void {
    const database = new DatabaseSync(join(folder, 'witness.db'))
    database.prepare('INSERT INTO log VALUES (?, 0, ?)').run(origin, NO_LEAVES)
    database.prepare('INSERT INTO key VALUES (?, ?)').run(origin, key)
    database.close()
  }

  const logged = () => Object.values(mayfly.output()).join('')
  const noteOf = () => fileOf(mayfly, `${log.id}/checkpoint`).then(String)
  const checkpoint = (least: number) =>
    until('a cosigned checkpoint', async () => {
      const note = await noteOf().catch(() => null)
      return note !== null && verifyCheckpoint(note, log.public_key).size >= least ? note : null
    })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-witness-'))
    const url = await startWitness()
    const policy = join(folder, 'policy')
    await writeFile(policy, `witness w ${witnessKey} ${url}\nquorum w\n`)
    mayfly = await startMayfly({ env: { MAYFLY_AUDIT_WITNESS_POLICY: policy } })
    log = await auditLogOf(mayfly)
  })
  afterAll(async () => {
    await mayfly.dispose()
    await Promise.all(
      children.map(async (child) => {
        if (child.exitCode !== null) return
        const exited = once(child, 'exit')
        child.kill()
        await exited
      }),
    )
    await rm(folder, { recursive: true, force: true })
  })

  it('cosigns checkpoints, which are not served before', async () => {
    await until('an attempt', () => Promise.resolve(logged().includes('has not cosigned')))
    await expect(noteOf()).rejects.toThrow('not-yet-checkpointed')
    addLog(log)
    await createInbox(mayfly)
    const note = await checkpoint(3)
    expect(verifyCosignature(note, witnessKey)).toBeGreaterThan(Date.now() / 1_000 - 60)
  })

  it('cosigns what continues the checkpoints that it has seen, and nothing else', async () => {
    const { size } = verifyCheckpoint(await noteOf(), log.public_key)
    await mayfly.end('SIGTERM')
    const [eventLog, backup] = ['event-log', 'backup'].map((name) => join(mayfly.dataDir, name)) as [
      string,
      string,
    ]
    await cp(eventLog, backup, { recursive: true })
    mayfly = await mayfly.restart()
    for (let number = 0; number < 5; number += 1) await createInbox(mayfly)
    const note = await checkpoint(size + 5)
    verifyCosignature(note, witnessKey)

    await mayfly.end('SIGTERM')
    await rm(join(mayfly.dataDir, 'read-model'), { recursive: true })
    await rm(eventLog, { recursive: true })
    await cp(backup, eventLog, { recursive: true })
    mayfly = await mayfly.restart()
    await until('readiness', async () => (await call(mayfly, 'GET', '/readyz')).status === 200)
    for (let number = 0; number < 12; number += 1) await createInbox(mayfly)
    await until('a refusal', () => Promise.resolve(logged().includes('has not cosigned')))
    const { size: shown } = verifyCheckpoint(await noteOf(), log.public_key)
    expect(shown).toBeLessThanOrEqual(size)
  })
})
