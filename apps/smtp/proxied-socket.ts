import type { Socket } from 'node:net'
import { readProxyHeader } from './proxy-header.js'

/** The connection that a balancer passes on; null if it is its own. */
export type ProxySource = { address: string; port: number } | null

/**
 * Reads the header of the PROXY protocol from a new socket, and leaves what comes behind it there. Resolves with
 * what it says, or with 'malformed' or 'late' where there is none within the time; the socket's end counts as the
 * former. Never rejects.
 */
export function readProxySource(
  socket: Socket,
  withinMs: number,
): Promise<ProxySource | 'malformed' | 'late'> {
  const { promise, resolve } = Promise.withResolvers<ProxySource | 'malformed' | 'late'>()
  let begun = Buffer.alloc(0)
  const timer = setTimeout(() => settle('late'), withinMs)
  const onData = (chunk: Buffer) => {
    begun = Buffer.concat([begun, chunk])
    const header = readProxyHeader(begun)
    if (header.state === 'partial') return
    if (header.state === 'malformed') {
      settle('malformed')
      return
    }
    settle(header.source)
    if (begun.length > header.bytes) socket.unshift(begun.subarray(header.bytes))
  }
  const onEnd = () => settle('malformed')
  const settle = (result: ProxySource | 'malformed' | 'late') => {
    clearTimeout(timer)
    socket.pause()
    socket.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onEnd)
    resolve(result)
  }
  socket.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd)
  return promise
}
