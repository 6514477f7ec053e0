import { CheckpointError, readCosignerKey } from './checkpoint.js'

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

/** Why a policy can't be read, with the line. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError'
}

/** Lines `witness`, `group` and `quorum`; those of `log` are for clients, and are skipped. Throws PolicyError. */
export function parsePolicy(text: string): WitnessPolicy {
  const witnesses: Witness[] = []
  const quorums = new Map<string, Quorum>()
  let quorum: string | null = null
  for (const [at, line] of text.split('\n').entries()) {
    const fail = (why: string) => new PolicyError(`line ${at + 1}: ${why}`)
    const [keyword, ...fields] = line.replace(/#.*/, '').trim().split(/\s+/)
    const [name = '', second = '', ...rest] = fields
    if (keyword === '' || keyword === 'log') continue
    if (keyword === 'quorum') {
      if (quorum !== null || fields.length !== 1) throw fail('there must be one quorum, with one name')
      quorum = name
      continue
    }
    if (name === 'none' || quorums.has(name)) throw fail(`the name ${name} is taken`)
    if (keyword === 'witness' && (fields.length === 2 || fields.length === 3)) {
      witnesses.push({ name, verifier: readKey(second, fail), url: readUrl(rest[0], fail) })
      quorums.set(name, (names) => names.has(name))
    } else if (keyword === 'group' && rest.length > 0) {
      quorums.set(name, groupOf(second, rest, quorums, fail))
    } else throw fail('it is not a witness, a group or a quorum')
  }
  if (quorum === null) throw new PolicyError('there is no quorum')
  const isMet = quorum === 'none' ? () => true : quorums.get(quorum)
  if (isMet === undefined) throw new PolicyError(`there is no witness and no group ${quorum}`)
  return { witnesses, isOptional: quorum === 'none', isMet }
}

type Fail = (why: string) => PolicyError

function groupOf(
  count: string,
  members: readonly string[],
  quorums: ReadonlyMap<string, Quorum>,
  fail: Fail,
): Quorum {
  const needed = count === 'any' ? 1 : count === 'all' ? members.length : Number(count)
  if (!Number.isInteger(needed) || needed < 1 || needed > members.length) {
    throw fail('a group needs any, all, or a number up to that of its members')
  }
  const parts = members.map((member) => {
    const part = quorums.get(member)
    if (part === undefined) throw fail(`there is no witness and no group ${member} above`)
    return part
  })
  return (names) => parts.filter((part) => part(names)).length >= needed
}

function readKey(text: string, fail: Fail): string {
  try {
    readCosignerKey(text)
    return text
  } catch (error) {
    if (error instanceof CheckpointError) throw fail(`${text} is not a key of cosignatures with Ed25519`)
    throw error
  }
}

function readUrl(text: string | undefined, fail: Fail): string | null {
  if (text === undefined) return null
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) throw fail(`${text} is not an http or https URL`)
  return text.replace(/\/+$/, '')
}
