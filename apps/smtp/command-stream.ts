import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'
import type { MailData } from './mail-data.js'

/**
 * Commands as smtp-server reads them; a mail's data by MailData instead of through a stream for each mail.
 * What is pipelined behind a mail (RFC 2920) waits until that mail has been answered.
 */
export class CommandStream extends SMTPStream {
  private mail: { data: MailData; onEnd: (readOn: () => void) => void } | null = null

  /** What comes from now on is the mail; `onEnd` is given what lets the stream read on. */
  receive(data: MailData, onEnd: (readOn: () => void) => void): void {
    this.mail = { data, onEnd }
    this._dataMode = true
  }

  /** Whether a mail has been begun and its end has not come yet. */
  isReceiving(): boolean {
    return this.mail !== null
  }

  override _feedDataStream(chunk: Buffer, done: (error?: Error | null) => void): void {
    if (this.mail === null) throw new Error('data came without a mail to take it')
    const { data, onEnd } = this.mail
    const rest = data.write(chunk)
    if (rest === null) {
      done()
      return
    }
    this.mail = null
    this._dataMode = false
    this._remainder = ''
    onEnd(() => this._write(rest, 'buffer', done))
  }
}
