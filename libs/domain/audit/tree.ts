import { hash } from 'node:crypto'

/*
 * The Merkle tree of an audit log: hashes as in RFC 6962, section 2.1, with SHA-256. Trees are larger than 32-bit integers
 * allow, so no bitwise operators are used on sizes.
 */

/** A tree as its largest full subtrees, from the left. Their sizes are the powers of two in `size`. */
export interface Tree {
  readonly size: number
  /** The hash of each, in base64. */
  readonly peaks: readonly string[]
}

export const EMPTY_TREE: Tree = { size: 0, peaks: [] }

/** A full subtree: the leaves from `index * 2 ** height` up to, not including, `(index + 1) * 2 ** height`. */
export interface Subtree {
  height: number
  index: number
}

/** The heights of the hashes in tiles are multiples of this (C2SP tlog-tiles). */
export const TILE_HEIGHT = 8
export const TILE_WIDTH = 2 ** TILE_HEIGHT

const LEAF = Buffer.from([0])
const CHILDREN = Buffer.from([1])

export function hashOfLeaf(leaf: string | Buffer): Buffer {
  return hash('sha256', typeof leaf === 'string' ? `\0${leaf}` : Buffer.concat([LEAF, leaf]), 'buffer')
}

function hashOfChildren(left: Uint8Array, right: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([CHILDREN, left, right]), 'buffer')
}

/** Adds leaves by their hashes. `completed` are the subtrees that they complete, without the leaves themselves. */
export function append(
  { size, peaks }: Tree,
  leaves: readonly Buffer[],
): { tree: Tree; completed: (Subtree & { hash: Buffer })[] } {
  const hashes: Buffer[] = peaks.map((peak) => Buffer.from(peak, 'base64'))
  const completed: (Subtree & { hash: Buffer })[] = []
  for (const [added, leaf] of leaves.entries()) {
    let last: Buffer = leaf
    let index = size + added
    for (let height = 1; index % 2 === 1; height += 1) {
      const left = hashes.pop()
      if (left === undefined) throw new RangeError('the tree lacks a peak')
      last = hashOfChildren(left, last)
      index = (index - 1) / 2
      completed.push({ height, index, hash: last })
    }
    hashes.push(last)
  }
  const tree = { size: size + leaves.length, peaks: hashes.map((each) => each.toString('base64')) }
  return { tree, completed }
}

export function rootOf({ peaks }: Tree): Buffer {
  return join(peaks.map((peak) => Buffer.from(peak, 'base64')))
}

/** The hash of consecutive leaves, from those of the full subtrees that they consist of. */
export function join(hashes: readonly Uint8Array[]): Buffer {
  const last = hashes.at(-1)
  if (last === undefined) return hash('sha256', '', 'buffer')
  return Buffer.from(hashes.slice(0, -1).reduceRight((right, left) => hashOfChildren(left, right), last))
}

/** The hash of a full subtree, from the hashes of its parts, whose number is a power of two. */
export function fold(hashes: readonly Buffer[]): Buffer {
  const [first] = hashes
  if (first === undefined) throw new RangeError('a subtree has at least one part')
  if (hashes.length === 1) return first
  const pairs = Array.from({ length: hashes.length / 2 }, (_, index) =>
    hashOfChildren(hashes[2 * index] ?? first, hashes[2 * index + 1] ?? first),
  )
  return fold(pairs)
}

/**
 * What proves that a leaf is in a tree (RFC 6962, section 2.1.1): the siblings from the leaf's up to a child of the root,
 * each as the full subtrees that it consists of.
 */
export function proofOf(leaf: number, size: number): Subtree[][] {
  const siblings: Subtree[][] = []
  let [from, to] = [0, size]
  while (to - from > 1) {
    const middle = from + 2 ** Math.ceil(Math.log2(to - from) - 1)
    if (leaf < middle) {
      siblings.push(subtreesOf(middle, to))
      to = middle
    } else {
      siblings.push(subtreesOf(from, middle))
      from = middle
    }
  }
  return siblings.reverse()
}

/**
 * What proves that a tree continues the one of its first `from` leaves (RFC 6962, section 2.1.2): hashes of leaves, each as the
 * full subtrees that it consists of. None if there is nothing to prove.
 */
export function consistencyOf(from: number, size: number): Subtree[][] {
  if (from === 0) return []
  const proof: Subtree[][] = []
  let [start, end] = [0, size]
  while (from < end) {
    const middle = start + 2 ** Math.ceil(Math.log2(end - start) - 1)
    if (from <= middle) {
      proof.push(subtreesOf(middle, end))
      end = middle
    } else {
      proof.push(subtreesOf(start, middle))
      start = middle
    }
  }
  // The verifier has the hash of the first leaves.
  if (start > 0) proof.push(subtreesOf(start, end))
  return proof.reverse()
}

/** The full subtrees of the leaves from `from` up to `to`. `from` is a multiple of the size of the largest of them. */
export function subtreesOf(from: number, to: number): Subtree[] {
  const subtrees: Subtree[] = []
  for (let start = from; start < to;) {
    const height = Math.floor(Math.log2(to - start))
    subtrees.push({ height, index: start / 2 ** height })
    start += 2 ** height
  }
  return subtrees
}
