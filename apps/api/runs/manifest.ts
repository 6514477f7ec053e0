import { hash, randomUUID } from 'node:crypto'

/** A line of a manifest: a mail that was sent to a recipient. */
export interface ManifestLine {
  recipient: string
  /** The value of the header that identifies the mail, on one line. */
  id: string
  sentAtMs: number | null
  /** SHA-256 of the source, 32 bytes. */
  digest: Uint8Array | null
}

export const MAX_LINES = 1_000_000

const KEY_BYTES = 16
const DIGEST_BYTES = 32
/** The offsets in the bytes of a line. `next` is the next line with the same key. */
const AT = {
  ...{ key: 0, sentAtMs: 16, text: 24, next: 28, recipientBytes: 32, idBytes: 34 },
  ...{ isFound: 36, hasDigest: 37, digest: 38 },
}
const LINE_BYTES = AT.digest + DIGEST_BYTES
const MAX_TEXT_BYTES = 2 ** 29
const GROWTH_BYTES = 256 * 1024
/** Twice the number of lines, as a power of two. */
const SLOTS = 2 ** 21
const NONE = -1

type OnGrow = (bytes: number) => void

/** Memory that grows in place. */
class Memory {
  readonly bytes: Uint8Array
  readonly view: DataView
  private readonly buffer: ArrayBuffer
  private used = 0

  constructor(
    maxBytes: number,
    private readonly onGrow: OnGrow,
  ) {
    this.buffer = new ArrayBuffer(0, { maxByteLength: maxBytes })
    this.bytes = new Uint8Array(this.buffer)
    this.view = new DataView(this.buffer)
  }

  /** Takes so many bytes, which are 0, and returns their offset. */
  take(bytes: number): number {
    const at = this.used
    const { byteLength, maxByteLength } = this.buffer
    const missing = at + bytes - byteLength
    if (missing > 0) {
      const growth = Math.min(Math.max(missing, GROWTH_BYTES), maxByteLength - byteLength)
      this.onGrow(growth)
      this.buffer.resize(byteLength + growth)
    }
    this.used += bytes
    return at
  }
}

/**
 * The lines of a manifest, in 70 bytes each and their texts. Lines are found by a hash of the recipient and the id, in a
 * table with open addressing. The hash is keyed, since clients choose what is hashed.
 */
export class Manifest {
  private readonly secret = randomUUID()
  private readonly lines: Memory
  private readonly texts: Memory
  /** For each key the last of its pending lines, plus 1; 0 for a free slot. */
  private readonly slots = new Int32Array(SLOTS)
  private count = 0

  /** `onGrow` is called before memory is allocated, with its size. What it throws, `add` throws. */
  constructor(
    private readonly mailbox: (recipient: string) => string,
    onGrow: OnGrow = () => undefined,
  ) {
    onGrow(this.slots.byteLength)
    this.lines = new Memory(MAX_LINES * LINE_BYTES, onGrow)
    this.texts = new Memory(MAX_TEXT_BYTES, onGrow)
  }

  get size(): number {
    return this.count
  }

  /** Adds the next line. The manifest must have fewer than MAX_LINES lines. */
  add({ recipient, id, sentAtMs, digest }: ManifestLine): void {
    const [recipientBytes, idBytes] = [Buffer.from(recipient), Buffer.from(id)]
    const text = this.texts.take(recipientBytes.length + idBytes.length)
    this.texts.bytes.set(recipientBytes, text)
    this.texts.bytes.set(idBytes, text + recipientBytes.length)

    const at = this.lines.take(LINE_BYTES)
    const { bytes, view } = this.lines
    const key = this.keyOf(this.mailbox(recipient), id)
    bytes.set(key, at + AT.key)
    view.setFloat64(at + AT.sentAtMs, sentAtMs ?? NaN)
    view.setUint32(at + AT.text, text)
    view.setUint16(at + AT.recipientBytes, recipientBytes.length)
    view.setUint16(at + AT.idBytes, idBytes.length)
    if (digest !== null) {
      view.setUint8(at + AT.hasDigest, 1)
      bytes.set(digest, at + AT.digest)
    }
    this.link(this.count, key)
    this.count += 1
  }

  /**
   * The first line with this recipient and id that has no message yet, which then has one. Null if each of them has
   * one; undefined if there is no such line.
   */
  take(mailbox: string, id: string): number | null | undefined {
    const last = (this.slots[this.slotOf(this.keyOf(mailbox, id))] ?? 0) - 1
    if (last === NONE) return undefined
    const first = this.nextOf(last)
    if (first === NONE) return null
    this.lines.view.setUint8(first * LINE_BYTES + AT.isFound, 1)
    this.setNext(last, first === last ? NONE : this.nextOf(first))
    return first
  }

  read(line: number): ManifestLine {
    const { view } = this.lines
    const at = this.offsetOf(line)
    const start = view.getUint32(at + AT.text)
    const middle = start + view.getUint16(at + AT.recipientBytes)
    const text = (from: number, to: number) => Buffer.from(this.texts.bytes.slice(from, to)).toString()
    return {
      recipient: text(start, middle),
      id: text(middle, middle + view.getUint16(at + AT.idBytes)),
      sentAtMs: this.sentAtMs(line),
      digest: this.digestOf(line),
    }
  }

  sentAtMs(line: number): number | null {
    const sentAtMs = this.lines.view.getFloat64(this.offsetOf(line) + AT.sentAtMs)
    return Number.isNaN(sentAtMs) ? null : sentAtMs
  }

  digestOf(line: number): Uint8Array | null {
    const { bytes, view } = this.lines
    const at = this.offsetOf(line)
    if (view.getUint8(at + AT.hasDigest) === 0) return null
    return bytes.slice(at + AT.digest, at + AT.digest + DIGEST_BYTES)
  }

  /** The lines without a message, in order. */
  *pending(): Generator<number> {
    for (let line = 0; line < this.count; line += 1) {
      if (this.lines.view.getUint8(line * LINE_BYTES + AT.isFound) === 0) yield line
    }
  }

  /** Makes the lines of a key a ring, which begins after the last one. */
  private link(line: number, key: Buffer): void {
    const slot = this.slotOf(key)
    const last = (this.slots[slot] ?? 0) - 1
    this.setNext(line, last === NONE ? line : this.nextOf(last))
    if (last !== NONE) this.setNext(last, line)
    this.slots[slot] = line + 1
  }

  private nextOf(line: number): number {
    return this.lines.view.getInt32(line * LINE_BYTES + AT.next)
  }

  private setNext(line: number, next: number): void {
    this.lines.view.setInt32(line * LINE_BYTES + AT.next, next)
  }

  /** The slot of a key, or the free one that it may take. */
  private slotOf(key: Buffer): number {
    for (let slot = key.readUInt32LE() % SLOTS; ; slot = (slot + 1) % SLOTS) {
      const at = ((this.slots[slot] ?? 0) - 1) * LINE_BYTES
      if (at < 0 || key.equals(this.lines.bytes.subarray(at, at + KEY_BYTES))) return slot
    }
  }

  private keyOf(mailbox: string, id: string): Buffer {
    return hash('sha256', `${this.secret}${mailbox}\0${id}`, 'buffer').subarray(0, KEY_BYTES)
  }

  private offsetOf(line: number): number {
    if (line >= this.count) throw new RangeError(`the manifest has no line ${line}`)
    return line * LINE_BYTES
  }
}
