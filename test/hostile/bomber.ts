import { setTimeout as pause } from 'node:timers/promises'
import { SmtpClient } from '#test/bench/smtp-client.js'
import { BOMBS } from './bombs.js'

/*
 * A process that sends bombs, one after another on each connection, until its parent disconnects. Its argument is a
 * BomberOrder as JSON. It sends its parent a message for each mail that was accepted.
 */

export interface BomberOrder {
  smtpPort: number
  connections: number
  addresses: readonly string[]
}

const MIB = 1024 * 1024
const AFTER_REFUSAL_MS = 50

/** The most expensive bomb of each kind. No line of them begins with a dot. */
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
  if (bomb === undefined) throw new Error(`unknown bomb ${name}`)
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
        // The parent may have disconnected: then this process ends too.
        process.send?.('accepted', undefined, undefined, () => undefined)
      }
    } catch {
      // Refused, for example because the inbox is full or the server is busy. A sender of bombs continues.
      await pause(AFTER_REFUSAL_MS)
    }
  }
}

process.on('disconnect', () => process.exit())
await Promise.all(Array.from({ length: connections }, () => work()))
