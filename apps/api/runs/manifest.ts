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

/** Lines whose columns are allocated together. */
const BLOCK_LINES = 4_096
const PAGE_BYTES = 256 * 1024
const KEY_WORDS = 4
const DIGEST_BYTES = 32
/** Twice the number of lines, as a power of two. */
const SLOTS = 2 ** 21
const NONE = -1

type LineState = 'pending' | 'found'
const STATE = { pending: 0, found: 1 } as const satisfies Record<LineState, number>

/** The columns of BLOCK_LINES lines. */
interface Block {
  /** 128 bits for the recipient and the id of each line. */
  keys: Uint32Array
  /** NaN without a time. */
  sentAtMs: Float64Array
  /** Null until a line of the block has a digest. */
  digests: Uint8Array | null
  hasDigest: Uint8Array
  state: Uint8Array
  /** The next line with the same key. */
  next: Int32Array
  /** Where the text begins: the page, and the offset in it. */
  page: Uint16Array
  offset: Uint32Array
  recipientBytes: Uint16Array
  idBytes: Uint16Array
}

const BLOCK_BYTES = BLOCK_LINES * (4 * KEY_WORDS + 8 + 1 + 1 + 4 + 2 + 4 + 2 + 2)

/**
 * The lines of a manifest, in about 80 bytes each and their texts. Lines are found by a hash of the recipient and the
 * id, in a table with open addressing. The hash is keyed, since clients choose what is hashed.
 */
export class Manifest {
  private readonly secret = randomUUID()
  private readonly blocks: Block[] = []
  private readonly pages: Buffer[] = []
  private pageUsed = PAGE_BYTES
  /** For each key the last of its pending lines, plus 1; 0 for a free slot. */
  private readonly slots = new Int32Array(SLOTS)
  private count = 0

  /** `onGrow` is called before memory is allocated, with its size. What it throws, `add` throws. */
  constructor(
    private readonly mailbox: (recipient: string) => string,
    private readonly onGrow: (bytes: number) => void = () => undefined,
  ) {
    onGrow(this.slots.byteLength)
  }

  get size(): number {
    return this.count
  }

  /** Adds the next line. The manifest must have fewer than MAX_LINES lines. */
  add({ recipient, id, sentAtMs, digest }: ManifestLine): void {
    const line = this.count
    if (line % BLOCK_LINES === 0) this.addBlock()
    const [block, at] = this.locate(line)
    const key = this.keyOf(this.mailbox(recipient), id)
    block.keys.set(key, at * KEY_WORDS)
    block.sentAtMs[at] = sentAtMs ?? NaN
    if (digest !== null) this.setDigest(block, at, digest)
    this.setText(block, at, recipient, id)
    this.count += 1
    this.link(line, key)
  }

  /**
   * The first line with this recipient and id that has no message yet, which then has one. Null if each of them has
   * one; undefined if there is no such line.
   */
  take(mailbox: string, id: string): number | null | undefined {
    const last = this.slots[this.slotOf(this.keyOf(mailbox, id))] ?? 0
    if (last === 0) return undefined
    const [block, at] = this.locate(last - 1)
    const first = block.next[at] ?? NONE
    if (first === NONE) return null
    const [firstBlock, firstAt] = this.locate(first)
    firstBlock.state[firstAt] = STATE.found
    block.next[at] = first === last - 1 ? NONE : (firstBlock.next[firstAt] ?? NONE)
    return first
  }

  read(line: number): ManifestLine {
    const [block, at] = this.locate(line)
    const page = this.pages[block.page[at] ?? 0] ?? Buffer.alloc(0)
    const start = block.offset[at] ?? 0
    const middle = start + (block.recipientBytes[at] ?? 0)
    const sentAtMs = block.sentAtMs[at] ?? NaN
    return {
      recipient: page.toString('utf8', start, middle),
      id: page.toString('utf8', middle, middle + (block.idBytes[at] ?? 0)),
      sentAtMs: Number.isNaN(sentAtMs) ? null : sentAtMs,
      digest: this.digestOf(line),
    }
  }

  sentAtMs(line: number): number | null {
    const [block, at] = this.locate(line)
    const sentAtMs = block.sentAtMs[at] ?? NaN
    return Number.isNaN(sentAtMs) ? null : sentAtMs
  }

