import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * Sends the lines one by one, each after the reply to the previous one. Resolves with the last line of each reply,
 * starting with the greeting. If the connection closes early, later lines have no reply.
 */
export async function converse(port: number, lines: readonly string[]): Promise<string[]> {
  const socket = connect(port, '127.0.0.1')
  const answers: string[] = []
  const ended = new Promise<void>((resolve, reject) => {
    socket.once('close', () => resolve())
    socket.on('error', (error) => (answers.length === 0 ? reject(error) : resolve()))
  })
  const lineReader = createInterface({ input: socket })
  // readline repeats the socket's error, which is handled above.
  lineReader.on('error', () => lineReader.close())
  lineReader.on('line', (line) => {
    if (/^\d{3}-/.test(line)) return
    const next = lines[answers.push(line) - 1]
    if (next !== undefined) socket.write(`${next}\r\n`)
    else if (!socket.writableEnded) socket.end('QUIT\r\n')
  })
  await ended
  return answers.slice(0, lines.length + 1)
}

/** The reply to RCPT TO for an address. */
export async function answerToRcpt(target: { smtpPort: number }, address: string): Promise<string> {
  const lines = ['EHLO tests', 'MAIL FROM:<sender@example.com>', `RCPT TO:<${address}>`]
  const answers = await converse(target.smtpPort, lines)
  return answers[3] ?? `no answer, after ${answers.at(-1) ?? 'nothing'}`
}
