import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { NamedError } from '#libs/runtime/errors.js'

/*
 * A check of every page of an LMDB file that its trees consist of. LMDB maps the file and trusts it: a page that is
 * damaged or beyond the end of the file kills the process by a signal, or makes reads fail again and again.
 *
 * Relies on the file format of lmdb 3.5 on little-endian machines (MDB_meta, MDB_page_header, MDB_node and MDB_ovpage in
 * liblmdb/mdb.c). Values on overflow pages are not read: what is stored in them has checks of its own.
 */

/** The file is not an LMDB file, is truncated, or has a page that is damaged. */
export class DamagedFileError extends NamedError {
  constructor(path: string, damage: string) {
    super(`the file ${path} is damaged: ${damage}`)
  }
}

/** The header of each page: its number, the kind of its content, and the range between its pointers and its nodes. */
const PAGE = { number: 0, kind: 18, pointersEnd: 20, nodesStart: 22, bytes: 24 } as const
const KIND = { branch: 0x01, leaf: 0x02, meta: 0x08, mask: 0x6f } as const
/** Follows the header of a meta page. `trees` has the free list and the tree of the named databases. */
const META = { magic: 24, trees: 48, lastPage: 144, transaction: 152, boot: 160, bytes: 168 } as const
const MAGIC = 0xbeefc0de
const TREE = { pageBytes: 0, flags: 4, depth: 6, entries: 32, root: 40, bytes: 48 } as const
/** The flag of a transaction that was not synced to disk. */
const IS_UNSYNCED = 0x1000
const NODE = { low: 0, high: 2, flags: 4, keyBytes: 6, bytes: 8 } as const
const NODE_FLAGS = { isOverflow: 0x01, isTree: 0x02 } as const
const OVERFLOW = { page: 0, pages: 16, bytes: 24 } as const
const NO_ROOT = 0xffff_ffff_ffff_ffffn
const PAGE_BYTES = { min: 256, max: 65_536 } as const

interface Tree {
  root: bigint
  depth: number
  entries: number
  isFreeList: boolean
}

/** Throws DamagedFileError if LMDB can't use the file. A missing or empty file is valid. */
export function checkPages(path: string): void {
  if (!existsSync(path)) return
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    if (size > 0) new PageCheck(path, file, size).run()
  } finally {
    closeSync(file)
  }
}

class PageCheck {
  private readonly meta: Buffer
  private readonly page: Buffer
  /** Pages of the file, without a last one that is cut. */
  private readonly pageCount: number
  /** A bit for each page that is part of a tree. */
  private readonly used: Uint8Array

  constructor(
    private readonly path: string,
    private readonly file: number,
    size: number,
  ) {
    const first = this.readMeta(0)
    if (first === null) throw this.damage('it does not start like an LMDB file')
    const pageBytes = first.readUInt32LE(META.trees + TREE.pageBytes)
    if (pageBytes < PAGE_BYTES.min || pageBytes > PAGE_BYTES.max)
      throw this.damage('its first page is invalid')
    const second = this.readMeta(pageBytes)
    if (second === null) throw this.damage('its second page is not that of an LMDB file')
    this.meta = this.metaInUse(first, second, this.readMeta(pageBytes / 2))
    this.page = Buffer.alloc(pageBytes)
    this.pageCount = Math.min(
      Math.floor(size / pageBytes),
      Number(this.meta.readBigUInt64LE(META.lastPage)) + 1,
    )
    this.used = new Uint8Array(Math.ceil(this.pageCount / 8))
  }

  run(): void {
    const trees = [this.treeAt(this.meta, META.trees, true), this.treeAt(this.meta, META.trees + TREE.bytes)]
    for (let tree = trees.pop(); tree !== undefined; tree = trees.pop()) trees.push(...this.checkTree(tree))
  }

  /**
   * The meta page that LMDB starts from: the newer one, or, if that was not synced and the machine has been restarted
   * since, the last one that was.
   */
  private metaInUse(first: Buffer, second: Buffer, synced: Buffer | null): Buffer {
    const transaction = (meta: Buffer) => meta.readBigUInt64LE(META.transaction)
    const newer = transaction(first) >= transaction(second) ? first : second
    const isUnsynced = (newer.readUInt16LE(META.trees + TREE.flags) & IS_UNSYNCED) !== 0
    const boot = isUnsynced ? currentBoot() : null
    const isOfThisBoot = boot === null || newer.readBigInt64LE(META.boot) === boot
    return isOfThisBoot || synced === null || transaction(synced) === 0n ? newer : synced
  }

  private readMeta(position: number): Buffer | null {
    const meta = Buffer.alloc(META.bytes)
    const read = readSync(this.file, meta, { position })
    return read === META.bytes && meta.readUInt32LE(META.magic) === MAGIC ? meta : null
  }

  private treeAt(bytes: Buffer, at: number, isFreeList = false): Tree {
    return {
      root: bytes.readBigUInt64LE(at + TREE.root),
      depth: bytes.readUInt16LE(at + TREE.depth),
      entries: Number(bytes.readBigUInt64LE(at + TREE.entries)),
      isFreeList,
    }
  }

