import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * Sends the lines one by one, each after the reply to the previous one. Resolves with the last line of each reply,
 * starting with the greeting. If the connection closes early, later lines have no reply. Bytes are sent as they are.
 */
export async function converse(
  port: number,
  lines: readonly (string | Buffer)[],
  { stopsAtRefusal = false } = {},
): Promise<string[]> {
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
    const isOver = stopsAtRefusal && !/^[23]/.test(line)
    if (next !== undefined && !isOver) socket.write(typeof next === 'string' ? `${next}\r\n` : next)
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

/**
 * Sends mail data unchanged, already dot-stuffed and terminated, as no mail client does. Resolves with the server's
 * last line. Rejects with its first refusal.
 */
export async function sendBytes(target: { smtpPort: number }, to: string, data: Buffer): Promise<string> {
  const from = 'MAIL FROM:<sender@example.com> BODY=8BITMIME'
  const lines = ['EHLO client.example', from, `RCPT TO:<${to}>`, 'DATA', data]
  const answers = await converse(target.smtpPort, lines, { stopsAtRefusal: true })
  const refusal = answers.find((answer) => !/^[23]/.test(answer))
  const last = answers[lines.length]
  if (refusal !== undefined || last === undefined) throw new Error(refusal ?? 'the connection was lost')
  return last
}
