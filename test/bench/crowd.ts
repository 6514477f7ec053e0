import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { anonymousBytes } from '#libs/runtime/process/metrics.js'
import { median, quantile, type Figure } from './figure.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject, type InboxHandle } from './subject.js'
import { verificationMail } from './verification-mail.js'

const MAILS = 200
const AT_ONCE = 100
/** From one local address: the default of MAYFLY_SMTP_MAX_CONNECTIONS_PER_ADDRESS. */
const PER_ADDRESS = 500
/** Open files of this process other than connections. */
const OTHER_FILES = 500
const FLOODING_MS = 3_000

/**
 * Many idle SMTP connections, then some that flood: the memory that they take, and how much they slow a client that
 * delivers mail.
 */
export const crowd: Section = async ({ plan, profileDir, say }) => {
  const count = Math.min(plan.idleConnections, openFilesLimit() - OTHER_FILES)
  if (count < plan.idleConnections) say(`${count} connections: the limit of open files allows no more`)
  const subject = await Subject.start(profileDir, { MAYFLY_SMTP_MAX_CONNECTIONS: String(count + 100) })
  const idle: Socket[] = []
  try {
    const inbox = await subject.createInbox()
    const before = await delivered(subject, inbox)
    const fewBytes = anonymousBytes(subject.mayfly.pid)
    for (let opened = 0; opened < count; opened += AT_ONCE) {
      const sockets = Array.from({ length: Math.min(AT_ONCE, count - opened) }, (_, n) =>
        greeted(subject.mayfly.smtpPort, `127.0.1.${1 + Math.floor((opened + n) / PER_ADDRESS)}`),
      )
      idle.push(...(await Promise.all(sockets)))
    }
    const manyBytes = anonymousBytes(subject.mayfly.pid)
    const among = await delivered(subject, inbox)
    const flooding = flood(subject.mayfly.smtpPort)
    const duringFlood = await delivered(subject, inbox)
    await flooding
    const name = `accepted among ${count} idle connections`
    const figures: Figure[] = [
      {
        name: `${name}, p50`,
        unit: 'ms',
        rounds: [median(among)],
        baseline: { name: 'alone', rounds: [median(before)] },
      },
      { name: `${name}, p99`, unit: 'ms', rounds: [quantile(among, 0.99)] },
      { name: 'the same, 20 flooding besides, p99', unit: 'ms', rounds: [quantile(duringFlood, 0.99)] },
    ]
    if (fewBytes !== null && manyBytes !== null) {
      const rounds = [(manyBytes - fewBytes) / 1024 / count]
      figures.push({ name: 'memory of an idle connection', unit: 'KiB', rounds })
    }
    return figures
  } finally {
    for (const socket of idle) socket.destroy()
    await subject.dispose()
  }
}

/** Times of mails from their first byte to their 250, in milliseconds. */
async function delivered(subject: Subject, { address }: InboxHandle): Promise<number[]> {
  const client = await SmtpClient.open(subject.mayfly.smtpPort)
  const times: number[] = []
  for (let number = 0; number < MAILS; number += 1) {
    const begunAtMs = performance.now()
    await client.send(address, verificationMail(number, address))
    times.push(performance.now() - begunAtMs)
    await pause(5)
  }
  client.close()
  return times
}

async function greeted(port: number, localAddress: string): Promise<Socket> {
  const socket = createConnection({ host: '127.0.0.1', port, localAddress })
  const [greeting] = (await once(socket, 'data')) as [Buffer]
  if (!greeting.toString().startsWith('220 ')) throw new Error(`greeted with ${greeting.toString()}`)
  // Keeps reading, so that it notices when the server closes the connection.
  socket.on('error', () => undefined).resume()
  return socket
}

/** Sessions that send NOOP as fast as it is taken, each a new one when it is cut. */
async function flood(port: number): Promise<void> {
  const endsAtMs = performance.now() + FLOODING_MS
  const noops = Buffer.from('NOOP\r\n'.repeat(1_100))
  const work = async () => {
    while (performance.now() < endsAtMs) {
      const socket = await greeted(port, '127.0.2.1')
      const closed = once(socket, 'close')
      socket.write(noops)
      await closed
    }
  }
  await Promise.all(Array.from({ length: 20 }, work))
}

function openFilesLimit(): number {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } }
  const soft = report.userLimits?.open_files?.soft
  return typeof soft === 'number' ? soft : 1_024
}
