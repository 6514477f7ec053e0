import * as kind from './setting.js'

const MIB = 1024 * 1024

/** How much mail is taken on, and what reading it may cost (docs/decisions/0017-fair-parsing.md). */
export const PARSE_SETTINGS = {
  maxMessageBytes: kind.wholeNumber(
    'MAYFLY_MAX_MESSAGE_BYTES',
    { least: 1024, most: 256 * MIB },
    { default: 25 * MIB, help: 'Largest mail accepted, in bytes.' },
  ),
  maxBacklog: kind.wholeNumber(
    'MAYFLY_MAX_BACKLOG',
    { least: 1, most: 1_000_000_000 },
    { default: 100_000, help: 'Accepted mails not yet readable past which SMTP answers 451.' },
  ),
  parseThreads: kind.wholeNumber(
    'MAYFLY_PARSE_THREADS',
    { least: 1, most: 64 },
    { default: 2, help: 'Threads that parse mail; as many as cores serve best.' },
  ),
  parseTimeoutMs: kind.wholeNumber(
    'MAYFLY_PARSE_TIMEOUT_MS',
    { least: 100, most: 600_000 },
    { default: 10_000, help: 'Longest time for parsing one mail, in milliseconds, whatever its budget.' },
  ),
  parsePatienceMs: kind.wholeNumber(
    'MAYFLY_PARSE_PATIENCE_MS',
    { least: 100, most: 600_000 },
    {
      default: 500,
      help:
        'The same, beside 40 ms and 40 ms a MiB, for mail of the last minute that takes more CPU time than the ' +
        'ordinary while more than one account has mail: past it the header alone is read.',
    },
  ),
  parseInboxBudgetMs: kind.wholeNumber(
    'MAYFLY_PARSE_INBOX_BUDGET_MS',
    { least: 0, most: 60_000 },
    {
      default: 250,
      help:
        'CPU milliseconds that reading the mail which an inbox receives in a minute may take beyond what is ordinary ' +
        '(20 ms a mail and 20 ms a MiB), while more than one account has mail; past it the header alone is read.',
    },
  ),
  parseAccountBudgetMs: kind.wholeNumber(
    'MAYFLY_PARSE_ACCOUNT_BUDGET_MS',
    { least: 0, most: 600_000 },
    {
      default: 500,
      help: 'The same for all inboxes of an account; past it the header alone is read of mails above 64 KiB.',
    },
  ),
  parseMemoryMib: kind.wholeNumber(
    'MAYFLY_PARSE_MEMORY_MIB',
    { least: 64, most: 16_384 },
    {
      default: 2048,
      help: 'Most heap of one parsing thread, in MiB; below 2048 V8 collects it much more often.',
    },
  ),
} as const
