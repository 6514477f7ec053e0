import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { EngineName } from '#test/harness/mayfly.js'

/** The amount of work of each section. */
export interface Plan {
  rounds: number
  /** Mails of one round from smtp-source. */
  acceptedMails: number
  /** Sign-up mails of one round. */
  shownMails: number
  latencyMails: number
  createdInboxes: number
  /** Seconds of one round of reading. */
  readingSeconds: number
  /** Clients that wait at once. */
  waiters: number
  /** Times that one of them is woken. */
  wakeUps: number
  memoryMails: { before: number; after: number }
  /** The largest number of inboxes. */
  inboxes: number
  manyInboxesMails: number
  /** SMTP connections that are open and idle. */
  idleConnections: number
  /** Mails of one round, each delivered to several webhooks. */
  fanOutMails: number
  /** Deliveries that are due at once. */
  dueDeliveries: { few: number; many: number }
  /** Inboxes whose requests, mails and deliveries are stored as usage. */
  countedInboxes: number
  /** Usage events that the queries read. */
  storedEvents: number
}

const DEFAULT: Plan = {
  rounds: 3,
  acceptedMails: 4_000,
  shownMails: 6_000,
  latencyMails: 300,
  createdInboxes: 500,
  readingSeconds: 5,
  waiters: 1_000,
  wakeUps: 300,
  memoryMails: { before: 1_000, after: 20_000 },
  inboxes: 10_000,
  manyInboxesMails: 3_000,
  idleConnections: 10_000,
  fanOutMails: 300,
  dueDeliveries: { few: 10_000, many: 100_000 },
  countedInboxes: 20_000,
  storedEvents: 1_000_000,
}

const FULL: Plan = {
  rounds: 5,
  acceptedMails: 20_000,
  shownMails: 20_000,
  latencyMails: 1_200,
  createdInboxes: 2_000,
  readingSeconds: 10,
  waiters: 1_000,
  wakeUps: 1_000,
  memoryMails: { before: 1_000, after: 100_000 },
  inboxes: 100_000,
  manyInboxesMails: 10_000,
  idleConnections: 10_000,
  fanOutMails: 1_000,
  dueDeliveries: { few: 10_000, many: 1_000_000 },
  countedInboxes: 100_000,
  storedEvents: 10_000_000,
}

export interface Command {
  plan: Plan
  engine: EngineName
  /** File that gets the findings as JSON, or null. */
  jsonPath: string | null
  /** Names of the sections to run; null for all. */
  only: readonly string[] | null
  /** Folder for the CPU profiles of each Mayfly, or null. */
  profileDir: string | null
  /** Project folder of another build to compare with, or null. */
  compareWith: string | null
  /** Other mail servers to measure Mayfly beside, instead of running sections. */
  beside: readonly { name: string; binary: string }[]
}

/** The benchmark can't run as asked. Its message is one line that says why. */
export class CannotRunError extends Error {
  override readonly name = 'CannotRunError'
}

export const USAGE = `npm run bench -- [options]
  --distributed     on a Kafka and a Redis that it starts, instead of the embedded engine
  --full            more rounds and larger counts: about half an hour instead of ten minutes
  --only a,b        only these sections
  --inboxes <count> a power of ten, the most that the section many-inboxes creates: 10000, or 100000 with --full
  --json <file>     writes the findings to a file, with every round
  --beside <program>=<binary>
                    runs mailpit or inbucket, or both with the option twice, and Mayfly in turn, and prints the ratios
  --compare <dir>   runs another build, in its project folder, and this one in turn, and prints the ratios
  --profile <dir>   writes CPU profiles of every Mayfly, which slows it
`

/** Throws if an argument is unknown. */
export function readCommand(args: readonly string[]): Command {
  const { values } = parseArgs({
    args: [...args],
    options: {
      distributed: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      only: { type: 'string' },
      inboxes: { type: 'string' },
      json: { type: 'string' },
      profile: { type: 'string' },
      compare: { type: 'string' },
      beside: { type: 'string', multiple: true, default: [] },
    },
  })
  const { distributed, only, inboxes, compare } = values
  const beside = values.beside.map(programOf)
  if (beside.length > 0 && (distributed || (only ?? inboxes ?? compare) !== undefined)) {
    throw new CannotRunError('--beside goes only with --full, --json and --profile')
  }
  if (new Set(beside.map(({ name }) => name)).size < beside.length) {
    throw new CannotRunError('--beside has a program twice')
  }
  const plan = values.full ? FULL : DEFAULT
  return {
    plan: inboxes === undefined ? plan : { ...plan, inboxes: countOf(inboxes) },
    engine: distributed ? 'distributed' : 'embedded',
    only: only?.split(',') ?? null,
    jsonPath: values.json ?? null,
    profileDir: values.profile ?? null,
    compareWith: compare === undefined ? null : resolve(compare),
    beside,
  }
}

function programOf(text: string): { name: string; binary: string } {
  const [, name, binary] = /^([^=]+)=(.+)$/.exec(text) ?? []
  if (name === undefined || binary === undefined) {
    throw new CannotRunError(`--beside needs <program>=<binary>, not "${text}"`)
  }
  return { name, binary: resolve(binary) }
}

function countOf(text: string): number {
  if (!/^10{3,7}$/.test(text)) throw new CannotRunError(`not a power of ten from 1000 to 10000000: ${text}`)
  return Number(text)
}
