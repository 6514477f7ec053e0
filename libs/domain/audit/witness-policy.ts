import { CheckpointError, cosignatureOf, readCosignerKey } from './checkpoint.js'

export interface Witness {
  name: string
  /** Its verifier key. */
  verifier: string
  /** What the path `add-checkpoint` is below; null if it is not asked. */
  url: string | null
}

/** Which witnesses cosign checkpoints, and how many must have (C2SP tlog-policy). */
export interface WitnessPolicy {
  witnesses: readonly Witness[]
  /** Whether checkpoints are served before any witness has cosigned them. */
  isOptional: boolean
  /** Whether these witnesses are enough. */
  isMet(names: ReadonlySet<string>): boolean
}

type Quorum = (names: ReadonlySet<string>) => boolean

/** The genuine cosignatures of witnesses among the lines of a note, and whether they are enough. `body` is what they sign. */
export function cosignaturesIn(
  policy: WitnessPolicy,
  body: string,
  lines: string,
): { cosignatures: string[]; isMet: boolean } {
  const found = policy.witnesses.flatMap(({ name, verifier }) => {
    const line = cosignatureOf(body, lines, verifier)
    return line === null ? [] : [{ name, line }]
  })
  const isMet = policy.isMet(new Set(found.map(({ name }) => name)))
  return { cosignatures: found.map(({ line }) => line), isMet }
}

/** Lines `witness`, `group` and `quorum`; those of `log` are for clients, and are skipped. Throws Error, with the line. */
export function parsePolicy(text: string): WitnessPolicy {
  const witnesses: Witness[] = []
  const quorums = new Map<string, Quorum>()
  const keys = new Set<string>()
  /** A witness or group counts in one way only. */
  const members = new Set<string>()
  let quorum: string | null = null
  for (const [at, line] of text.split('\n').entries()) {
    const fail = (why: string) => new Error(`line ${at + 1}: ${why}`)
    const [keyword = '', ...fields] = line.trim().split(/[ \t]+/)
    const [name = '', second = '', ...rest] = fields
    if (keyword === '' || keyword.startsWith('#') || keyword === 'log') continue
    const isWitness = keyword === 'witness' && (fields.length === 2 || fields.length === 3)
    const isGroup = keyword === 'group' && rest.length > 0
    if ((isWitness || isGroup) && (name === 'none' || quorums.has(name))) {
      throw fail(`the name ${name} is taken`)
    }
    if (isWitness) {
      const key = readKey(second, fail)
      if (keys.has(key)) throw fail('another witness has this key')
      keys.add(key)
      witnesses.push({ name, verifier: second, url: readUrl(rest[0], fail) })
      quorums.set(name, (names) => names.has(name))
    } else if (isGroup) {
      const parts = rest.map((member) => {
        const part = quorums.get(member)
        if (part === undefined) throw fail(`there is no witness and no group ${member} above`)
        if (members.has(member)) throw fail(`${member} is in a group already`)
        members.add(member)
        return part
      })
      const needed = readCount(second, parts.length, fail)
      quorums.set(name, (names) => parts.filter((part) => part(names)).length >= needed)
    } else if (keyword === 'quorum' && fields.length === 1) {
      if (quorum !== null) throw fail('there is a quorum already')
      if (name !== 'none' && !quorums.has(name)) throw fail(`there is no witness and no group ${name} above`)
      quorum = name
    } else throw fail('it is not a witness, a group or a quorum')
  }
  if (quorum === null) throw new Error('there is no quorum')
  const isMet = quorums.get(quorum) ?? (() => true)
  const asked = witnesses.filter(({ url }) => url !== null).map(({ name }) => name)
  if (asked.length === 0 || !isMet(new Set(asked))) {
    throw new Error('too few witnesses have a URL for the quorum')
  }
  return { witnesses, isOptional: quorum === 'none', isMet }
}

type Fail = (why: string) => Error

function readCount(text: string, most: number, fail: Fail): number {
  const count = text === 'any' ? 1 : text === 'all' ? most : /^[1-9]\d*$/.test(text) ? Number(text) : 0
  if (count < 1 || count > most) throw fail('a group needs any, all, or a number up to that of its members')
  return count
}

/** Returns the public key. */
function readKey(text: string, fail: Fail): string {
  try {
    return Buffer.from(readCosignerKey(text).publicKey).toString('base64')
  } catch (error) {
    if (error instanceof CheckpointError) throw fail(`${text} is not a key of cosignatures with Ed25519`)
    throw error
  }
}

function readUrl(text: string | undefined, fail: Fail): string | null {
  if (text === undefined) return null
  const url = URL.parse(text)
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === ''
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw fail(`${text} is not an http or https URL without a query or a password`)
  }
  return text.replace(/\/+$/, '')
}
