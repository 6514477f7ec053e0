import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { decode, encode, type Answer, type Packet, type RecordType } from 'dns-packet'

/**
 * Records by name; `*.app.example` has those of other names directly below. Queries for other names are answered NXDOMAIN
 * (RFC 1035, RCODE 3).
 */
export type Zone = Readonly<Record<string, NameRecords>>

export interface NameRecords {
  TXT?: readonly string[]
  /** A function is called for each query. */
  A?: readonly string[] | (() => readonly string[])
  AAAA?: readonly string[]
  /** Such as `10 mx.example`. */
  MX?: readonly string[]
  /** Queries for this name get no answer. */
  isSilent?: boolean
  /** Answered instead of records (RFC 1035, section 4.1.1). */
  rcode?: 'SERVFAIL' | 'REFUSED'
}

export interface DnsServer {
  /** In the format of MAYFLY_DNS_SERVERS. */
  address: string
  /** The queries received, such as `TXT app.example`, with the name in lower case. */
  queries: string[]
  zone: Zone
  dispose(): void
}

/** The environment of a Mayfly whose DNS queries are refused at once, and don't leave the machine. */
export const NO_DNS = { MAYFLY_DNS_SERVERS: '127.0.0.1:9' } as const

/** Starts a DNS server over UDP on a free loopback port. */
export async function startDns(zone: Zone): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const server: DnsServer = { address: '', queries: [], zone, dispose: () => socket.close() }
  socket.on('message', (bytes, { port, address }) => {
    const { id, questions = [] } = decode(bytes)
    const [question] = questions
    if (question === undefined) return
    const name = question.name.toLowerCase()
    server.queries.push(`${question.type} ${name}`)
    const records = server.zone[name] ?? server.zone[name.replace(/^[^.]*/, '*')]
    if (records?.isSilent === true) return
    const answers = answersTo(question.name, question.type, records)
    socket.send(encode({ type: 'response', id, flags: flagsOf(records), questions, answers }), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  server.address = `127.0.0.1:${socket.address().port}`
  return server
}

function answersTo(name: string, type: RecordType, records: NameRecords | undefined): Answer[] {
  if (type === 'TXT') {
    // A string of a TXT record has at most 255 bytes (RFC 1035, section 3.3.14).
    return (records?.TXT ?? []).map((text) => ({ type, name, data: text.match(/.{1,255}/g) ?? [''] }))
  }
  if (type === 'MX') {
    return (records?.MX ?? []).map((text) => {
      const [preference, exchange = '.'] = text.split(' ')
      return { type, name, data: { preference: Number(preference), exchange } }
    })
  }
  if (type === 'A') {
    const { A: addresses = [] } = records ?? {}
    return (typeof addresses === 'function' ? addresses() : addresses).map((data) => ({ type, name, data }))
  }
  return type === 'AAAA' ? (records?.AAAA ?? []).map((data) => ({ type, name, data })) : []
}

const RCODES = { SERVFAIL: 2, REFUSED: 5 } as const
const NXDOMAIN = 3

function flagsOf(records: NameRecords | undefined): NonNullable<Packet['flags']> {
  if (records === undefined) return NXDOMAIN
  return records.rcode === undefined ? 0 : RCODES[records.rcode]
}
