import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * Says one line after the other, each once the one before it is answered, and resolves with the last line of each
 * answer, the greeting first. What never was answered has none: the connection closed before.
 */
export async function converse(port: number, lines: readonly string[]): Promise<string[]> {
  const socket = connect(port, '127.0.0.1')
  const answers: string[] = []
  const ended = new Promise<void>((resolve, reject) => {
    socket.once('close', () => resolve())
    socket.on('error', (error) => (answers.length === 0 ? reject(error) : resolve()))
  })
  const lineReader = createInterface({ input: socket })
  // It passes on what the socket has told already.
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

/** What RCPT TO is answered for an address. */
export async function answerToRcpt(target: { smtpPort: number }, address: string): Promise<string> {
  const lines = ['EHLO tests', 'MAIL FROM:<sender@example.com>', `RCPT TO:<${address}>`]
  const answers = await converse(target.smtpPort, lines)
  return answers[3] ?? `no answer, after ${answers.at(-1) ?? 'nothing'}`
}
