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
  let witnessArgs: string[]
  let witness: ChildProcess
  let witnessKey: string

  const start = (program: string, ...args: string[]) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    children.push(child)
    return child
  }

  const stop = async (child: ChildProcess) => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill()
    await exited
  }

  /** Starts the agent that has the key of the witness. Returns what the witness is to be started with. */
  async function startAgent(): Promise<string[]> {
    const [key, socket] = [join(folder, 'key'), join(folder, 'agent.sock')]
    await runProgram('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key], {})
    start('ssh-agent', '-D', '-a', socket)
    const env = { PATH: process.env.PATH ?? '', SSH_AUTH_SOCK: socket }
    await until('the agent', async () => (await runProgram('ssh-add', [key], { env })).code === 0)
    const { stdout } = await runProgram('ssh-keygen', ['-l', '-f', `${key}.pub`], {})
    const [, fingerprint = ''] = stdout.split(' ')
    const address = ['-listen', `127.0.0.1:${await freePort()}`]
    const database = ['-db', join(folder, 'witness.db')]
    return ['-name', 'witness.test/w', '-key', fingerprint, '-ssh-agent', socket, ...address, ...database]
  }

  async function startWitness(): Promise<void> {
    const child = start('litewitness', ...witnessArgs)
    let output = ''
    child.stderr.on('data', (text: Buffer) => (output += text.toString()))
    witnessKey = await until('its key', () => Promise.resolve(/vkey=(\S+)/.exec(output)?.[1] ?? null))
    witness = child
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
    witnessArgs = await startAgent()
    await startWitness()
    const url = `http://${witnessArgs[witnessArgs.indexOf('-listen') + 1]}`
    const policy = join(folder, 'policy')
    await writeFile(policy, `witness w ${witnessKey} ${url}\nquorum w\n`)
    mayfly = await startMayfly()
    log = await auditLogOf(mayfly)
    await checkpoint(2)
    await mayfly.end('SIGTERM')
    const { dataDir } = mayfly
    mayfly = await startMayfly({ dataDir, env: { MAYFLY_AUDIT_WITNESS_POLICY: policy } })
  })
  afterAll(async () => {
    await mayfly.dispose()
    await Promise.all(children.map(stop))
    await rm(folder, { recursive: true, force: true })
  })

  it('cosigns checkpoints, also of before the policy was set, which are not served before', async () => {
    await until('an attempt', () => Promise.resolve(logged().includes('has not cosigned')))
    await expect(noteOf()).rejects.toThrow('not-yet-checkpointed')
    addLog(log)
    const note = await checkpoint(2)
    expect(verifyCosignature(note, witnessKey)).toBeGreaterThan(Date.now() / 1_000 - 60)
  })

  it('is asked again, also after a kill, if it has not cosigned the last checkpoint', async () => {
    const { size } = verifyCheckpoint(await noteOf(), log.public_key)
    const lines = logged().length
    await stop(witness)
    await createInbox(mayfly)
    await until('an attempt', () => Promise.resolve(logged().slice(lines).includes('has not cosigned')))
    await mayfly.end('SIGKILL')
    mayfly = await mayfly.restart()
    expect(verifyCheckpoint(await noteOf(), log.public_key).size).toBe(size)
    await startWitness()
    verifyCosignature(await checkpoint(size + 1), witnessKey)
  })

  it('cosigns what continues the checkpoints that it has seen, and nothing else', async () => {
    const { size } = verifyCheckpoint(await noteOf(), log.public_key)
    await mayfly.end('SIGTERM')
    const eventLog = join(mayfly.dataDir, 'event-log')
    const backup = join(mayfly.dataDir, 'backup')
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
    await until('a refusal', () => Promise.resolve(/it answered 422|another root/.test(logged())))
    const { size: shown } = verifyCheckpoint(await noteOf(), log.public_key)
    expect(shown).toBeLessThanOrEqual(size)
  })
})