  /** Returns the trees of the named databases in this tree. */
  private checkTree({ root, depth, entries, isFreeList }: Tree): Tree[] {
    if (root === NO_ROOT) return []
    const found: Tree[] = []
    const pages = [{ number: Number(root), level: 1 }]
    let entriesFound = 0
    for (let next = pages.pop(); next !== undefined; next = pages.pop()) {
      const { number, level } = next
      this.use(number, 1)
      const isLeaf = this.readPage(number) === KIND.leaf
      if (isLeaf !== (level === depth)) throw this.damage(`page ${number} has the wrong kind`)
      const nodes = this.nodesOf(number)
      if (!isFreeList) this.checkOrder(number, nodes, isLeaf)
      if (isLeaf) entriesFound += nodes.length
      for (const node of nodes) {
        if (isLeaf) found.push(...this.checkValue(number, node))
        else pages.push({ number: this.childOf(node), level: level + 1 })
      }
    }
    if (entriesFound !== entries) throw this.damage(`a tree has ${entriesFound} entries, not ${entries}`)
    // A file has either values or named databases.
    if (found.length > 0 && found.length < entries) throw this.damage('an entry is not a named database')
    return found
  }

  /** Marks pages as used. Throws if one is not in the file, or is part of something else. */
  private use(first: number, count: number): void {
    // Pages 0 and 1 are the meta pages.
    if (first < 2 || first + count > this.pageCount) {
      throw this.damage(`page ${first + count - 1} is not among its ${this.pageCount} pages`)
    }
    for (let number = first; number < first + count; number += 1) {
      const [at, bit] = [number >> 3, 1 << (number & 7)]
      const bits = this.used[at] ?? 0
      if ((bits & bit) !== 0) throw this.damage(`page ${number} is used twice`)
      this.used[at] = bits | bit
    }
  }

  /** Reads a page of a tree into `page`, and returns its kind. */
  private readPage(number: number): number {
    const { page } = this
    readSync(this.file, page, { position: number * page.length })
    const kind = page.readUInt16LE(PAGE.kind) & KIND.mask
    const isTree = kind === KIND.leaf || kind === KIND.branch
    if (!isTree || page.readBigUInt64LE(PAGE.number) !== BigInt(number)) {
      throw this.damage(`page ${number} is not a page of a tree`)
    }
    return kind
  }

  /** The offsets of the nodes of the page. Their headers and keys are within the page. */
  private nodesOf(number: number): number[] {
    const { page } = this
    const pointersEnd = PAGE.bytes + page.readUInt16LE(PAGE.pointersEnd)
    const nodesStart = PAGE.bytes + page.readUInt16LE(PAGE.nodesStart)
    const nodes: number[] = []
    for (let at: number = PAGE.bytes; at < Math.min(pointersEnd, page.length - 1); at += 2) {
      const node = PAGE.bytes + page.readUInt16LE(at)
      const isHeaderInside = node >= nodesStart && node + NODE.bytes <= page.length
      if (!isHeaderInside || this.dataOf(node) > page.length)
        throw this.damage(`page ${number} has no valid nodes`)
      nodes.push(node)
    }
    if (nodes.length === 0 || pointersEnd > nodesStart) throw this.damage(`page ${number} has no valid nodes`)
    return nodes
  }

  /** Where the data of a node begins, behind its key. */
  private dataOf(node: number): number {
    return node + NODE.bytes + this.page.readUInt16LE(node + NODE.keyBytes)
  }

  /** The first key of a branch is not compared, because it stands for all smaller ones. */
  private checkOrder(number: number, nodes: readonly number[], isLeaf: boolean): void {
    const { page } = this
    for (let index = isLeaf ? 1 : 2; index < nodes.length; index += 1) {
      const [before = 0, node = 0] = [nodes[index - 1], nodes[index]]
      const key = [node + NODE.bytes, this.dataOf(node), before + NODE.bytes, this.dataOf(before)] as const
      const [start, end, beforeStart, beforeEnd] = key
      if (page.compare(page, start, end, beforeStart, beforeEnd) >= 0) {
        throw this.damage(`the keys of page ${number} are not in order`)
      }
    }
  }

  private childOf(node: number): number {
    const { page } = this
    const low = page.readUInt32LE(node + NODE.low)
    return low + page.readUInt16LE(node + NODE.flags) * 2 ** 32
  }

  /** Checks where the value of a node is. Returns the tree if it is a named database. */
  private checkValue(number: number, node: number): Tree[] {
    const { page } = this
    const bytes = page.readUInt32LE(node + NODE.low)
    const flags = page.readUInt16LE(node + NODE.flags)
    const data = this.dataOf(node)
    const stored = flags === NODE_FLAGS.isOverflow ? OVERFLOW.bytes : bytes
    if (flags > NODE_FLAGS.isTree || data + stored > page.length)
      throw this.damage(`page ${number} has an invalid value`)
    if (flags === NODE_FLAGS.isOverflow) {
      const pages = Number(page.readBigUInt64LE(data + OVERFLOW.pages))
      const needed = Math.ceil((PAGE.bytes + bytes) / page.length)
      if (pages !== needed) throw this.damage(`page ${number} has an invalid value`)
      this.use(Number(page.readBigUInt64LE(data + OVERFLOW.page)), pages)
    }
    if (flags !== NODE_FLAGS.isTree) return []
    const isValidTree = bytes === TREE.bytes && page.readUInt16LE(data + TREE.flags) === 0
    if (!isValidTree) throw this.damage(`page ${number} has an invalid value`)
    return [this.treeAt(page, data)]
  }

  private damage(what: string): DamagedFileError {
    return new DamagedFileError(this.path, what)
  }
}

/** The number by which LMDB recognizes a restart of the machine: the first digits of its boot id. Null if unknown. */
function currentBoot(): bigint | null {
  try {
    const [digits = ''] = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').split('-')
    return BigInt(`0x${digits}`)
  } catch {
    return null
  }
}
