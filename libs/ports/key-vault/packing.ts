import { kMaxLength } from 'node:buffer'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdCompressSync, zstdDecompress, zstdDecompressSync } from 'node:zlib'

/*
 * What is sealed is packed before: a byte that says how, then the bytes as they are, or as zstd (RFC 8878). Small
 * ones stay as they are, since making a compressor costs more than what it saves (docs/decisions/0007-packing.md).
 */

const AS_IS = Buffer.from([0])
const ZSTD = Buffer.from([1])

const COMPRESS_FROM_BYTES = 16 * 1024
/** Below it compressing in place costs less than handing it to another thread. */
const ASYNC_FROM_BYTES = 128 * 1024
/** What comes out is allocated in pieces of that size, whatever its length: 16 KiB where nothing is said. */
const MAX_CHUNK_BYTES = 64 * 1024

const compressAsync = promisify(zstdCompress)
const decompressAsync = promisify(zstdDecompress)

export async function pack(plain: Buffer): Promise<Buffer> {
  if (plain.length < ASYNC_FROM_BYTES) return packNow(plain)
  return Buffer.concat([ZSTD, await compressAsync(plain, compressing(plain))])
}

/** The same, while everybody waits. */
export function packNow(plain: Buffer): Buffer {
  if (plain.length < COMPRESS_FROM_BYTES) return Buffer.concat([AS_IS, plain])
  return Buffer.concat([ZSTD, zstdCompressSync(plain, compressing(plain))])
}

/** Takes what was packed, of at most `maxBytes` once unpacked. Throws if it is neither form. */
export async function unpack(packed: Buffer, maxBytes: number): Promise<Buffer> {
  if (packed[0] !== ZSTD[0] || maxBytes < ASYNC_FROM_BYTES) return unpackNow(packed, maxBytes)
  return decompressAsync(packed.subarray(1), { maxOutputLength: maxBytes, chunkSize: MAX_CHUNK_BYTES })
}

/** The same, while everybody waits. */
export function unpackNow(packed: Buffer, maxBytes: number = kMaxLength): Buffer {
  const content = packed.subarray(1)
  if (packed[0] === AS_IS[0]) return content
  if (packed[0] !== ZSTD[0]) throw new TypeError('packed in a form that is not known')
  return zstdDecompressSync(content, { maxOutputLength: maxBytes, chunkSize: MAX_CHUNK_BYTES })
}

/** The fastest level. Told the length, zstd takes tables to match; text shrinks to less than half. */
function compressing(plain: Buffer) {
  return {
    params: { [constants.ZSTD_c_compressionLevel]: 1 },
    pledgedSrcSize: plain.length,
    chunkSize: Math.min(plain.length >> 1, MAX_CHUNK_BYTES),
  }
}
