import { totalmem } from 'node:os'
import { wholeNumber } from './setting.js'

const MIB = 1024 * 1024
const LEAST_MIB = 256
/** With this much or more, every budget has its full size: together they come to a quarter of it. */
const FULL_BUDGETS_MIB = 4096
/**
 * Budgets without a setting, at full size: answers, events of streams, bodies of requests, what connections have sent
 * ahead, bodies of webhooks, sent and kept, and mail whose sender is being authenticated, small and large.
 */
const FIXED_BUDGETS_MIB = 256 + 64 + 32 + 16 + 128 + 16 + 32 + 96
/** Mail that is received is there once more, sealed, for a part of the time. */
const SMTP_TIMES = 1.25
/** A parsing thread with less than this fails on ordinary large mail. */
const LEAST_PARSE_MIB = 512
const MAX_ATTACHMENT_MIB = 512

/** How much memory there is to share out. */
export const MEMORY_SETTINGS = {
  memoryMib: {
    ...wholeNumber(
      'MAYFLY_MEMORY_MIB',
      'Memory that the process may use, in MiB; by default that of the machine or container. A quarter is for buffers of ' +
        'mail and answers, three eighths are for parsing threads, and an eighth is for reading attachments: with less than ' +
        '11 GiB the defaults are smaller (docs/limits.md).',
      { default: machineMib(), least: LEAST_MIB, most: 1024 * 1024 },
    ),
    defaultText: 'all',
  },
} as const

/** Of the machine, or of the container if that has less. */
function machineMib(): number {
  const limit = process.constrainedMemory()
  return Math.max(Math.floor(Math.min(limit > 0 ? limit : Infinity, totalmem()) / MIB), LEAST_MIB)
}

/** By how much a budget in bytes is smaller than its full size: a number above 0, at most 1. */
export function budgetScale({ memoryMib }: { memoryMib: number }): number {
  return Math.min(memoryMib / FULL_BUDGETS_MIB, 1)
}

/** Threads that read attachments, and the largest heap of each in MiB. */
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

/** `full`: their values where there is memory enough. */
export function memoryDefaults(memoryMib: number, full: MemoryDefaults): MemoryDefaults {
  const scale = budgetScale({ memoryMib })
  const parseMib = (memoryMib * 3) / 8
  const parseThreads = Math.min(Math.max(Math.floor(parseMib / LEAST_PARSE_MIB), 1), full.parseThreads)
  return {
    smtpMemoryBytes: Math.floor(full.smtpMemoryBytes * scale),
    openedMailBytes: Math.floor(full.openedMailBytes * scale),
    parseThreads,
    parseMemoryMib: Math.floor(Math.min(parseMib / parseThreads, full.parseMemoryMib)),
  }
}

/** What the process takes in MiB if every budget is used up, and every thread. */
export function memoryNeeded(settings: MemoryDefaults & { memoryMib: number }): number {
  const { memoryMib, smtpMemoryBytes, openedMailBytes, parseThreads, parseMemoryMib } = settings
  const { threads, heapMib } = attachmentMemory(settings)
  const budgetsMib =
    (SMTP_TIMES * smtpMemoryBytes + openedMailBytes) / MIB + FIXED_BUDGETS_MIB * budgetScale(settings)
  return Math.ceil(memoryMib / 4 + budgetsMib + parseThreads * parseMemoryMib + threads * heapMib)
}
