import { setTimeout as pause } from 'node:timers/promises'
import { SmtpClient } from '#test/bench/smtp-client.js'
import { BOMBS } from './bombs.js'

/*
 * A process of its own that sends dear mails, one after the other on each connection, until its parent lets go of it.
 * Its argument is a BomberOrder as JSON; it tells its parent of each mail that was accepted.
 */

export interface BomberOrder {
  smtpPort: number
  connections: number
  addresses: readonly string[]
}

const MIB = 1024 * 1024
const AFTER_REFUSAL_MS = 50

/** The dearest of each kind; no line of them begins with a dot. */
const SENT: readonly [name: string, bytes: number][] = [
  ['UTF-7', 2 * MIB],
  ['line breaks', 6 * MIB],
  ['recipients in encoded words', 900_000],
  ['nested groups', 900_000],
  ['paragraphs', 3 * MIB],
  ['closing tags of none', 3 * MIB],
  ['parts with many headers', 4 * MIB],
  ['an attachment in base64', 20 * MIB],
]

const { smtpPort, connections, addresses } = JSON.parse(process.argv[2] ?? '') as BomberOrder
const sources = SENT.map(([name, bytes]) => {
  const bomb = BOMBS[name]
  if (bomb === undefined) throw new Error(`there is no bomb of ${name}`)
  return bomb(bytes)
})
let next = 0

async function work(): Promise<void> {
  for (;;) {
    try {
      const client = await SmtpClient.open(smtpPort)
      for (;;) {
        const number = next++
        const source = sources[number % sources.length] ?? Buffer.alloc(0)
        await client.send(addresses[number % addresses.length] ?? '', source)
        // Whoever is told may have gone: then this process ends too.
        process.send?.('accepted', undefined, undefined, () => undefined)
      }
    } catch {
      // Refused, as a full inbox or a busy server does: just what a sender of bombs would not mind.
      await pause(AFTER_REFUSAL_MS)
    }
  }
}

process.on('disconnect', () => process.exit())
await Promise.all(Array.from({ length: connections }, () => work()))
