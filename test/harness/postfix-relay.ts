import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from './until.js'
import { freePort } from '#infra/servers/ports.js'
import { openWire } from './wire.js'

const run = promisify(execFile)
const COMMAND_WITHIN_MS = 20_000
const STOPPED_WITHIN_MS = 10_000

/** A Postfix that relays all mail to one server. */
export interface PostfixRelay {
  /** The port on which it accepts mail over SMTP. */
  port: number
  /** Submits a mail with `sendmail`, as a local program does. */
  submit(mail: { from: string; to: readonly string[]; source: string }): Promise<void>
  /** Retries deferred mail at once. */
  flush(): Promise<void>
  log(): Promise<string>
  /** Resolves once all its processes have ended and its folder is gone. */
  stop(): Promise<void>
}

/**
 * Runs an instance of Debian's Postfix with its own configuration and queue, which relays all mail to a port on
 * 127.0.0.1 and requires STARTTLS there. It needs root, like every Postfix. Resolves once it listens.
 */
export async function startPostfixRelay(smtpPort: number): Promise<PostfixRelay> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-postfix-'))
  // Postfix's processes run as the user postfix and must be able to enter the folder.
  await chmod(folder, 0o755)
  const [port, config, logPath] = [await freePort(), join(folder, 'config'), join(folder, 'maillog')]
  await mkdir(config)
  await mkdir(join(folder, 'queue'))
  await mkdir(join(folder, 'data'))
  await run('chown', ['postfix', join(folder, 'data')])
  await writeFile(join(config, 'main.cf'), settingsOf({ folder, logPath, smtpPort }))
  await writeFile(join(config, 'master.cf'), servicesOf(port))
  const postfix = async (program: string, ...args: string[]) =>
    run(program, ['-c', config, ...args], { timeout: COMMAND_WITHIN_MS })
  // Creates the folders of the queue.
  await postfix('postfix', 'check')
  const { stdout } = await run('postconf', ['-h', 'daemon_directory'])
  const master = spawn(join(stdout.trim(), 'master'), ['-c', config, '-d'], {
    stdio: 'ignore',
    detached: true,
    env: { PATH: process.env.PATH, MAIL_CONFIG: config, MAIL_LOGTAG: 'postfix' },
  })
  const ended = once(master, 'exit')
  await until('Postfix to listen', () =>
    openWire(port).then(
      (wire) => {
        wire.close()
        return true
      },
      () => false,
    ),
  )
  return {
    port,
    async submit({ from, to, source }) {
      const sendmail = spawn('sendmail', ['-C', config, '-i', '-f', from, '--', ...to], {
        stdio: ['pipe', 'ignore', 'inherit'],
        timeout: COMMAND_WITHIN_MS,
      })
      sendmail.stdin.end(source)
      const [code] = (await once(sendmail, 'exit')) as [number | null]
      if (code !== 0) throw new Error(`sendmail ended with ${code}`)
    },
    async flush() {
      await postfix('postqueue', '-f')
    },
    log: () => readFile(logPath, 'utf8'),
    async stop() {
      // The detached master leads a process group with all its children.
      const kill = (signal: NodeJS.Signals) => {
        if (master.pid !== undefined && master.exitCode === null) process.kill(-master.pid, signal)
      }
      const timer = setTimeout(() => kill('SIGKILL'), STOPPED_WITHIN_MS)
      kill('SIGTERM')
      await ended
      clearTimeout(timer)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function settingsOf(paths: { folder: string; logPath: string; smtpPort: number }): string {
  const { folder, logPath, smtpPort } = paths
  const settings = {
    compatibility_level: '3.6',
    queue_directory: join(folder, 'queue'),
    data_directory: join(folder, 'data'),
    maillog_file: logPath,
    maillog_file_prefixes: folder,
    syslog_name: 'postfix',
    myhostname: 'relay.example',
    mydestination: '',
    inet_interfaces: '127.0.0.1',
    inet_protocols: 'ipv4',
    mynetworks: '127.0.0.0/8',
    relayhost: `[127.0.0.1]:${smtpPort}`,
    smtp_tls_security_level: 'encrypt',
    smtp_tls_loglevel: '1',
    alias_maps: '',
    local_recipient_maps: '',
    // Deferred mail waits for `flush`.
    queue_run_delay: '1h',
    minimal_backoff_time: '1h',
    maximal_backoff_time: '1h',
    smtpd_relay_restrictions: 'permit_mynetworks, reject',
  }
  return Object.entries(settings)
    .map(([name, value]) => `${name} = ${value}\n`)
    .join('')
}

/** Columns: service, type, private, unprivileged, chroot, wakeup, maximum of processes, program. */
function servicesOf(port: number): string {
  const services = [
    `127.0.0.1:${port} inet n - n - - smtpd`,
    'pickup unix n - n 60 1 pickup',
    'cleanup unix n - n - 0 cleanup',
    'qmgr unix n - n 3600 1 qmgr',
    'tlsmgr unix - - n 1000? 1 tlsmgr',
    'rewrite unix - - n - - trivial-rewrite',
    'bounce unix - - n - 0 bounce',
    'defer unix - - n - 0 bounce',
    'trace unix - - n - 0 bounce',
    'verify unix - - n - 1 verify',
    'flush unix n - n 1000? 0 flush',
    'proxymap unix - - n - - proxymap',
    'smtp unix - - n - - smtp',
    'relay unix - - n - - smtp',
    'showq unix n - n - - showq',
    'error unix - - n - - error',
    'retry unix - - n - - error',
    'discard unix - - n - - discard',
    'anvil unix - - n - 1 anvil',
    'scache unix - - n - 1 scache',
    'postlog unix-dgram n - n - 1 postlogd',
  ]
  return services.map((line) => `${line}\n`).join('')
}
