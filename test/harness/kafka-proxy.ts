import { TcpProxy } from './tcp-proxy.js'

/**
 * A proxy before a broker, which is given by its advertised `host:port`; the host must be 127.0.0.1. The broker's answers
 * contain its address, to which clients would connect directly, so the proxy replaces it with its own.
 */
export function startKafkaProxy(broker: string): Promise<TcpProxy> {
  return TcpProxy.start(broker, (bytes, host, port, ownPort) =>
    replaced(bytes, addressBytes(host, port), addressBytes(host, ownPort)),
  )
}

/** The encoding of Kafka's protocol: a string with a length of two bytes, then a port of four bytes. */
function addressBytes(host: string, port: number): Buffer {
  const bytes = Buffer.alloc(2 + host.length + 4)
  bytes.writeUInt16BE(host.length)
  bytes.write(host, 2)
  bytes.writeUInt32BE(port, 2 + host.length)
  return bytes
}

function replaced(bytes: Buffer, old: Buffer, by: Buffer): Buffer {
  for (let at = bytes.indexOf(old); at >= 0; at = bytes.indexOf(old, at + 1)) by.copy(bytes, at)
  return bytes
}
