import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInbox, mail, messagesOf, send } from '#test/harness/client.js'
import { secretIn, signIn } from '#test/harness/console.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'

const UP_WITHIN_MS = 90_000

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('npm run dev:distributed', () => {
  it(
    'starts everything, prints a greeting, accepts mail, and ends with all its processes at Ctrl-C',
    async () => {
      const dataDir = await mkdtemp(join(tmpdir(), 'mayfly-dev-'))
      const env = {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        MAYFLY_DATA_DIR: dataDir,
        MAYFLY_HTTP_PORT: '0',
        MAYFLY_SMTP_PORT: '0',
        // As from a shell with settings for other servers and a quiet log.
        KAFKA_TLS: 'true',
        LOG_LEVEL: 'warn',
      }
      const child = spawn(process.execPath, ['dist/infra/dev/distributed.js'], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
        // A terminal sends Ctrl-C to the process group.
        detached: true,
      })
      let printed = ''
      let logged = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
      child.stderr.setEncoding('utf8').on('data', (text: string) => (logged += text))
      try {
        await until(
          'the welcome',
          () => /ClickHouse .*\n/.test(printed) || child.exitCode !== null,
          UP_WITHIN_MS,
        )
        if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${logged}`)
        const [, url = ''] = /HTTP API\s+(\S+)/.exec(printed) ?? []
        const [, smtpPort = '0'] = /SMTP\s+\S+:(\d+)/.exec(printed) ?? []
        const [, apiKey = ''] = /(mayfly-dev-\w+)/.exec(printed) ?? []
        const target = { url, smtpPort: Number(smtpPort), apiKey }
        const [, broker = ''] = /Kafka +127\.0\.0\.1:(\d+)\n/.exec(printed) ?? []
        const [, redis = ''] = /Redis +redis:\/\/127\.0\.0\.1:(\d+)\n/.exec(printed) ?? []
        for (const port of [broker, redis]) await connected(Number(port))
        const [, clickhouse = '', database = ''] = /ClickHouse +(\S+) \(database (\w+)\)/.exec(printed) ?? []
        const query = encodeURIComponent('SELECT count() FROM requests')
        expect((await fetch(`${clickhouse}/?database=${database}&query=${query}`)).status).toBe(200)
        const [link = ''] = /^ +http\S+#sign-in=\S+$/m.exec(printed) ?? []
        const session = await signIn(target, secretIn(link.trim()))
        expect((await session.ask<object[]>(['GET', '/console/sessions'])).body).toHaveLength(1)
        const { id, address } = await createInbox(target)
        await send(target, address, mail('to the development servers', 'text'))
        const [message] = await messagesOf(target, id, 1)
        expect(message).toMatchObject({ subject: 'to the development servers' })
        // A start and a mail log no errors.
        expect(logged).not.toContain('"level":50')
        const second = spawnSync(process.execPath, ['dist/infra/dev/distributed.js'], {
          env,
          encoding: 'utf8',
        })
        expect(second.status).toBe(1)
        expect(second.stderr).toContain('is in use by another')
        const exited = once(child, 'close')
        process.kill(-(child.pid ?? NaN), 'SIGINT')
        expect(await exited).toEqual([0, null])
        // Kafka and Redis ran until the last role had ended.
        expect(logged.slice(logged.indexOf('"msg":"draining"'))).not.toContain('"level":50')
        await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed')
      } finally {
        child.kill('SIGKILL')
        await rm(dataDir, { recursive: true, force: true })
      }
    },
    UP_WITHIN_MS + 30_000,
  )
})

/** Resolves once the port accepts a connection. */
async function connected(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.destroy()
}
