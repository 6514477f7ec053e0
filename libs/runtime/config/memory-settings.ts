import { totalmem } from 'node:os'
import { named, wholeNumber } from './setting.js'

const MIB = 1024 * 1024
const MIN_MIB = 256
/** With at least this much memory, every budget has its full size. All budgets together are a quarter of it. */
const FULL_BUDGETS_MIB = 4096
/**
 * The full size of budgets without a setting: answers and events, request bodies, data that connections sent ahead,
 * webhook bodies (sent and cached), and mail whose sender is being authenticated (small and large).
 */
const FIXED_BUDGETS_MIB = 320 + 32 + 16 + 128 + 16 + 32 + 96
/** Received mail exists a second time, sealed, for part of the time. */
const SMTP_FACTOR = 1.25
/** A parsing thread with less than this fails on ordinary large mail. */
const MIN_PARSE_MIB = 512
const MAX_ATTACHMENT_MIB = 512

/** The memory that budgets and threads share. */
export const MEMORY_SETTINGS = named('MAYFLY_', {
  memoryMib: {
    ...wholeNumber(
      'Memory that the process may use, in MiB; by default that of the machine or container. A quarter is for buffers of ' +
        'mail and answers, three eighths are for parsing threads, and an eighth is for attachments and HTML: with less than ' +
        '11 GiB the defaults are smaller (docs/limits.md).',
      { default: machineMib(), min: MIN_MIB, max: 1024 * 1024 },
    ),
    defaultText: 'all',
  },
})

/** The memory of the machine, or of the container if that is less. */
function machineMib(): number {
  const limit = process.constrainedMemory()
  return Math.max(Math.floor(Math.min(limit > 0 ? limit : Infinity, totalmem()) / MIB), MIN_MIB)
}

/** The factor by which budgets in bytes are smaller than their full size: more than 0, at most 1. */
export function budgetScale({ memoryMib }: { memoryMib: number }): number {
  return Math.min(memoryMib / FULL_BUDGETS_MIB, 1)
}

/** The number of threads that read attachments, and the maximum heap of each in MiB. */
export function attachmentMemory({ memoryMib }: { memoryMib: number }): { threads: number; heapMib: number } {
  const partMib = memoryMib / 8
  const threads = partMib < 2 * (MAX_ATTACHMENT_MIB / 4) ? 1 : 2
  return { threads, heapMib: Math.floor(Math.min(partMib / threads, MAX_ATTACHMENT_MIB)) }
}

/** The settings whose defaults depend on the memory. */
export interface MemoryDefaults {
  smtpMemoryBytes: number
  openedMailBytes: number
  parseThreads: number
  parseMemoryMib: number
}

/** The defaults for this much memory; `full` has those for enough memory. */
export function memoryDefaults(memoryMib: number, full: MemoryDefaults): MemoryDefaults {
  const scale = budgetScale({ memoryMib })
  const parseMib = (memoryMib * 3) / 8
  const parseThreads = Math.min(Math.max(Math.floor(parseMib / MIN_PARSE_MIB), 1), full.parseThreads)
  return {
    smtpMemoryBytes: Math.floor(full.smtpMemoryBytes * scale),
    openedMailBytes: Math.floor(full.openedMailBytes * scale),
    parseThreads,
    parseMemoryMib: Math.floor(Math.min(parseMib / parseThreads, full.parseMemoryMib)),
  }
}

/** The memory in MiB that the process uses if every budget is exhausted and every thread has its maximum heap. */
export function memoryNeeded(settings: MemoryDefaults & { memoryMib: number }): number {
  const { memoryMib, smtpMemoryBytes, openedMailBytes, parseThreads, parseMemoryMib } = settings
  const { threads, heapMib } = attachmentMemory(settings)
  const budgetsMib =
    (SMTP_FACTOR * smtpMemoryBytes + openedMailBytes) / MIB + FIXED_BUDGETS_MIB * budgetScale(settings)
  return Math.ceil(memoryMib / 4 + budgetsMib + parseThreads * parseMemoryMib + threads * heapMib)
}
