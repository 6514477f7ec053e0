import type { Socket } from 'node:net'
import { Budget, type Release } from '#libs/runtime/fair-share.js'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address.js'
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { messageOf } from '#libs/runtime/errors.js'
import { note } from './access-log.js'
import { Problem } from './problems.js'

/** The most that the parser is given at once. A piece also ends where a request's headers do. */
const PIECE_BYTES = 2 * 1024
const END_OF_HEADERS = '\r\n\r\n'
/** The time that parsing takes in one turn of the event loop, in milliseconds. */
const TURN_MS = 2
/** What a connection may have sent that is not parsed yet. Node reads 64 KiB at once. */
const MAX_UNREAD_BYTES = 256 * 1024
const MIB = 1024 * 1024
const NOTHING = Buffer.alloc(0)

interface Connection {
  socket: Socket
  /** Takes turns with others: the remote address. */
  address: string
  /** Hands bytes to the parser, or null for the end. */
  push: (bytes: Buffer | null) => boolean
  unread: Buffer
  /** Gives back the memory of what is unread. */
  release: Release
  /** Whether the client has closed its side after what is unread. */
  isEnded: boolean
  holds: number
  isWaiting: boolean
}

/**
 * Shares the time that parsing HTTP takes among remote addresses. Node parses what it has read from a connection at once:
 * 64 KiB take up to 50 ms if they are 2,500 requests, and 15 ms if they are 10,000 chunks of one byte. A few hundred
 * such connections would stop the process for ten seconds. Here they are parsed in pieces, for 2 ms in a turn of the
 * event loop; then other work goes on, and another address is next (docs/decisions/http-is-parsed-in-turns.md).
 */
export class ReadTurns {
  private readonly connections = new WeakMap<Socket, Connection>()
  /** Connections with something unread by address, in the order of turns. */
  private readonly waiting = new Map<string, Connection[]>()
  private readonly memory: Budget
  /** In this turn of the event loop. */
  private spentMs = 0
  private isScheduled = false

  /**
   * `memoryScale` is the part of the full size of memory: above 0, at most 1. `onDropped` is called for each connection
   * that is closed because too much of it waits.
   */
  constructor(
    memoryScale: number,
    private readonly onDropped: () => void,
  ) {
    const bytes = memoryScale * MIB
    this.memory = new Budget({ total: 16 * bytes, perOwner: 8 * bytes, waitMs: 0 })
  }

  /** To be called for each connection of a server of node:http, in a listener of its event 'connection'. */
  watch(socket: Socket): void {
    const connection: Connection = {
      socket,
      address: addressGroup(plainAddress(socket.remoteAddress)),
      push: socket.push.bind(socket),
      unread: NOTHING,
      release: () => undefined,
      isEnded: false,
      holds: 0,
      isWaiting: false,
    }
    const read = socket._read.bind(socket)
    this.connections.set(socket, connection)
    socket.push = (bytes: Buffer | null) => this.receive(connection, bytes)
    socket._read = (size) => {
      if (connection.unread.length === 0) read(size)
    }
    socket.on('resume', () => this.wait(connection))
    socket.once('close', () => {
      connection.unread = NOTHING
      connection.release()
    })
    // Without a listener the parser reads from the connection directly, past `push`.
    socket.on('data', () => undefined)
  }

  /** Parses nothing more of a connection until the function that is returned is called. */
  hold(socket: Socket): () => void {
    const connection = this.connections.get(socket)
    if (connection === undefined) throw new Error('The connection is not watched.')
    connection.holds += 1
    return () => {
      connection.holds -= 1
      this.wait(connection)
    }
  }

  /** What `push` returns: whether Node should read on. */
  private receive(connection: Connection, bytes: Buffer | null): boolean {
    const { socket, address, unread, isWaiting } = connection
    if (bytes === null) {
      if (unread.length === 0) return connection.push(null)
      connection.isEnded = true
      return false
    }
    connection.unread = unread.length === 0 ? bytes : Buffer.concat([unread, bytes])
    let mayReadOn = false
    while (!isWaiting && this.isReadable(connection) && this.spentMs < TURN_MS) {
      mayReadOn = this.parsePiece(connection)
    }
    const { length } = connection.unread
    if (length === 0) return mayReadOn
    connection.release()
    const release = length <= MAX_UNREAD_BYTES ? this.memory.tryTake(address, length) : null
    if (release === null) {
      socket.destroy()
      this.onDropped()
    } else {
      connection.release = release
      this.wait(connection)
    }
    return false
  }

  /** Returns whether Node should read on. */
  private parsePiece(connection: Connection): boolean {
    const begunMs = performance.now()
    this.schedule()
    const { unread, isEnded } = connection
    const piece = firstPiece(unread)
    connection.unread = unread.subarray(piece.length)
    if (piece.length === unread.length) connection.release()
    const mayReadOn = connection.push(piece)
    if (isEnded && connection.unread.length === 0) connection.push(null)
    this.spentMs += performance.now() - begunMs
    return mayReadOn
  }

  /** Node pauses a connection whose answers are not read, or whose body is not taken. */
  private isReadable({ socket, unread, holds }: Connection): boolean {
    return unread.length > 0 && holds === 0 && !socket.isPaused() && !socket.destroyed
  }

