import { hash } from 'node:crypto'
import fc from 'fast-check'
import { leafHash, merkleTreeHash, provesInclusion } from '#test/harness/transparency-log.js'
import {
  append,
  consistencyOf,
  EMPTY_TREE,
  fold,
  hashOfLeaf,
  join,
  proofOf,
  rootOf,
  subtreesOf,
  type Subtree,
} from './tree.js'

const leaf = (index: number) => `leaf ${index}`

/** A tree that was appended to several times. */
function treeOf(size: number) {
  const leaves = Array.from({ length: size }, (_, index) => leaf(index))
  const completed: (Subtree & { hash: Buffer })[] = []
  let tree = EMPTY_TREE
  for (const some of [leaves.slice(0, size / 3), leaves.slice(size / 3, size / 2), leaves.slice(size / 2)]) {
    const next = append(tree, some.map(hashOfLeaf))
    tree = next.tree
    completed.push(...next.completed)
  }
  return { tree, completed, hashes: leaves.map(leafHash) }
}

/** The leaves of a full subtree. */
const leavesOf = ({ height, index }: Subtree) => [index * 2 ** height, (index + 1) * 2 ** height] as const

const sizes = fc.integer({ min: 0, max: 600 })

describe('a Merkle tree', () => {
  it('has the root of RFC 6962, whatever its size', () => {
    for (let size = 0; size <= 70; size += 1) {
      const { tree, hashes } = treeOf(size)
      expect(rootOf(tree)).toEqual(merkleTreeHash(hashes))
    }
    fc.assert(
      fc.property(sizes, (size) => {
        const { tree, hashes } = treeOf(size)
        expect(rootOf(tree)).toEqual(merkleTreeHash(hashes))
        expect(tree.peaks).toHaveLength(size.toString(2).replaceAll('0', '').length)
      }),
      { numRuns: 20 },
    )
  })

  it('names each full subtree once, when its last leaf is added', () => {
    const { hashes, completed } = treeOf(300)
    for (const subtree of completed) {
      expect(subtree.hash).toEqual(merkleTreeHash(hashes.slice(...leavesOf(subtree))))
    }
    const full = [1, 2, 3, 4, 5, 6, 7, 8].reduce((sum, height) => sum + Math.floor(300 / 2 ** height), 0)
    expect(new Set(completed.map(({ height, index }) => `${height}/${index}`)).size).toBe(full)
  })

  it('proves each of its leaves, and no other', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), fc.nat(), fc.nat(), (size, chosen, other) => {
        const { tree, hashes } = treeOf(size)
        const index = chosen % size
        const siblings = proofOf(index, size)
        const hashOf = (subtree: Subtree) => merkleTreeHash(hashes.slice(...leavesOf(subtree)))
        const proof = siblings.map((sibling) => join(sibling.map(hashOf)))
        const to = { size, root: rootOf(tree) }
        const hash = hashes[index] ?? Buffer.alloc(0)
        expect(provesInclusion({ index, hash }, proof, to)).toBe(true)
        if (other % size === index) return
        expect(provesInclusion({ index: other % size, hash }, proof, to)).toBe(false)
        expect(provesInclusion({ index, hash: hashes[other % size] ?? hash }, proof, to)).toBe(false)
      }),
      { numRuns: 100 },
    )
  })

  it('divides leaves into full subtrees, also beyond 32 bits', () => {
    expect(subtreesOf(0, 7)).toEqual([
      { height: 2, index: 0 },
      { height: 1, index: 2 },
      { height: 0, index: 6 },
    ])
    const size = 2 ** 40 + 2 ** 33 + 1
    expect(subtreesOf(2 ** 40, size)).toEqual([
      { height: 33, index: 2 ** 7 },
      { height: 0, index: size - 1 },
    ])
    expect(proofOf(size - 1, size).flat()).toEqual([
      { height: 33, index: 2 ** 7 },
      { height: 40, index: 0 },
    ])
  })

  it('has the hash of a full subtree from its parts', () => {
    const { hashes } = treeOf(256)
    expect(fold(hashes)).toEqual(merkleTreeHash(hashes))
    expect(fold(hashes.slice(0, 1))).toEqual(hashes[0])
  })

  /** As RFC 9162, section 2.1.4.2, verifies it. */
  function provesConsistency(
    from: Buffer,
    to: Buffer,
    [first, second]: [number, number],
    proof: Buffer[],
  ): boolean {
    const path = Number.isInteger(Math.log2(first)) ? [from, ...proof] : [...proof]
    let [fn, sn] = [first - 1, second - 1]
    while (fn % 2 === 1) [fn, sn] = [(fn - 1) / 2, Math.floor(sn / 2)]
    const [start = Buffer.alloc(0), ...rest] = path
    let [fr, sr] = [start, start]
    for (const hash of rest) {
      if (sn === 0) return false
      if (fn % 2 === 1 || fn === sn) {
        fr = nodeHash(hash, fr)
        sr = nodeHash(hash, sr)
        while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn / 2, Math.floor(sn / 2)]
      } else sr = nodeHash(sr, hash)
      ;[fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)]
    }
    return sn === 0 && fr.equals(from) && sr.equals(to)
  }

  const nodeHash = (left: Buffer, right: Buffer) =>
    hash('sha256', Buffer.concat([Buffer.from([1]), left, right]), 'buffer')

  it('proves that it continues each of its beginnings, and no other tree', () => {
    for (let size = 2; size <= 40; size += 1) {
      const { hashes } = treeOf(size)
      for (let from = 1; from < size; from += 1) {
        const proof = consistencyOf(from, size).map((part) =>
          join(part.map((subtree) => merkleTreeHash(hashes.slice(...leavesOf(subtree))))),
        )
        const roots = [merkleTreeHash(hashes.slice(0, from)), merkleTreeHash(hashes)] as const
        expect(provesConsistency(...roots, [from, size], proof)).toBe(true)
        expect(provesConsistency(leafHash('another'), roots[1], [from, size], proof)).toBe(false)
      }
      expect(consistencyOf(size, size)).toEqual([])
      expect(consistencyOf(0, size)).toEqual([])
    }
  })
})