  digestOf(line: number): Uint8Array | null {
    const [{ digests, hasDigest }, at] = this.locate(line)
    if (digests === null || hasDigest[at] === 0) return null
    return digests.subarray(at * DIGEST_BYTES, (at + 1) * DIGEST_BYTES)
  }

  /** The lines without a message, in order. */
  *pending(): Generator<number> {
    for (let line = 0; line < this.count; line += 1) {
      const [block, at] = this.locate(line)
      if (block.state[at] === STATE.pending) yield line
    }
  }

  /** Makes the lines of a key a ring, which begins after the last one. */
  private link(line: number, key: Uint32Array): void {
    const slot = this.slotOf(key)
    const last = this.slots[slot] ?? 0
    const [block, at] = this.locate(line)
    if (last === 0) block.next[at] = line
    else {
      const [lastBlock, lastAt] = this.locate(last - 1)
      block.next[at] = lastBlock.next[lastAt] ?? NONE
      lastBlock.next[lastAt] = line
    }
    this.slots[slot] = line + 1
  }

  /** The slot of a key, or the free one that it may take. */
  private slotOf(key: Uint32Array): number {
    for (let slot = (key[0] ?? 0) % SLOTS; ; slot = (slot + 1) % SLOTS) {
      const line = this.slots[slot] ?? 0
      if (line === 0 || this.hasKey(line - 1, key)) return slot
    }
  }

  private hasKey(line: number, key: Uint32Array): boolean {
    const [{ keys }, at] = this.locate(line)
    for (let word = 0; word < KEY_WORDS; word += 1) {
      if (keys[at * KEY_WORDS + word] !== key[word]) return false
    }
    return true
  }

  private keyOf(mailbox: string, id: string): Uint32Array {
    const digest = hash('sha256', `${this.secret}${mailbox}\0${id}`, 'buffer')
    return new Uint32Array(digest.buffer.slice(digest.byteOffset, digest.byteOffset + 4 * KEY_WORDS))
  }

  private locate(line: number): [block: Block, at: number] {
    const block = this.blocks[Math.floor(line / BLOCK_LINES)]
    if (block === undefined) throw new RangeError(`the manifest has no line ${line}`)
    return [block, line % BLOCK_LINES]
  }

  private addBlock(): void {
    this.onGrow(BLOCK_BYTES)
    this.blocks.push({
      keys: new Uint32Array(BLOCK_LINES * KEY_WORDS),
      sentAtMs: new Float64Array(BLOCK_LINES),
      digests: null,
      hasDigest: new Uint8Array(BLOCK_LINES),
      state: new Uint8Array(BLOCK_LINES),
      next: new Int32Array(BLOCK_LINES),
      page: new Uint16Array(BLOCK_LINES),
      offset: new Uint32Array(BLOCK_LINES),
      recipientBytes: new Uint16Array(BLOCK_LINES),
      idBytes: new Uint16Array(BLOCK_LINES),
    })
  }

  private setDigest(block: Block, at: number, digest: Uint8Array): void {
    if (block.digests === null) {
      this.onGrow(BLOCK_LINES * DIGEST_BYTES)
      block.digests = new Uint8Array(BLOCK_LINES * DIGEST_BYTES)
    }
    block.digests.set(digest, at * DIGEST_BYTES)
    block.hasDigest[at] = 1
  }

  private setText(block: Block, at: number, recipient: string, id: string): void {
    const [recipientBytes, idBytes] = [Buffer.byteLength(recipient), Buffer.byteLength(id)]
    if (this.pageUsed + recipientBytes + idBytes > PAGE_BYTES) {
      this.onGrow(PAGE_BYTES)
      this.pages.push(Buffer.allocUnsafeSlow(PAGE_BYTES))
      this.pageUsed = 0
    }
    const page = this.pages.at(-1)
    page?.write(recipient, this.pageUsed)
    page?.write(id, this.pageUsed + recipientBytes)
    block.page[at] = this.pages.length - 1
    block.offset[at] = this.pageUsed
    block.recipientBytes[at] = recipientBytes
    block.idBytes[at] = idBytes
    this.pageUsed += recipientBytes + idBytes
  }
}
