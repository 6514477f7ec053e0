/*
 * Replays the output of `strace -f -y -xx` on a simulated disk that keeps only synced data. A write is durable once a
 * sync of its file that began after it has returned. A write to a descriptor opened with O_DSYNC is durable once it
 * returns.
 */

/** Delays each sync, so that an answer that does not wait for it is sent before it. */
const SYNC_DELAY_MS = 30

/** The strace command that writes such output to a file. The traced process keeps its id. */
export function straceCommand(file: string, syncDelayMs = SYNC_DELAY_MS): [string, ...string[]] {
  const calls = 'openat,lseek,pwrite64,pwritev,fdatasync,fsync,write,writev'
  const slow = `inject=fdatasync:delay_enter=${syncDelayMs}ms`
  return [
    'strace',
    '-D',
    '-f',
    '-q',
    '-y',
    '-xx',
    '-s',
    '300000',
    '-e',
    `trace=${calls}`,
    '-e',
    slow,
    '-o',
    file,
  ]
}

interface Call {
  name: string
  descriptor: string
  path: string
  bytes: Buffer
  offset: number
  rest: string
}

export class SyncedDisk {
  private readonly files = new Map<string, Buffer>()
  private readonly pending = new Map<string, Call[]>()
  private readonly unfinished = new Map<string, Call & { syncs: Call[] }>()
  private readonly dsync = new Set<string>()
  /** File position of each descriptor, for writes without an offset. */
  private readonly positions = new Map<string, number>()

  /** Replays one line. Returns the bytes that the process began to send to a socket with it, or null. */
  replay(line: string): string | null {
    const resumed = /^(\d+) +<\.\.\. \w+ resumed>.*= (-?\d+)/.exec(line)
    if (resumed !== null) {
      const [, pid = '', result = ''] = resumed
      const call = this.unfinished.get(pid)
      this.unfinished.delete(pid)
      if (call !== undefined && !result.startsWith('-')) this.returned(call, call.syncs)
      return null
    }
    const [, pid = '', text = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const call = readCall(text)
    if (call === null) return null
    if (call.name === 'openat') {
      this.opened(text)
      return null
    }
    if (call.name === 'lseek') {
      const [, position = '0'] = /, (\d+), SEEK_SET/.exec(text) ?? []
      this.positions.set(call.descriptor, Number(position))
      return null
    }
    if (call.name === 'write' || call.name === 'writev') {
      call.offset = this.positions.get(call.descriptor) ?? 0
      this.positions.set(call.descriptor, call.offset + call.bytes.length)
    }
    if (isWrite(call) && call.path.startsWith('/')) this.pendingOf(call.path).push(call)
    const syncs = [...this.pendingOf(call.path)]
    if (text.endsWith('<unfinished ...>')) this.unfinished.set(pid, { ...call, syncs })
    else if (!/= -\d/.test(call.rest)) this.returned(call, syncs)
    return call.path.startsWith('socket:') ? call.bytes.toString('latin1') : null
  }

  /** The content of a file after a crash at this moment. */
  durable(path: string): Buffer {
    return this.files.get(path) ?? Buffer.alloc(0)
  }

  private opened(text: string): void {
    const [, descriptor] = /O_DSYNC.* = (\d+)</.exec(text) ?? []
    const [, other] = / = (\d+)</.exec(text) ?? []
    if (other !== undefined) {
      this.dsync.delete(other)
      this.positions.delete(other)
    }
    if (descriptor !== undefined) this.dsync.add(descriptor)
  }

  private returned(call: Call, before: readonly Call[]): void {
    const isSync = call.name === 'fdatasync' || call.name === 'fsync'
    const isDurable = isWrite(call) && this.dsync.has(call.descriptor)
    const written = isSync ? before : isDurable ? [call] : []
    for (const write of written) this.store(write)
    const left = this.pendingOf(call.path).filter((one) => !written.includes(one))
    this.pending.set(call.path, left)
  }

  private store({ path, bytes, offset }: Call): void {
    const file = this.durable(path)
    const grown = Buffer.alloc(Math.max(file.length, offset + bytes.length))
    file.copy(grown)
    bytes.copy(grown, offset)
    this.files.set(path, grown)
  }

  private pendingOf(path: string): Call[] {
    const calls = this.pending.get(path) ?? []
    this.pending.set(path, calls)
    return calls
  }
}

function isWrite({ name }: Call): boolean {
  return name.includes('write')
}

function readCall(text: string): Call | null {
  const head = /^(\w+)\((?:(\d+)<((?:\\x[0-9a-f]{2})*)>|AT_FDCWD)/.exec(text)
  if (head === null) return null
  const [, name = '', descriptor = '', path = ''] = head
  const bytes = Buffer.concat(
    [...text.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = '']) => unhex(hex)),
  )
  const rest = text.slice(text.lastIndexOf('"') + 1)
  const [, offset = '0'] = /, (\d+)(?:\)| <unfinished)/.exec(rest) ?? []
  return { name, descriptor, path: unhex(path).toString(), bytes, offset: Number(offset), rest }
}

function unhex(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}
