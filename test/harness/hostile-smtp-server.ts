import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'

export type SmtpEvent = 'greeting' | 'EHLO' | 'MAIL' | 'RCPT' | 'DATA' | 'content' | 'RSET' | 'QUIT'

/**
 * The reply to a command, whose text is given, or to a content, whose source is given. By default the server accepts;
 * `close` ends the connection without a reply, `silence` never replies.
 */
export type Reaction = (event: SmtpEvent, text: string) => string | null | Promise<string | null>

export interface HostileSmtpServer {
  port: number
  /** The sources of the mails that were answered 250, without dot-stuffing. */
  accepted: string[]
  /** Commands that RFC 5321 or RFC 2920 forbids at that point. */
  violations: string[]
  /** The number of connections, and of those that were open at the same time. */
  connections: { total: number; max: number }
  close(): Promise<void>
}

const DEFAULT_REPLIES: Readonly<Record<SmtpEvent, string>> = {
  greeting: '220 hostile.test',
  EHLO: '250-hostile.test\r\n250 PIPELINING',
  MAIL: '250 OK',
  RCPT: '250 OK',
  DATA: '354 go on',
  content: '250 OK',
  RSET: '250 OK',
  QUIT: '221 bye',
}

/** An SMTP server in this process whose replies the test decides. A reaction of null stands for the default reply. */
export async function hostileSmtpServer(react: Reaction): Promise<HostileSmtpServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    hostile.connections.total += 1
    // Later, because an earlier connection that the client has closed may still be open here.
    setTimeout(() => {
      hostile.connections.max = Math.max(hostile.connections.max, sockets.size)
    }, 50).unref()
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
    void serve(socket, react, hostile)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const hostile: HostileSmtpServer = {
    port: (server.address() as AddressInfo).port,
    accepted: [],
    violations: [],
    connections: { total: 0, max: 0 },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return hostile
}

async function serve(socket: Socket, react: Reaction, hostile: HostileSmtpServer): Promise<void> {
  const session = { received: '', hasPipelining: false, isTransaction: false, isContent: false }
  const reply = async (event: SmtpEvent, text: string): Promise<string> => {
    const answer = (await react(event, text)) ?? DEFAULT_REPLIES[event]
    if (answer === 'close') socket.destroy()
    else if (answer !== 'silence' && socket.writable) socket.write(`${answer}\r\n`)
    return answer
  }
  const takeCommand = async (line: string) => {
    const verb = line.split(' ')[0] as SmtpEvent
    if (verb === 'MAIL' && session.isTransaction) hostile.violations.push(`nested: ${line}`)
    if (!session.hasPipelining && session.received !== '') hostile.violations.push(`pipelined: ${line}`)
    const answer = await reply(verb, line)
    if (verb === 'EHLO') session.hasPipelining = answer.includes('PIPELINING')
    if (verb === 'MAIL') session.isTransaction = answer.startsWith('250')
    if (verb === 'RSET') session.isTransaction = false
    if (verb === 'DATA') session.isContent = answer.startsWith('354')
    if (verb === 'QUIT') socket.end()
  }
  const takeContent = async (source: string) => {
    session.isTransaction = session.isContent = false
    const answer = await reply('content', source)
    if (answer.startsWith('250')) hostile.accepted.push(source)
  }
  await reply('greeting', '')
  try {
    for await (const chunk of socket.setEncoding('latin1')) {
      session.received += chunk as string
      while (!socket.destroyed) {
        const isEmpty = session.isContent && session.received.startsWith('.\r\n')
        const end =
          session.isContent && !isEmpty
            ? session.received.indexOf('\r\n.\r\n')
            : session.received.indexOf('\r\n')
        if (end < 0) break
        const text = isEmpty ? '' : session.received.slice(0, end)
        session.received = session.received.slice(end + (session.isContent && !isEmpty ? 5 : 2))
        if (isEmpty) await takeContent('')
        else if (session.isContent) await takeContent(`${text}\r\n`.replaceAll('\r\n..', '\r\n.'))
        else await takeCommand(text)
      }
    }
  } catch {
    // The connection was lost.
  }
}
