import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { decode, encode, type Answer, type Packet, type RecordType } from 'dns-packet'

/** Names and what they have; a name that is not there does not exist (RFC 1035, RCODE 3). */
export type Zone = Readonly<Record<string, NameRecords>>

export interface NameRecords {
  TXT?: readonly string[]
  /** Or what each question is answered with, one after the other. */
  A?: readonly string[] | (() => readonly string[])
  AAAA?: readonly string[]
  /** Questions for this name get no answer. */
  isSilent?: boolean
  /** Or this one (RFC 1035, section 4.1.1). */
  rcode?: 'SERVFAIL' | 'REFUSED'
}

export interface DnsServer {
  /** As MAYFLY_DNS_SERVERS has it. */
  address: string
  /** `TXT app.example`, one for each question that came, in lower case. */
  asked: string[]
  zone: Zone
  dispose(): void
}

/** A DNS server over UDP, on a free port of loopback. */
export async function startDns(zone: Zone): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const asked: string[] = []
  const server = { zone }
  socket.on('message', (bytes, { port, address }) => {
    const { id, questions = [] } = decode(bytes)
    const [question] = questions
    if (question === undefined) return
    const name = question.name.toLowerCase()
    asked.push(`${question.type} ${name}`)
    const records = server.zone[name]
    if (records?.isSilent === true) return
    const answers = answersTo(question.name, question.type, records)
    socket.send(encode({ type: 'response', id, flags: flagsOf(records), questions, answers }), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    get zone() {
      return server.zone
    },
    set zone(changed) {
      server.zone = changed
    },
    dispose: () => socket.close(),
  }
}

function answersTo(name: string, type: RecordType, records: NameRecords | undefined): Answer[] {
  if (type === 'TXT') {
    // A string of a TXT record has at most 255 bytes (RFC 1035, section 3.3.14).
    return (records?.TXT ?? []).map((text) => ({ type, name, data: text.match(/.{1,255}/g) ?? [''] }))
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