  private wait(connection: Connection): void {
    const { address, isWaiting } = connection
    if (isWaiting || !this.isReadable(connection)) return
    connection.isWaiting = true
    const queue = this.waiting.get(address)
    if (queue === undefined) this.waiting.set(address, [connection])
    else queue.push(connection)
    this.schedule()
  }

  private schedule(): void {
    if (this.isScheduled) return
    this.isScheduled = true
    setImmediate(() => {
      this.isScheduled = false
      this.spentMs = 0
      for (let next = this.next(); next !== null; next = this.spentMs < TURN_MS ? this.next() : null) {
        if (this.isReadable(next)) this.parsePiece(next)
        this.wait(next)
      }
      this.spentMs = 0
      if (this.waiting.size > 0) this.schedule()
    })
  }

  private next(): Connection | null {
    const [address, queue] = this.waiting.entries().next().value ?? []
    const connection = queue?.shift()
    if (address === undefined || queue === undefined || connection === undefined) return null
    this.waiting.delete(address)
    if (queue.length > 0) this.waiting.set(address, queue)
    connection.isWaiting = false
    return connection
  }
}

function firstPiece(unread: Buffer): Buffer {
  const most = unread.subarray(0, PIECE_BYTES)
  const end = most.indexOf(END_OF_HEADERS)
  return end < 0 ? most : most.subarray(0, end + END_OF_HEADERS.length)
}

export const MAX_BODY_BYTES = 256 * 1024
const MAX_DISCARDED_BYTES = 4 * 1024 * 1024
/** Smaller pieces of a body count as this many bytes: a body could be 262,144 chunks of one byte. */
const MIN_PIECE_BYTES = 16
/** Larger bodies take memory from the account's budget. */
export const SMALL_BODY_BYTES = 16 * 1024

const BYTES = Symbol('bytes')
type Read = FastifyRequest & { [BYTES]?: Buffer }

/** The bytes of the body; `{}` if it is empty, which counts as that, or is not JSON. */
export function bodyBytesOf(request: Read): Uint8Array {
  return request[BYTES] ?? Buffer.from('{}')
}

/** Bodies are JSON in UTF-8 (RFC 8259, section 8.1). An empty body counts as `{}`, whatever its `Content-Type`. */
export function takeJson(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', async (request: Read) =>
    parse(request, await readBody(request)),
  )
  server.addContentTypeParser('*', async (request: Read) => {
    const body = await readBody(request)
    if (body.length > 0) throw notTaken('Only application/json is accepted.')
    return {}
  })
}

/** The most bytes that a request's body can have: its `Content-Length`, unless it is sent in chunks. */
export function maxBodyBytes({ headers }: IncomingMessage): number {
  if (headers['transfer-encoding'] !== undefined) return MAX_BODY_BYTES
  return Number(headers['content-length'] ?? 0)
}

/**
 * Reads a body into one buffer, however small its pieces are: each is an object of 340 bytes. Throws Problem
 * `body-too-large`, or `invalid-request` if the connection ends before the body.
 */
async function readBody(request: Read): Promise<Buffer> {
  const { raw } = request
  const most = maxBodyBytes(raw)
  if (most > MAX_BODY_BYTES) throw tooLarge()
  let bytes = Buffer.allocUnsafeSlow(Math.min(most, SMALL_BODY_BYTES))
  let length = 0
  await takePieces(raw, MAX_BODY_BYTES, (piece) => {
    const needed = length + piece.length
    if (needed > bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(needed, 2 * bytes.length), MAX_BODY_BYTES))
      bytes.copy(larger)
      bytes = larger
    }
    piece.copy(bytes, length)
    length = needed
  })
  note(request, { bodyBytes: length })
  return bytes.subarray(0, length)
}

/** Reads and drops a body, so that the client reads its answer. Closes the connection after 4 MiB. */
export function discardBody(raw: IncomingMessage): void {
  if (maxBodyBytes(raw) === 0) return
  takePieces(raw, MAX_DISCARDED_BYTES, () => undefined).catch(() => raw.socket.destroy())
}

/** Resolves at the end of a body. Throws if it has too many bytes, or pieces. */
function takePieces(raw: IncomingMessage, maxBytes: number, take: (piece: Buffer) => void): Promise<void> {
  let left = maxBytes
  return new Promise((resolve, reject) => {
    raw.on('data', (piece: Buffer) => {
      left -= Math.max(piece.length, MIN_PIECE_BYTES)
      if (left < 0) reject(tooLarge())
      else take(piece)
    })
    raw.once('end', resolve)
    raw.once('error', () => {
      reject(new Problem('invalid-request', { detail: 'The connection ended before the body.' }))
    })
  })
}

/** Names of properties, such as `__proto__`, are checked later, by the class of the body. */
function parse(request: Read, body: Buffer): unknown {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw notTaken(`Bodies encoded with ${encoding} are not taken.`)
  }
  if (!isUtf8(body)) throw new Problem('malformed-json', { detail: 'The body is not valid UTF-8.' })
  const text = body.toString('utf8').replace(/^\uFEFF/, '')
  if (text.trim() === '') return {}
  request[BYTES] = body
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Problem('malformed-json', { detail: messageOf(error) })
  }
}

function tooLarge(): Problem {
  return new Problem('body-too-large', { detail: `A body may have at most ${MAX_BODY_BYTES} bytes.` })
}

function notTaken(detail: string): Problem {
  return new Problem('unsupported-media-type', { detail })
}
