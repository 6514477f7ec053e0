import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { FairQueue } from '#libs/runtime/fairness/fair-queue.js'
import { Budget, type Release } from '#libs/runtime/fairness/budget.js'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address.js'

/** The maximum that the parser gets at once. A piece also ends at the end of a request's headers, outside of bodies. */
const PIECE_BYTES = 2 * 1024
const END_OF_HEADERS = '\r\n\r\n'
/** The time for parsing in one turn of the event loop. */
const TURN_MS = 2
/** The maximum that is read from a connection and not parsed yet. Node reads 64 KiB at once. */
const MAX_UNREAD_BYTES = 256 * 1024
const MIB = 1024 * 1024
const NOTHING = Buffer.alloc(0)

interface Connection {
  socket: Socket
  /** The remote address, which takes turns with others. */
  address: string
  /** Passes bytes to the parser, or null for the end. */
  push: (bytes: Buffer | null) => boolean
  unread: Buffer
  /** The request whose body is being read. */
  request: IncomingMessage | null
  release: Release
  /** Whether the client has closed its side after `unread`. */
  isEnded: boolean
  holds: number
  isWaiting: boolean
}

/**
 * Shares the time that parsing HTTP takes among remote addresses. Node parses what it has read from a connection at
 * once: 64 KiB take up to 50 ms if they are 2,500 requests, and 15 ms if they are 10,000 chunks of one byte. A few
 * hundred such connections would stop the process for ten seconds. Here they are parsed in pieces, for 2 ms in a turn
 * of the event loop. Then other work continues, and another address is next
 * (docs/decisions/http-is-parsed-in-turns.md).
 */
export class ReadTurns {
  private readonly connections = new WeakMap<Socket, Connection>()
  private readonly waiting = new FairQueue<Connection>()
  private readonly memory: Budget
  private spentMs = 0
  private isScheduled = false

  /**
   * `memoryScale` is the fraction of the full memory: above 0, at most 1. `onDropped` is called for each connection
   * that is closed because too many of its bytes are unread.
   */
  constructor(
    memoryScale: number,
    private readonly onDropped: () => void,
  ) {
    const bytes = memoryScale * MIB
    this.memory = new Budget({ total: 16 * bytes, perOwner: 8 * bytes, waitMs: 0 })
  }

  /** Must be called for each connection of a node:http server, in a listener for 'connection'. */
  watch(socket: Socket): void {
    const connection: Connection = {
      socket,
      address: addressGroup(plainAddress(socket.remoteAddress)),
      push: socket.push.bind(socket),
      unread: NOTHING,
      request: null,
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

  /** Must be called for each request that may have a body, as soon as its headers are parsed. */
  expectBody(request: IncomingMessage): void {
    const connection = this.connections.get(request.socket)
    if (connection !== undefined) connection.request = request
  }

  /** Stops parsing a connection until the returned function is called. */
  hold(socket: Socket): () => void {
    const connection = this.connections.get(socket)
    if (connection === undefined) throw new Error('The connection is not watched.')
    connection.holds += 1
    return () => {
      connection.holds -= 1
      this.wait(connection)
    }
  }

  /** Replaces `push` of the socket. Returns whether Node should continue to read. */
  private receive(connection: Connection, bytes: Buffer | null): boolean {
    const { socket, address, unread, isWaiting } = connection
    if (bytes === null) {
      if (unread.length === 0) return connection.push(null)
      connection.isEnded = true
      return false
    }
    connection.unread = unread.length === 0 ? bytes : Buffer.concat([unread, bytes])
    let mayContinue = false
    while (!isWaiting && this.isReadable(connection) && this.spentMs < TURN_MS) {
      mayContinue = this.parsePiece(connection)
    }
    const { length } = connection.unread
    if (length === 0) return mayContinue
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

  /** Returns whether Node should continue to read. */
  private parsePiece(connection: Connection): boolean {
    const startedMs = performance.now()
    this.schedule()
    const { unread, isEnded } = connection
    if (connection.request?.complete === true) connection.request = null
    const piece = firstPiece(unread, connection.request !== null)
    connection.unread = unread.subarray(piece.length)
    if (piece.length === unread.length) connection.release()
    const mayContinue = connection.push(piece)
    if (isEnded && connection.unread.length === 0) connection.push(null)
    this.spentMs += performance.now() - startedMs
    return mayContinue
  }

  /** Node pauses a connection if its client does not read the answers, or its body is not consumed. */
  private isReadable({ socket, unread, holds }: Connection): boolean {
    return unread.length > 0 && holds === 0 && !socket.isPaused() && !socket.destroyed
  }

  private wait(connection: Connection): void {
    const { address, isWaiting } = connection
    if (isWaiting || !this.isReadable(connection)) return
    connection.isWaiting = true
    this.waiting.add(address, connection)
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
    const connection = this.waiting.take(() => true)
    if (connection !== null) connection.isWaiting = false
    return connection
  }
}

function firstPiece(unread: Buffer, isInBody: boolean): Buffer {
  const piece = unread.subarray(0, PIECE_BYTES)
  if (isInBody) return piece
  const end = piece.indexOf(END_OF_HEADERS)
  return end < 0 ? piece : piece.subarray(0, end + END_OF_HEADERS.length)
}
